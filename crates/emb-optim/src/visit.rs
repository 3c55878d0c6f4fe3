//! The rules of this crate behind one type: [`Rule`].

use crate::{AdaGrad, Adam, RowRule, RowWiseAdaGrad, RowWiseAdam, RuleKind, Sgd, Slot};

/// One of the rules of this crate, ready for one step; [`visit`](Self::visit) makes it concrete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Stochastic gradient descent.
    Sgd(Sgd),
    /// Element-wise `AdaGrad`.
    AdaGrad(AdaGrad),
    /// Row-wise `AdaGrad`.
    RowWiseAdaGrad(RowWiseAdaGrad),
    /// Adam with lazy rows.
    Adam(Adam),
    /// Adam with one second moment a row.
    RowWiseAdam(RowWiseAdam),
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
            Self::AdaGrad(rule) => visitor.visit(rule),
            Self::RowWiseAdaGrad(rule) => visitor.visit(rule),
            Self::Adam(rule) => visitor.visit(rule),
            Self::RowWiseAdam(rule) => visitor.visit(rule),
        }
    }

    /// Which rule it is.
    pub fn kind(&self) -> RuleKind {
        match self {
            Self::Sgd(_) => RuleKind::Sgd,
            Self::AdaGrad(_) => RuleKind::AdaGrad,
            Self::RowWiseAdaGrad(_) => RuleKind::RowWiseAdaGrad,
            Self::Adam(_) => RuleKind::Adam,
            Self::RowWiseAdam(_) => RuleKind::RowWiseAdam,
        }
    }

    /// The state that the rule keeps for each row.
    pub fn slots(&self) -> &'static [Slot] {
        struct Slots;
        impl RuleVisitor for Slots {
            type Output = &'static [Slot];
            fn visit<R: RowRule>(self, rule: R) -> Self::Output {
                rule.slots()
            }
        }
        self.visit(Slots)
    }

    /// Whether a step needs all columns of a row at once, see [`RowRule::needs_whole_row`].
    pub fn needs_whole_row(&self) -> bool {
        struct Whole;
        impl RuleVisitor for Whole {
            type Output = bool;
            fn visit<R: RowRule>(self, rule: R) -> bool {
                rule.needs_whole_row()
            }
        }
        self.visit(Whole)
    }
}
