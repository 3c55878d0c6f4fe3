//! The one error type of sharded embeddings.

/// Why embeddings over ranks can't be made, or a step of them didn't happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A plan, optimizer or feature that can't be executed, by name of its table.
    #[error("table {table:?}: {what}")]
    Table {
        /// Table name.
        table: String,
        /// What can't be executed, and why.
        what: String,
    },
    /// Arguments that don't fit together.
    #[error("sharded embeddings: {0}")]
    Mismatch(String),
    /// A kernel refused its input or ran out of memory.
    #[error(transparent)]
    Kernel(#[from] emb_kernels::Error),
    /// Optimizer state that doesn't fit together.
    #[error(transparent)]
    Optimizer(#[from] emb_optim::Error),
    /// A collective failed, or a peer gave up.
    #[error(transparent)]
    Comm(#[from] emb_comm::Error),
    /// A plan that doesn't know what it is asked for.
    #[error(transparent)]
    Plan(#[from] emb_shard::Error),
}

/// The result of every fallible call of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Refuses a table by name.
pub(super) fn refuse<T>(table: &str, what: impl Into<String>) -> Result<T> {
    Err(Error::Table { table: table.to_owned(), what: what.into() })
}
