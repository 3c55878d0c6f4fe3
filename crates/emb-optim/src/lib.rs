//! Update rules for embedding rows and dense parameters.
#![forbid(unsafe_code)]

mod optimizer;
mod rowwise_adagrad;
mod rule;
mod sgd;

pub use optimizer::{Optimizer, Rule, RuleVisitor};
pub use rowwise_adagrad::RowWiseAdaGrad;
pub use rule::{Extent, RowRule, RowState, Slot, Statistic, element_slots, row_slots};
pub use sgd::Sgd;
