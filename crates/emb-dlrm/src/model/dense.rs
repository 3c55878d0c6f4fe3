//! Dense parameters: all weights of the MLPs and cross layers in one flat buffer.

use crate::Result;
use emb_kernels::Backend;
use std::ops::Range;

/// Name, shape and place of one dense parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in checkpoints, for example `bottom.0.weight`.
    pub name: String,
    /// `[outputs, inputs]` for weights, `[outputs]` for biases.
    pub shape: Vec<usize>,
    /// Where its elements lie in the flat buffers.
    pub range: Range<usize>,
}

/// What a model needs before any memory is there: parameters and their initial scale.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    parameters: Vec<Parameter>,
    /// Standard deviation of the initial normal distribution; 0 for biases.
    deviations: Vec<f32>,
    total: usize,
}

impl Layout {
    /// Adds a parameter and returns its range.
    pub fn add(&mut self, name: String, shape: &[usize], deviation: f32) -> Range<usize> {
        let len: usize = shape.iter().product();
        let range = self.total..self.total + len;
        self.parameters.push(Parameter { name, shape: shape.to_vec(), range: range.clone() });
        self.deviations.push(deviation);
        self.total += len;
        range
    }

    /// Elements of all parameters together.
    pub fn total(&self) -> usize {
        self.total
    }
}

/// Weights, gradients and optimizer state of all dense parameters on a device.
///
/// One flat buffer each, so an optimizer step is one call and a data-parallel all-reduce needs few
/// buckets.
#[derive(Debug)]
pub struct Dense<B: Backend> {
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
    /// `[total]` weights.
    pub weights: B::Buffer<f32>,
    /// `[total]` gradients of the last backward pass.
    pub gradients: B::Buffer<f32>,
    /// `[slots, total]` optimizer state, slot-major.
    pub state: B::Buffer<f32>,
    slots: usize,
}

impl<B: Backend> Dense<B> {
    /// Allocates the parameters and draws their initial weights: normal with the deviation of
    /// each parameter, keyed by (seed, parameter name, element), so that adding a layer or a rank
    /// changes no other weight. `initial_state` has the initial value of each optimizer slot.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(backend: &mut B, layout: Layout, initial_state: &[f32], seed: u64) -> Result<Self> {
        let total = layout.total;
        let mut weights = backend.zeros(total)?;
        let gradients = backend.zeros(total)?;
        let slots = initial_state.len();
        let mut state = backend.zeros(slots * total)?;
        let mut host = vec![0.0; total];
        for (parameter, &deviation) in layout.parameters.iter().zip(&layout.deviations) {
            emb_kernels::normal(
                seed,
                &parameter.name,
                deviation,
                &mut host[parameter.range.clone()],
            );
        }
        backend.upload(&host, B::view_mut(&mut weights, 0..total))?;
        for (slot, &value) in initial_state.iter().enumerate() {
            if value != 0.0 {
                host.fill(value);
                backend.upload(&host, B::view_mut(&mut state, slot * total..(slot + 1) * total))?;
            }
        }
        Ok(Self { parameters: layout.parameters, weights, gradients, state, slots })
    }

    /// Elements of all parameters together.
    pub fn total(&self) -> usize {
        B::len(&self.weights)
    }

    /// Optimizer slots per element.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Applies one optimizer step to all parameters.
    ///
    /// # Errors
    /// A rule whose state differs from what was allocated.
    pub fn update(&mut self, backend: &mut B, rule: &emb_optim::Rule) -> Result<()> {
        let total = self.total();
        backend.dense_update(
            rule,
            B::view_mut(&mut self.weights, 0..total),
            B::view_mut(&mut self.state, 0..self.slots * total),
            B::view(&self.gradients, 0..total),
        )?;
        Ok(())
    }
}
