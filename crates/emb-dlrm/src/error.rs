//! The one error type of this crate.

use std::path::{Path, PathBuf};

/// What went wrong, with the names and values a person needs to find it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that can't be honoured.
    #[error("{0}")]
    Config(String),
    /// A feature that this build lacks.
    #[error("this build has no {0}: build with --features {0}")]
    NotBuilt(&'static str),
    /// What failed on one of several processes, with its rank and host.
    #[error("{rank}: {source}")]
    On {
        /// The rank and its host.
        rank: String,
        /// What failed.
        source: Box<Error>,
    },
    /// Data that this rank can't read, while others can.
    #[error("{what}; {others} can read on: compare the files, for example with sha256sum")]
    OnlyHere {
        /// When, and what can't be read: file, line and column.
        what: String,
        /// The ranks that can.
        others: String,
    },
    /// A kernel refused its input or ran out of memory.
    #[error(transparent)]
    Kernel(#[from] emb_kernels::Error),
    /// An update rule refused its options.
    #[error(transparent)]
    Optimizer(#[from] emb_optim::Error),
    /// Data that can't be read.
    #[cfg(feature = "data")]
    #[error(transparent)]
    Data(#[from] crate::data::Error),
    /// A plan that can't be made.
    #[error(transparent)]
    Plan(#[from] emb_shard::Error),
    /// Tables that don't fit on the machines: which one, and how many bytes are missing.
    #[error("{0}")]
    Infeasible(String),
    /// Tables over ranks: a plan that can't be executed, or a step that didn't happen.
    #[error(transparent)]
    Sharded(#[from] crate::sharded::Error),
    /// A collective failed, or a peer gave up.
    #[error(transparent)]
    Comm(#[from] emb_comm::Error),
    /// A run over ranks failed: which rank, in which step, and why.
    #[error(transparent)]
    Rank(#[from] emb_comm::Failure),
    /// Processes that cannot start together, or one of them ended.
    #[error(transparent)]
    Launch(#[from] crate::launch::Error),
    /// Metrics over scores that have none.
    #[error(transparent)]
    Metric(#[from] crate::metrics::Error),
    /// The loss became NaN or infinite; nothing of this step was applied.
    #[error(
        "step {step}: the loss is {loss} (learning rates: tables {lr:e}, dense {dense_lr:e}); \
         first non-finite tensor: {tensor}"
    )]
    NonFinite {
        /// Step, from 1.
        step: u64,
        /// Mean loss of the batch.
        loss: f64,
        /// Learning rate of the embedding tables in this step.
        lr: f64,
        /// Learning rate of the dense part in this step.
        dense_lr: f64,
        /// Name of the first tensor, in the order of the forward pass, that is not finite.
        tensor: String,
    },
    /// A checkpoint that can't be read, or doesn't fit.
    #[error("checkpoint {path}: {what}", path = path.display())]
    Checkpoint {
        /// File or folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A disk that is too full for a checkpoint.
    #[error("{path}: {action}: {source}: {room}", path = path.display())]
    NoRoom {
        /// What was tried.
        action: &'static str,
        /// The file, which is gone again.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
        /// How much room is needed, how much there is, and what to do.
        room: String,
    },
    /// A file operation failed.
    #[error("{path}: {action}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn checkpoint(path: &Path, what: impl Into<String>) -> Self {
        Self::Checkpoint { path: path.to_owned(), what: what.into() }
    }
}
