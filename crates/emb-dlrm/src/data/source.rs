//! Where batches come from.

use std::path::PathBuf;

use serde::Serialize;

use super::{BadRows, Batch, Error, Result};

/// A stream of batches that can be read again from any position.
///
/// The same source in the same state gives the same samples in the same order.
pub trait Source: Send {
    /// Reads up to `limit` samples into `batch` and returns their number.
    ///
    /// Fewer than `limit` come only at the end of the data, then 0, for ever, until a restart.
    ///
    /// # Errors
    /// What the source cannot read. The samples before the fault in the same batch are not
    /// handed out, and further calls fail until a restart. A `limit` of 0 is refused.
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize>;

    /// Goes to the sample with this number, counted from 0: the beginning of an epoch, or the
    /// place where a run stopped. Past the end there are simply no samples.
    ///
    /// # Errors
    /// What the source cannot read on its way.
    fn restart_at(&mut self, row: u64) -> Result<()>;

    /// What this source is.
    fn describe(&self) -> SourceInfo;

    /// Goes back to the first sample.
    ///
    /// # Errors
    /// As [`restart_at`](Self::restart_at).
    fn restart(&mut self) -> Result<()> {
        self.restart_at(0)
    }

    /// Bad rows left out since the last restart.
    fn skipped(&self) -> BadRows {
        BadRows::default()
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        (**self).next(limit, batch)
    }

    fn restart_at(&mut self, row: u64) -> Result<()> {
        (**self).restart_at(row)
    }

    fn describe(&self) -> SourceInfo {
        (**self).describe()
    }

    fn skipped(&self) -> BadRows {
        (**self).skipped()
    }
}

/// What a source is, for start-up messages and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceInfo {
    /// Kind, such as `criteo` or `synthetic`.
    pub kind: &'static str,
    /// Files in reading order; empty for generated data.
    pub files: Vec<PathBuf>,
    /// Samples, where they are known without reading.
    pub rows: Option<u64>,
}

/// Reads a source from its first to its last sample and back to the first; returns the samples.
///
/// A check of a whole data set before a run: every row is parsed and every id mapped.
///
/// # Errors
/// The first error of the source.
pub fn check(source: &mut dyn Source) -> Result<u64> {
    const ROWS: usize = 8192;
    let mut batch = Batch::default();
    let mut rows = 0;
    source.restart()?;
    loop {
        match source.next(ROWS, &mut batch)? {
            0 => break,
            read => rows += read as u64,
        }
    }
    source.restart()?;
    Ok(rows)
}

/// Refuses batches of 0 samples, whose result would read as the end of the data.
pub(crate) fn check_limit(limit: usize) -> Result<()> {
    if limit > 0 {
        return Ok(());
    }
    let (option, value) = ("batch limit".to_owned(), "0".to_owned());
    Err(Error::Option { option, value, valid: "at least 1" })
}
