//! The published workloads, where their list is at hand.

use emb_shard::{
    Access, Batch, IdType, StateBytes, ValueType, Workload, WorkloadRow, WorkloadSpec,
};
use std::path::{Path, PathBuf};

/// Names of the published workloads, in the order of the facts about them.
pub(crate) const DCNV2: &str = "dcnv2_mlperf";
pub(crate) const T180: &str = "t180_70B_hot80";
pub(crate) const T200: &str = "t200_100B_hot20";
pub(crate) const T510: &str = "t510_110B_hot5";
pub(crate) const T7: &str = "t7_470B_hot20";

/// The published workload `name`; `None`, with the reason printed, where the list is absent.
///
/// AdaGrad's 4 bytes of state for dcnv2, SGD else; 16-bit rows and 4-byte ids on the wire, Zipf 1.1,
/// a batch of 65,536, lengths not counted.
pub(crate) fn published(name: &str) -> Option<Workload> {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join("embark_hugectr_tables.csv");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is absent; set EMB_DATA to its folder", path.display());
        return None;
    };
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let [workload, table, rows, dim, pooling] = fields[..] else { panic!("line {line:?}") };
        WorkloadRow {
            workload: workload.to_owned(),
            table: table.to_owned(),
            rows: rows.parse().expect("whole"),
            dim: dim.parse().expect("whole"),
            pooling: pooling.parse().expect("a number"),
        }
    });
    let mut spec = WorkloadSpec::from_rows(name, Batch::Global(65_536), rows).expect("is listed");
    if name == DCNV2 {
        spec.state = StateBytes { per_row: 0, per_element: 4 };
    }
    (spec.outputs, spec.ids, spec.length_bytes) = (ValueType::F16, IdType::I32, 0);
    spec.access = Access::Zipf { exponent: 1.1 };
    Some(Workload::new(spec).expect("valid"))
}
