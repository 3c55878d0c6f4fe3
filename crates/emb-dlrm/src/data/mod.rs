//! Where samples come from: Criteo files, synthetic data, and a look into files.
//!
//! ```text
//!  paths, patterns -> files -> stream (plain, gzip, zstd) -> lines -> rows -> Criteo ---+
//!                                                                                      Source -> Feed -> a Share of each
//!  seed, sample index -> Zipf ids, dense values, planted teacher -> Synthetic ---------+                Batch per rank
//! ```
//!
//! A [`Source`] refills a [`Batch`] in place. It knows nothing of tables' weights, ranks or models.
//! A [`Feed`] reads it ahead for all ranks, of which one is the ordinary case.
//! Bad input is refused with file, line, column and text; memory is bounded whatever a file holds.
//!
//! ```
//! use emb_dlrm::data::Feed;
//! use emb_dlrm::data::synthetic::{Feature, Options, Synthetic};
//!
//! let features = vec![Feature::new("user", 1000), Feature::new("item", 50_000)];
//! let source = Synthetic::new(features, Options { rows: Some(300), ..Options::default() })?;
//! let ranks = Feed::start(source, 128, 2)?;
//! let mut threads = Vec::new();
//! for mut feed in ranks {
//!     threads.push(std::thread::spawn(move || {
//!         let mut rows = Vec::new();
//!         while let Some(share) = feed.next()? {
//!             assert_eq!(share.batch.dense.len(), share.batch.rows * 13);
//!             rows.push((share.batch.rows, share.rows));
//!         }
//!         Ok::<_, emb_dlrm::data::Error>(rows)
//!     }));
//! }
//! for thread in threads {
//!     let rows = thread.join().expect("no panic")?;
//!     assert_eq!(rows, [(64, 128), (64, 128), (22, 44)]);
//! }
//! # Ok::<(), emb_dlrm::data::Error>(())
//! ```

mod bad_rows;
mod batch;
mod column;
mod criteo;
mod distinct;
mod error;
mod feed;
pub mod files;
pub mod inspect;
mod lines;
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
pub(crate) use distinct::mix;
pub use error::Error;
pub use feed::{Feed, Share, share};
pub use row::Labels;
pub use source::{Source, SourceInfo, check};

/// The result of every fallible call of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;
