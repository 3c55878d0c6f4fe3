//! Two models that 2D sparse parallelism was published with. Their tables were not: these are the
//! simplest ones that show what was seen.

use super::{Input, Preset};
use crate::{Access, Batch, DenseModel, DenseTime, Kind, TableSpec, ValueType, WorkloadSpec};

pub(super) const EXFM: &str = "exfm";
pub(super) const CTR: &str = "ctr-256";

/// What both models have in common.
const DIM: usize = 128;
const POOLING_FACTOR: f64 = 25.0;
const ZIPF: f64 = 1.05;

/// Row-wise AdaGrad keeps one 32-bit number a row.
const STATE_ROW_BYTES: u32 = 4;

/// What is different.
struct Model {
    name: &'static str,
    tables: u32,
    bytes: u64,
    features: u32,
    samples: u64,
    dense_seconds: f64,
    dense_bytes: u64,
}

const EXFM_MODEL: Model = Model {
    name: EXFM,
    tables: 10,
    bytes: 1_700_000_000_000,
    features: 1,
    samples: 1024,
    dense_seconds: 1.1e-3,
    dense_bytes: 60_000_000_000,
};

const CTR_MODEL: Model = Model {
    name: CTR,
    tables: 33,
    bytes: 33 * 7_000_000_000,
    features: 5,
    samples: 20_480,
    dense_seconds: 5.6e-5,
    dense_bytes: 29_500_000_000,
};

const EXFM_KINDS: [Kind; 3] = [Kind::TableWise, Kind::ColumnWise, Kind::RowWise];
const CTR_KINDS: [Kind; 2] = [Kind::TableWise, Kind::ColumnWise];

/// `ExFM`: tables that no GPU can hold, so their rows are cut over all ranks of a group, and every
/// owner sends a sum for every sample of the group: an all-to-all that grows with the group.
pub(super) fn exfm() -> Preset {
    const PAPER: &str = "2D sparse parallelism, arXiv 2508.03854, at second hand";
    let model = EXFM_MODEL;
    let mut inputs = vec![
        Input::known("bytes of tables", model.bytes as f64, "bytes", PAPER),
        Input::known("ranks of a group", 256.0, "ranks", PAPER),
        Input::assumed("tables", f64::from(model.tables), "tables", {
            "set to meet 1D scaling; each is larger than a GPU, so row-wise"
        }),
        Input::assumed("samples of a GPU", model.samples as f64, "samples", {
            "a power of two, for steps of about 1.5 s at the published rate"
        }),
        Input::assumed("dense model", model.dense_seconds, "seconds a sample", {
            "set to meet 176,000 samples a second on 256 GPUs"
        }),
        Input::assumed("memory of the dense model", model.dense_bytes as f64, "bytes", {
            "set so that 1D fits 1,024 GPUs of 80 GB and not 2,048"
        }),
    ];
    inputs.push(Input::assumed("kinds of placement", EXFM_KINDS.len() as f64, "kinds", {
        "table-, column- and row-wise: kinds by node are no use to groups over all nodes"
    }));
    inputs.extend(common());
    Preset {
        title: "a 1.7 TB foundation model in groups of 256 GPUs",
        planner: "torchrec",
        gpus: &[256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768],
        group_ranks: Some(256),
        kinds: Some(&EXFM_KINDS),
        table_bytes: None,
        spec: model.spec(),
        inputs,
    }
}

/// The click-through-rate model: fewer tables than ranks, none of which can be cut, so that most
/// ranks of one large group own nothing and a few send everything.
pub(super) fn ctr() -> Preset {
    let model = CTR_MODEL;
    let mut inputs = vec![
        Input::assumed("tables", f64::from(model.tables), "tables", {
            "set to meet a busiest GPU of 5.7 times the mean"
        }),
        Input::assumed("features of a table", f64::from(model.features), "features", {
            "set to meet 1.74 times the samples a second with 4 groups"
        }),
        Input::assumed("bytes of tables", model.bytes as f64, "bytes", {
            "7 GB each: set so that 4 groups are faster than 8"
        }),
        Input::assumed("samples of a GPU", model.samples as f64, "samples", {
            "set to meet 17.7 points less memory with 4 groups"
        }),
        Input::assumed("dense model", model.dense_seconds, "seconds a sample", {
            "set to meet 1.53 million samples a second in one group"
        }),
        Input::assumed("memory of the dense model", model.dense_bytes as f64, "bytes", {
            "set to meet a peak of 72.4 % of the memory in one group"
        }),
    ];
    inputs.push(Input::assumed("kinds of placement", CTR_KINDS.len() as f64, "kinds", {
        "table- and column-wise: with row-wise tables no GPU was 5.7 times busier than the mean"
    }));
    inputs.extend(common());
    Preset {
        title: "a click-through-rate model of few tables on 256 GPUs",
        planner: "torchrec",
        gpus: &[256],
        group_ranks: None,
        kinds: Some(&CTR_KINDS),
        table_bytes: None,
        spec: model.spec(),
        inputs,
    }
}

impl Model {
    fn spec(&self) -> WorkloadSpec {
        let mut spec = WorkloadSpec::new(self.name, Batch::PerRank(self.samples));
        spec.outputs = ValueType::Bf16;
        spec.access = Access::Zipf { exponent: ZIPF };
        spec.state.per_row = STATE_ROW_BYTES;
        spec.dense = DenseTime::SecondsPerSample(self.dense_seconds);
        let memory_bytes = self.dense_bytes;
        spec.dense_model = DenseModel { memory_bytes, ..DenseModel::default() };
        let row_bytes = spec.rows.row_bytes(DIM);
        let rows = self.bytes / u64::from(self.tables) / row_bytes;
        let table = |table: u32| {
            let features = (0..self.features).map(|feature| format!("{table}/{feature}"));
            TableSpec {
                pooling_factor: POOLING_FACTOR,
                features: Some(features.collect()),
                ..TableSpec::new(table.to_string(), rows, DIM)
            }
        };
        spec.tables = (0..self.tables).map(table).collect();
        spec
    }
}

/// The inputs that both models share.
fn common() -> [Input; 5] {
    const USUAL: &str = "usual; the same for exfm and ctr-256";
    [
        Input::assumed("columns of a table", DIM as f64, "columns", {
            "the fewest that TorchRec cuts columns to (MIN_CW_DIM); the same for exfm and ctr-256"
        }),
        Input::assumed("ids of a bag", POOLING_FACTOR, "ids", {
            "set to meet the imbalance of ctr-256; the same for exfm"
        }),
        Input::assumed("Zipf exponent of look-ups", ZIPF, "", USUAL),
        Input::assumed("bytes of a value on the wire", 2.0, "bytes", USUAL),
        Input::known("state of a row", f64::from(STATE_ROW_BYTES), "bytes", {
            "row-wise AdaGrad of FBGEMM, which the paper trains with"
        }),
    ]
}
