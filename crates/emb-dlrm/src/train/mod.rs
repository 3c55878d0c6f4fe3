//! Training and evaluation: the loop around the model.

#[cfg(feature = "data")]
mod agree;
#[cfg(feature = "data")]
mod begin;
mod compare;
#[cfg(feature = "data")]
mod evaluate;
#[cfg(feature = "data")]
mod gather;
#[cfg(feature = "data")]
mod health;
mod names;
#[cfg(feature = "data")]
mod observer;
#[cfg(feature = "data")]
mod rank;
mod reduce;
#[cfg(feature = "data")]
mod report;
#[cfg(feature = "data")]
mod run;
#[cfg(feature = "data")]
mod saved;
#[cfg(feature = "data")]
mod timeline;
mod trainer;

#[cfg(feature = "data")]
pub use crate::device::Peers;
#[cfg(feature = "data")]
pub use evaluate::{evaluate, probability};
#[cfg(feature = "data")]
pub use health::{Bytes, Exposed, Health, Levels, SlowRank, Watch};
#[cfg(feature = "data")]
pub use observer::{Event, Observer, Silent};
#[cfg(feature = "data")]
pub use report::{Exchange, Report};
#[cfg(feature = "data")]
pub use run::{build, build_rank, train, train_among};
#[cfg(feature = "data")]
pub use saved::{Saved, ScoreOptions};
pub use trainer::{Rates, Samples, StepLoss, Trainer};
