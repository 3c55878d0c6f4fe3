//! The element-wise rules on a whole dense parameter: [`DenseOptimizer`].

use crate::replica::expect_length;
use crate::{
    Error, Optimizer, ReplicaScaling, Result, RowRule, RowState, Rule, RuleKind, RuleVisitor,
    Statistic, element_slots,
};

/// An [`Optimizer`] for dense parameters: SGD, `AdaGrad` or Adam over every element.
///
/// A dense parameter has no rows, so everything that speaks of rows is refused. Its gradient is the
/// sum over the whole world, so there is no replica rule either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseOptimizer {
    optimizer: Optimizer,
}

impl DenseOptimizer {
    /// Takes an optimizer whose every option makes sense for a dense parameter.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a row-wise rule, `max_norm`, `max_gradient` or replicas.
    pub fn new(optimizer: Optimizer) -> Result<Self> {
        let kind = optimizer.kind();
        let refuse = |option: &str, reason| {
            Err(Error::Unsupported { rule: kind, option: option.to_owned(), reason })
        };
        match kind {
            RuleKind::RowWiseAdaGrad => {
                return refuse("a dense parameter", "it has no rows; use adagrad");
            }
            RuleKind::RowWiseAdam => {
                return refuse("a dense parameter", "it has no rows; use adam");
            }
            RuleKind::Sgd | RuleKind::AdaGrad | RuleKind::Adam => {}
        }
        if optimizer.needs_whole_row() {
            return refuse("max_norm on a dense parameter", "it has no rows");
        }
        if optimizer.config().max_gradient.is_some() {
            let reason = "the clamp acts on the gradients of bags before they are summed";
            return refuse("max_gradient on a dense parameter", reason);
        }
        if optimizer.replica() != ReplicaScaling::default() {
            let reason = "its gradient is summed over the whole world";
            return refuse("replicas on a dense parameter", reason);
        }
        Ok(Self { optimizer })
    }

    /// The optimizer inside.
    pub const fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The rule of step `step` (1 for the first) at learning rate `lr`, for a device kernel.
    ///
    /// # Panics
    /// When `step` is 0.
    pub fn rule(&self, lr: f64, step: u64) -> Rule {
        self.optimizer.rule(lr, step)
    }

    /// Length of the state of a parameter: `[slots, elements]`, slot-major.
    pub fn state_len(&self, elements: usize) -> usize {
        element_slots(self.optimizer.slots()) * elements
    }

    /// Writes the start values into the state of a parameter, `[slots, elements]`.
    ///
    /// # Errors
    /// [`Error::Length`] when `state` is not [`state_len`](Self::state_len) long.
    pub fn initialize(&self, elements: usize, state: &mut [f32]) -> Result<()> {
        expect_length("dense state", self.state_len(elements), state.len())?;
        if elements > 0 {
            for (part, &slot) in state.chunks_exact_mut(elements).zip(self.optimizer.slots()) {
                part.fill(self.optimizer.initial_state(slot));
            }
        }
        Ok(())
    }

    /// One step of a whole parameter: `parameter` and `gradient` of the same length, `state` as
    /// [`initialize`](Self::initialize) lays it out.
    ///
    /// # Errors
    /// [`Error::Length`] when lengths do not match; nothing is written then.
    ///
    /// # Panics
    /// When `step` is 0.
    pub fn step(
        &self,
        lr: f64,
        step: u64,
        parameter: &mut [f32],
        state: &mut [f32],
        gradient: &[f32],
    ) -> Result<()> {
        expect_length("dense gradient", parameter.len(), gradient.len())?;
        expect_length("dense state", self.state_len(parameter.len()), state.len())?;
        self.rule(lr, step).visit(Step { parameter, state, gradient });
        Ok(())
    }
}

struct Step<'a> {
    parameter: &'a mut [f32],
    state: &'a mut [f32],
    gradient: &'a [f32],
}

impl RuleVisitor for Step<'_> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let statistic = Statistic { total: 0.0, dim: self.parameter.len() };
        let state = RowState { row: &mut [], element: self.state };
        rule.step(self.parameter, state, self.gradient, statistic);
    }
}
