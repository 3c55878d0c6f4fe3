//! Embedding tables over ranks against one process.

mod ahead;
mod collectives;
mod equality;
mod exchange_reports;
#[path = "../support/hooked.rs"]
mod hooked;
mod hostile;
mod lattice;
mod laws;
mod metered;
mod naive;
mod packed;
mod predicted;
mod published;
mod random_plans;
mod refusals;
mod replicas;
mod reports;
mod reshard;
mod support;
mod tier_reports;
mod tiered;
mod touched;
mod wire;
