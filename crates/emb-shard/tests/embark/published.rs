//! The published workloads.

use emb_shard::{Access, Batch, IdType, Preset, StateBytes, ValueType, Workload, WorkloadSpec};

/// Names of the published workloads, in the order of the facts about them.
pub(crate) const DCNV2: &str = "embark-dcnv2";
pub(crate) const T180: &str = "embark-t180";
pub(crate) const T200: &str = "embark-t200";
pub(crate) const T510: &str = "embark-t510";
pub(crate) const T7: &str = "embark-t7";

/// The tables of a published workload, and what its published costs and bytes count.
///
/// `AdaGrad`'s 4 bytes of state for dcnv2, SGD else; 16-bit rows and 4-byte ids on the wire, Zipf
/// 1.1, a batch of 65,536, lengths not counted, no dense model.
pub(crate) fn published(name: &str) -> Workload {
    let preset = Preset::named(name).expect("a preset");
    let mut spec = WorkloadSpec::new(name, Batch::Global(65_536));
    spec.tables.clone_from(&preset.spec().tables);
    if name == DCNV2 {
        spec.state = StateBytes { per_row: 0, per_element: 4 };
    }
    (spec.outputs, spec.ids, spec.length_bytes) = (ValueType::F16, IdType::I32, 0);
    spec.access = Access::Zipf { exponent: 1.1 };
    Workload::new(spec).expect("valid")
}
