//! From a configured [`Optimizer`] to the [`Rule`] of one step.

use crate::{RowRule, RowWiseAdaGrad, Sgd, Slot};

/// A configured update rule: everything but the step's learning rate and count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Row-wise AdaGrad.
    RowWiseAdaGrad {
        /// Added after the square root.
        eps: f32,
    },
}

impl Optimizer {
    /// The rule of step `step` (1 for the first) at learning rate `lr`.
    pub fn rule(&self, lr: f64, _step: u64) -> Rule {
        let lr = lr as f32;
        match *self {
            Self::Sgd => Rule::Sgd(Sgd { lr, max_gradient: None }),
            Self::RowWiseAdaGrad { eps } => {
                Rule::RowWiseAdaGrad(RowWiseAdaGrad { lr, eps, max_gradient: None })
            }
        }
    }

    /// The state that the rule keeps for each row.
    pub fn slots(&self) -> &'static [Slot] {
        self.rule(0.0, 1).slots()
    }
}

/// One of the rules of this crate, ready for one step; [`visit`](Self::visit) makes it concrete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Stochastic gradient descent.
    Sgd(Sgd),
    /// Row-wise AdaGrad.
    RowWiseAdaGrad(RowWiseAdaGrad),
}

/// Something generic over the rule, called once with the concrete one.
pub trait RuleVisitor {
    /// What the visit returns.
    type Output;

    /// Runs with the concrete rule.
    fn visit<R: RowRule>(self, rule: R) -> Self::Output;
}

impl Rule {
    /// Calls `visitor` with the concrete rule: the one `match` behind which kernels are generic.
    pub fn visit<V: RuleVisitor>(&self, visitor: V) -> V::Output {
        match *self {
            Self::Sgd(rule) => visitor.visit(rule),
            Self::RowWiseAdaGrad(rule) => visitor.visit(rule),
        }
    }

    /// The state that the rule keeps for each row.
    pub fn slots(&self) -> &'static [Slot] {
        match self {
            Self::Sgd(rule) => rule.slots(),
            Self::RowWiseAdaGrad(rule) => rule.slots(),
        }
    }
}
