//! Checkpoints: weights, optimizer state, step and configuration, complete or absent.
//!
//! A checkpoint is a folder. `manifest.json` names one safetensors file, with the size and SHA-256
//! of every tensor, and carries the configuration. Saving writes a new file beside the old one and
//! then replaces the manifest in one rename, so an interrupted save leaves the old checkpoint and
//! never half of a new one.
//!
//! Tensors know nothing of ranks or plans. Rows are in the order of their table, whatever order a plan
//! cuts its tiers in ([`TablePlan::order`](emb_shard::TablePlan::order)): no permutation is lost,
//! for none is stored, and any other plan continues. Names are: `<table>/weight` `[rows, dim]` in the table's own
//! type, `<table>/<slot>` (`[rows]` or `[rows, dim]`), `dense/<parameter>` and
//! `dense/<parameter>/<slot>`. Replicas are equal when they are saved, so that what each of them keeps
//! for itself between two syncs is 0: it is left out, and 0 after loading. Data is streamed: no tensor is ever whole in memory.

mod entry;
mod manifest;
#[cfg(feature = "data")]
mod moved;
mod read;
#[cfg(feature = "data")]
mod resume;
mod unfinished;
mod verify;
mod write;

pub use manifest::{Manifest, Position, TensorRecord, prepare};
#[cfg(feature = "data")]
pub(crate) use moved::reposition;
pub use read::{LoadReport, load};
#[cfg(feature = "data")]
pub use resume::to_resume;
pub use verify::verify;
pub use write::{buffers, lend, save};

/// Elements read or written at a time.
const CHUNK: usize = 1 << 18;
