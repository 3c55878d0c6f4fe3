//! From a placement for each table to a plan: [`PlanBuilder`], [`PlanBuilder::auto`].

mod auto;
mod builder;
mod fit;
mod loads;
mod place;
mod placement;

pub use auto::AutoOptions;
pub use builder::PlanBuilder;
pub use fit::DoesNotFit;
pub use placement::{PlaceOptions, Placement, RowCut};

pub(crate) use loads::Loads;
pub(crate) use place::{usual_exchange, usual_sync};
