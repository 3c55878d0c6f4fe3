//! Where samples come from: Criteo files, synthetic data, and a look into files.
//!
//! ```text
//!  paths, patterns -> files -> stream (plain, gzip, zstd) -> lines -> rows -> Criteo ---+
//!                                                                                      Source -> Prefetch -> Batch
//!  seed, sample index -> Zipf ids, dense values, planted teacher -> Synthetic ---------+
//! ```
//!
//! A [`Source`] refills a [`Batch`] in place. It knows nothing of tables' weights, ranks or models.
//! Bad input is refused with file, line, column and text; memory is bounded whatever a file holds.
//!
//! ```
//! use emb_dlrm::data::synthetic::{Feature, Options, Synthetic};
//! use emb_dlrm::data::{Batch, Prefetch, Source};
//!
//! let features = vec![Feature::new("user", 1000), Feature::new("item", 50_000)];
//! let source = Synthetic::new(features, Options { rows: Some(300), ..Options::default() })?;
//! let mut source = Prefetch::new(source, 128)?;
//! let mut batch = Batch::default();
//! let mut rows = 0;
//! while source.next(128, &mut batch)? > 0 {
//!     rows += batch.rows;
//!     assert_eq!(batch.dense.len(), batch.rows * 13);
//!     assert_eq!(batch.sparse.batch(), batch.rows);
//! }
//! assert_eq!(rows, 300);
//! # Ok::<(), emb_dlrm::data::Error>(())
//! ```

mod bad_rows;
mod batch;
mod column;
mod criteo;
mod distinct;
mod error;
pub mod files;
pub mod inspect;
mod lines;
mod prefetch;
mod row;
mod rows;
mod scan;
mod source;
mod stream;
pub mod synthetic;

#[cfg(test)]
mod tests;

pub use bad_rows::{BadRow, BadRowPolicy, BadRows, Column, Reason};
pub use batch::Batch;
pub use column::{DENSE, IdPolicy, SPARSE, SparseColumn, check_columns};
pub use criteo::{Criteo, CriteoOptions};
pub use distinct::Distinct;
pub use error::Error;
pub use prefetch::Prefetch;
pub use row::Labels;
pub use source::{Source, SourceInfo, check};

/// The result of every fallible call of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;
