//! What the dense model of a configuration computes and stores: [`DenseCount`].

use crate::config::Config;
use crate::model::Interaction;
use emb_shard::{DenseModel, DenseTime};

/// Bytes of a parameter, its gradient and each value of optimizer state: all are `f32`.
const VALUE_BYTES: u64 = 4;

/// Floating-point operations of forward and backward pass over those of the forward pass: the
/// backward pass multiplies twice as much, by inputs and by weights (`TorchRec`,
/// `planner/constants.py`, `BWD_COMPUTE_MULTIPLIER`).
const FORWARD_AND_BACKWARD: f64 = 3.0;

/// Parameters and work of the dense model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DenseCount {
    /// Elements of all parameters.
    pub(super) parameters: u64,
    /// Multiplications of the forward pass for one sample, each with an addition.
    pub(super) multiplications: u64,
}

impl DenseCount {
    pub(super) fn of(config: &Config) -> Self {
        let (shape, tables) = (&config.shape, &config.tables);
        let mut count = Self::default();
        count.layers(std::iter::once(&shape.dense_columns).chain(&shape.bottom));
        let dim = shape.bottom.last().copied().unwrap_or(0);
        let pooled = tables.features.iter().map(|feature| tables.tables[feature.table].spec.dim);
        let width = dim + pooled.sum::<usize>();
        let inputs = match shape.interaction {
            Interaction::Dot(_) => {
                let vectors = 1 + tables.features.len();
                let pairs = vectors * (vectors - 1) / 2;
                count.multiplications += (pairs * dim) as u64;
                dim + pairs
            }
            Interaction::Cross { layers, rank } => {
                let of_layer = 2 * width * rank;
                count.parameters += (layers * (of_layer + width)) as u64;
                // The product with the input of the network comes on top.
                count.multiplications += (layers * (of_layer + width)) as u64;
                width
            }
        };
        count.layers(std::iter::once(&inputs).chain(&shape.top).chain(&[1]));
        count
    }

    /// Linear layers between these sizes.
    fn layers<'a>(&mut self, sizes: impl Iterator<Item = &'a usize>) {
        let sizes: Vec<u64> = sizes.map(|&size| size as u64).collect();
        for pair in sizes.windows(2) {
            self.parameters += pair[0] * pair[1] + pair[1];
            self.multiplications += pair[0] * pair[1];
        }
    }

    /// The time, as floating-point operations.
    pub(super) fn time(self) -> DenseTime {
        DenseTime::FlopsPerSample(FORWARD_AND_BACKWARD * 2.0 * self.multiplications as f64)
    }

    /// The memory of parameters, gradients and `slots` values of state each; activations are not
    /// counted.
    pub(super) fn model(self, slots: usize) -> DenseModel {
        let gradient_bytes = VALUE_BYTES * self.parameters;
        let memory_bytes = gradient_bytes * (2 + slots as u64);
        DenseModel { gradient_bytes, memory_bytes, memory_bytes_per_sample: 0 }
    }
}
