//! Whole trainings over ranks against one process.

mod checkpoints;
mod devices;
mod equality;
mod evaluation;
mod faults;
mod health;
#[path = "../support/hooked.rs"]
mod hooked;
#[path = "../support/opaque.rs"]
mod opaque;
mod options;
mod plan_files;
mod reports;
mod resume;
mod rules;
mod slowed;
mod support;
