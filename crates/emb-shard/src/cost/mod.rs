//! What a step of a plan costs, in seconds and bytes: [`StepModel`].
//!
//! ```text
//!   Tier + Workload --Demand--> Load of every position     bytes that add up
//!   Load + Mesh on a Topology --Volumes--> bytes of every rank over every level
//!   bytes + rates --price--> Parts of every rank --slowest in each part--> Estimate
//! ```
//!
//! [`Ledger`] keeps the loads of the tables placed so far, so that planners try placements one by
//! one.

mod check;
mod classes;
mod demand;
mod dense;
mod embark;
mod estimate;
mod ledger;
mod load;
mod model;
mod options;
mod price;
mod shape;
mod shard;
mod statistics;
mod sync;
mod tiers;
mod typical;
mod volume;

pub use embark::{EmbarkBucketCost, EmbarkBuckets, EmbarkCost, EmbarkModel};
pub use estimate::{Estimate, LevelBytes, Parts, PeakBytes, RankEstimate};
pub use ledger::Ledger;
pub use model::{CostModel, StepModel};
pub use options::{CostOptions, GradientSum, Overlap, ReplicaWay};
pub use tiers::{ByLink, Duplicates, GroupSpread, TierCut, TierTraffic, TieredLookups};
pub(crate) use typical::{EvenCut, Typical};
