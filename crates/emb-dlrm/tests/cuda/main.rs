//! Training on GPUs, or on the fake driver with which `cargo xtask test-simt` runs this.
//!
//! Without a driver each test says so and passes; those of `driver.rs` want none.

mod checkpoints;
mod driver;
mod overlap;
mod parity;
mod processes;
mod refusals;
mod support;
mod transport;
