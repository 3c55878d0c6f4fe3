//! Embedding tables over ranks against one process.

mod ahead;
mod collectives;
mod equality;
mod predicted;
mod refusals;
mod replicas;
mod reports;
mod support;
