//! What was published about 2D sparse parallelism and `EMBark`, against the simulator: every figure
//! with its tolerance, from the presets' inputs alone.

mod common;
#[path = "../support/data.rs"]
mod data;
mod embark;
mod inputs;
mod replicas;
