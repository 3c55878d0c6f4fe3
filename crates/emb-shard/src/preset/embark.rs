//! The models that `EMBark` was measured with: published lists of tables and a published dense
//! model, from which its work follows.

use super::{Input, Preset};
use crate::{
    Access, Batch, Bytes, DenseModel, DenseTime, IdType, StateBytes, TableSpec, ValueType,
    WorkloadSpec,
};

/// A run of tables that are alike: how many, ids of a bag, rows, columns.
type Alike = (usize, u32, u64, usize);

/// A list of tables.
pub(super) struct Model {
    pub(super) name: &'static str,
    title: &'static str,
    tables: &'static [Alike],
    /// AdaGrad keeps a state of 4 bytes for every weight, SGD none.
    adagrad: bool,
    ids: IdType,
    source: &'static str,
}

const BENCHMARK: &str = "HugeCTR v25.03, benchmarks/embedding_collection/benchmark.sh and dataset/";

pub(super) const MODELS: [Model; 5] = [
    Model {
        name: "embark-dcnv2",
        title: "DLRM-DCNv2 of the MLPerf training benchmark",
        tables: &[
            (1, 3, 40_000_000, 128),
            (1, 2, 39_060, 128),
            (1, 1, 17_295, 128),
            (1, 2, 7_424, 128),
            (1, 6, 20_265, 128),
            (1, 1, 3, 128),
            (1, 1, 7_122, 128),
            (1, 1, 1_543, 128),
            (1, 1, 63, 128),
            (1, 7, 40_000_000, 128),
            (1, 3, 3_067_956, 128),
            (1, 8, 405_282, 128),
            (1, 1, 10, 128),
            (1, 6, 2_209, 128),
            (1, 9, 11_938, 128),
            (1, 5, 155, 128),
            (1, 1, 4, 128),
            (1, 1, 976, 128),
            (1, 1, 14, 128),
            (1, 12, 40_000_000, 128),
            (1, 100, 40_000_000, 128),
            (1, 27, 40_000_000, 128),
            (1, 10, 590_152, 128),
            (1, 3, 12_973, 128),
            (1, 1, 108, 128),
            (1, 1, 36, 128),
        ],
        adagrad: true,
        ids: IdType::I32,
        source: "MLCommons training, recommendation_v2/torchrec_dlrm/README",
    },
    Model {
        name: "embark-t180",
        title: "180 tables, 70 G weights, hotness 80",
        tables: &[
            (5, 100, 10_000, 128),
            (5, 50, 4_000_000, 64),
            (5, 30, 4_000_000, 64),
            (5, 50, 50_000_000, 32),
            (20, 50, 1_000, 128),
            (30, 30, 10_000, 128),
            (10, 20, 5_000_000, 256),
            (20, 20, 4_000_000, 128),
            (10, 100, 10, 128),
            (10, 10, 1_000, 64),
            (10, 100, 10_000, 128),
            (5, 100, 100_000, 64),
            (40, 200, 4_000_000, 64),
            (1, 100, 50_000_000, 128),
            (1, 100, 500_000_000, 32),
        ],
        adagrad: false,
        ids: IdType::I32,
        source: BENCHMARK,
    },
    Model {
        name: "embark-t200",
        title: "200 tables, 100 G weights, hotness 20",
        tables: &[
            (10, 1, 100, 128),
            (10, 1, 1_000, 128),
            (10, 5, 1_000, 128),
            (10, 20, 10_000, 128),
            (20, 100, 10_000, 128),
            (10, 1, 10_000, 128),
            (10, 1, 100_000, 128),
            (10, 1, 1_000_000, 128),
            (10, 1, 2_000_000, 128),
            (10, 1, 2_000_000, 128),
            (10, 1, 4_000_000, 128),
            (20, 1, 4_000_000, 128),
            (20, 10, 2_000_000, 64),
            (10, 20, 4_000_000, 128),
            (10, 30, 4_000_000, 128),
            (10, 50, 4_000_000, 128),
            (10, 100, 50_000_000, 128),
        ],
        adagrad: false,
        ids: IdType::I32,
        source: BENCHMARK,
    },
    Model {
        name: "embark-t510",
        title: "510 tables, 110 G weights, hotness 5",
        tables: &[
            (100, 1, 1_000, 128),
            (150, 1, 100_000, 128),
            (20, 1, 1_000_000, 128),
            (50, 1, 2_000_000, 128),
            (150, 1, 4_000_000, 128),
            (20, 10, 4_000_000, 128),
            (20, 100, 4_000_000, 128),
        ],
        adagrad: false,
        ids: IdType::I32,
        source: BENCHMARK,
    },
    Model {
        name: "embark-t7",
        title: "7 tables, 470 G weights, hotness 20",
        tables: &[
            (1, 80, 10_000_000, 256),
            (1, 20, 400_000_000, 64),
            (1, 20, 1_000_000_000, 128),
            (1, 40, 5_000_000_000, 32),
            (1, 1, 1_000_000_000, 128),
            (1, 1, 10_000_000, 64),
            (1, 1, 10_000_000, 128),
        ],
        adagrad: false,
        ids: IdType::I64,
        source: BENCHMARK,
    },
];

