//! `EMBark`'s cost model and planner: published figures, bounds, budgets, constraints.

mod bytes;
mod common;
mod figures;
mod model;
mod properties;
mod published;
mod speed;
