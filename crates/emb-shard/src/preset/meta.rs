//! Two models of which 2D sparse parallelism was published.

use super::{Input, Preset};
use crate::{
    Access, Batch, Bytes, DenseModel, DenseTime, Kind, TableSpec, ValueType, WorkloadSpec,
};

pub(super) fn exfm() -> Preset {
    let mut spec = WorkloadSpec::new("exfm", Batch::PerRank(1024));
    spec.outputs = ValueType::Bf16;
    spec.access = Access::Zipf { exponent: 1.05 };
    spec.state.per_row = 4;
    spec.dense = DenseTime::SecondsPerSample(1.2e-3);
    spec.dense_model = DenseModel { memory_bytes: 56_000_000_000, ..DenseModel::default() };
    let tables = 16;
    let rows = 1_700_000_000_000 / (tables * 512);
    spec.tables = (0..tables)
        .map(|n| TableSpec { pooling_factor: 20.0, ..TableSpec::new(n.to_string(), rows, 128) })
        .collect();
    Preset {
        title: "ExFM",
        planner: "torchrec",
        gpus: &[256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
        group_ranks: Some(256),
        replicas: &[1],
        kinds: Some(vec![Kind::TableWise, Kind::ColumnWise, Kind::RowWise]),
        reserved: Bytes::new(0),
        spec,
        inputs: Vec::<Input>::new(),
    }
}

pub(super) fn ctr() -> Preset {
    let mut spec = WorkloadSpec::new("ctr-256", Batch::PerRank(8192));
    spec.outputs = ValueType::Bf16;
    spec.access = Access::Zipf { exponent: 1.05 };
    spec.state.per_row = 4;
    spec.dense = DenseTime::SecondsPerSample(6e-5);
    spec.dense_model = DenseModel { memory_bytes: 20_000_000_000, ..DenseModel::default() };
    let (tables, bytes) = (512, 400_000_000_000_u64);
    let rows = bytes / (tables * 512);
    spec.tables = (0..tables)
        .map(|n| TableSpec { pooling_factor: 20.0, ..TableSpec::new(n.to_string(), rows, 128) })
        .collect();
    spec.tables[0].features = Some((0..12).map(|n| format!("0/{n}")).collect());
    Preset {
        title: "CTR",
        planner: "torchrec",
        gpus: &[256],
        group_ranks: None,
        replicas: &[1, 2, 4, 8],
        kinds: Some(vec![Kind::TableWise, Kind::ColumnWise]),
        reserved: Bytes::new(0),
        spec,
        inputs: Vec::<Input>::new(),
    }
}
