//! The cost of a step: against a reference that goes pair by pair, and what must hold of any plan.

mod agree;
mod bytes;
mod case;
mod formulas;
mod pairs;
mod parts;
mod properties;
#[path = "../embark/published.rs"]
mod published;
mod reference;
