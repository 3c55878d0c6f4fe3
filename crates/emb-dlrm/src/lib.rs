//! emb-dlrm

#[cfg(feature = "data")]
pub mod data;
pub mod metrics;