/// Samples of a step of all ranks.
const BATCH: u64 = 65_536;

/// Exponent of the Zipf law that ids are drawn by (`benchmark.sh`, `dataset/`).
const ZIPF: f64 = 1.1;

/// Bytes of a rank for tables: `memory_cap_for_embedding` of `benchmark.sh`.
const TABLE_BYTES: u64 = 60_000_000_000;

/// Dense features, then the widths of the bottom layers.
const BOTTOM: [u64; 4] = [13, 512, 256, 128];

/// Layers of the cross network, and the rank of each.
const CROSS: (u64, u64) = (3, 512);

/// Widths of the top layers, over all columns.
const TOP: [u64; 5] = [1024, 1024, 512, 256, 1];

impl Model {
    pub(super) fn preset(&self) -> Preset {
        let mut spec = WorkloadSpec::new(self.name, Batch::Global(BATCH));
        (spec.outputs, spec.ids, spec.length_bytes) = (ValueType::F16, self.ids, 0);
        spec.access = Access::Zipf { exponent: ZIPF };
        spec.state.per_element = if self.adagrad { 4 } else { 0 };
        spec.tables = self.table_specs();
        let weights = self.dense_weights();
        // A multiplication and an addition forward, and as many for the gradients of inputs and of
        // weights.
        spec.dense = DenseTime::FlopsPerSample(6.0 * weights as f64);
        // Weights, master weights and gradients of mixed precision.
        let memory_bytes = (2 + 4 + 2) * weights;
        spec.dense_model = DenseModel { memory_bytes, ..DenseModel::default() };
        let inputs = self.inputs(&spec);
        Preset {
            title: self.title,
            planner: "embark",
            gpus: &[8, 16, 32, 64, 128],
            group_ranks: None,
            kinds: None,
            table_bytes: Some(Bytes::new(TABLE_BYTES)),
            spec,
            inputs,
        }
    }

    fn table_specs(&self) -> Vec<TableSpec> {
        let alike = self.tables.iter().flat_map(|&(count, ids, rows, dim)| {
            std::iter::repeat_n((f64::from(ids), rows, dim), count)
        });
        let table = |(number, (pooling_factor, rows, dim)): (usize, (f64, u64, usize))| TableSpec {
            pooling_factor,
            ..TableSpec::new(number.to_string(), rows, dim)
        };
        alike.enumerate().map(table).collect()
    }

    /// Weights of the dense model: bottom layers, a low-rank cross network over the last of them
    /// and all columns of all tables, top layers.
    fn dense_weights(&self) -> u64 {
        let layers = |widths: &[u64]| widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<u64>();
        let columns: usize = self.tables.iter().map(|&(count, _, _, dim)| count * dim).sum();
        let width = columns as u64 + BOTTOM[BOTTOM.len() - 1];
        let cross = CROSS.0 * 2 * width * CROSS.1;
        layers(&BOTTOM) + cross + width * TOP[0] + layers(&TOP)
    }

    fn inputs(&self, spec: &WorkloadSpec) -> Vec<Input> {
        let weights = self.dense_weights() as f64;
        let StateBytes { per_element, .. } = spec.state;
        vec![
            Input::known("tables", spec.tables.len() as f64, "tables", self.source),
            Input::assumed("samples of a step of all GPUs", BATCH as f64, "samples", {
                "an argument of benchmark.sh; here the batch of the MLPerf reference"
            }),
            Input::known("Zipf exponent of look-ups", ZIPF, "", BENCHMARK),
            Input::known("bytes of a value on the wire", 2.0, "bytes", {
                "HugeCTR v25.03, --use_mixed_precision"
            }),
            Input::known("bytes of an id", f64::from(spec.ids.bytes()), "bytes", BENCHMARK),
            Input::known("optimizer state of a weight", f64::from(per_element), "bytes", BENCHMARK),
            Input::known("bytes of a GPU for tables", TABLE_BYTES as f64, "bytes", BENCHMARK),
            Input::known("weights of the dense model", weights, "weights", {
                "computed from the published widths of its layers"
            }),
            Input::assumed("dense gradients summed in the open", 0.0, "bytes", {
                "HugeCTR v25.03, src/pybind/model_pipeline.cpp, sums them beside the embeddings' \
                 backward pass"
            }),
        ]
    }
}
