#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod kind;
mod rule;
mod sum_of_squares;

mod adagrad;
mod adam;
mod bias;
mod rowwise_adagrad;
mod rowwise_adam;
mod sgd;
mod visit;

mod config;
mod optimizer;
mod replica;

mod cuda;
mod dense;
mod schedule;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use adagrad::AdaGrad;
pub use adam::Adam;
pub use bias::BiasCorrection;
pub use config::{Decay, OptimizerConfig};
pub use cuda::RULES_CUH;
pub use dense::DenseOptimizer;
pub use error::{Error, Result};
pub use kind::RuleKind;
pub use optimizer::Optimizer;
pub use replica::{
    GroupGradient, ReplicaRule, ReplicaScaling, ReplicaSync, fold_history, history_total,
};
pub use rowwise_adagrad::RowWiseAdaGrad;
pub use rowwise_adam::RowWiseAdam;
pub use rule::{Extent, RowRule, RowState, Slot, Statistic, element_slots, row_slots};
pub use schedule::{PolynomialDecay, Schedule, StepDecay};
pub use sgd::Sgd;
pub use sum_of_squares::{limit_norm, sum_of_squares, sum_of_squares_decayed};
pub use visit::{Rule, RuleVisitor};
