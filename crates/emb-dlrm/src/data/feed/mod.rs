//! Reads ahead on one background thread and gives every rank its share of each global batch.
//!
//! ```text
//!                    +-> rank 0: rows 0..43 of 128
//!  Source -> Queue --+-> rank 1: rows 43..86
//!  (thread)          +-> rank 2: rows 86..128
//! ```
//!
//! Three batches exist in all, whatever the number of ranks: one that the slowest rank is at and
//! two ahead of it. They are refilled in place, so nothing is allocated after warm-up.

mod queue;
mod reader;

use std::ops::Range;
use std::sync::Arc;

use super::{BadRows, Batch, Error, Result, Source, SourceInfo, source::check_limit};
use queue::Queue;

/// One rank's end of a source that is read ahead while the ranks compute.
///
/// One thread owns the source. Samples, order and errors are those of the source: all ranks see
/// the same global batches, end and errors, at their own pace. Dropping an end takes its rank out
/// of the world, and nothing waits for it any more; dropping the last one stops and joins the
/// thread, which takes as long as the batch that is being read.
#[derive(Debug)]
pub struct Feed {
    rank: usize,
    world: usize,
    info: Arc<SourceInfo>,
    skipped: BadRows,
    queue: Arc<Queue>,
    /// The batch that the only rank was lent.
    held: Option<Arc<Batch>>,
    /// This rank's samples of the batch it is at and of the one after; unused in a world of 1.
    own: [Batch; 2],
    /// Which of them it is at.
    at: usize,
    /// What follows, where it was read already.
    ahead: Option<Read>,
}

/// The rows of a global batch whose share was copied, `None` at the end, and the bad rows up to it.
type Read = Result<(Option<usize>, BadRows)>;

/// A rank's part of a global batch.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// This rank's samples; maybe none, in a batch of fewer samples than ranks.
    pub batch: &'a Batch,
    /// Samples of the global batch, at least 1.
    pub rows: usize,
}

impl Feed {
    /// Starts reading batches of `limit` samples ahead; returns the ends of ranks `0..world`.
    ///
    /// # Errors
    /// A limit of 0; a world of 0; the operating system refusing a thread.
    pub fn start<S: Source + 'static>(source: S, limit: usize, world: usize) -> Result<Vec<Self>> {
        check_limit(limit)?;
        if world == 0 {
            let (option, value) = ("ranks to read for".to_owned(), "0".to_owned());
            return Err(Error::Option { option, value, valid: "at least 1" });
        }
        let info = Arc::new(source.describe());
        let queue = Arc::new(Queue::new(world));
        queue.serve(reader::spawn(source, limit, Arc::clone(&queue))?);
        let end = |rank| Self {
            rank,
            world,
            info: Arc::clone(&info),
            skipped: BadRows::default(),
            queue: Arc::clone(&queue),
            held: None,
            own: <[Batch; 2]>::default(),
            at: 0,
            ahead: None,
        };
        Ok((0..world).map(end).collect())
    }

    /// The next share; `None` at the end of the data, again and again until a restart.
    ///
    /// A world of 1 is lent the batch as the source filled it, other ranks a copy of their rows.
    ///
    /// # Errors
    /// What the source cannot read, for every rank in the same words and again and again until a
    /// restart. A source that panicked has stopped for good.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what it refills")]
    pub fn next(&mut self) -> Result<Option<Share<'_>>> {
        if self.world == 1 {
            self.give_back();
            let (batch, skipped) = self.queue.take(self.rank)?;
            self.skipped = skipped;
            let Some(batch) = batch else { return Ok(None) };
            let rows = batch.rows;
            return Ok(Some(Share { batch: self.held.insert(batch), rows }));
        }
        self.advance().map(|rows| rows.map(|rows| Share { batch: &self.own[self.at], rows }))
    }

    /// The next share, and the one after it where there is one and where several ranks read: what
    /// they may begin with while they are still at the first. The one after is what `next` gives
    /// next.
    ///
    /// # Errors
    /// As [`next`](Self::next); what cannot be read of the one after is an error only then.
    pub fn next_pair(&mut self) -> Result<Option<(Share<'_>, Option<Share<'_>>)>> {
        if self.world == 1 {
            return Ok(self.next()?.map(|share| (share, None)));
        }
        let Some(rows) = self.advance()? else { return Ok(None) };
        let after = 1 - self.at;
        let read =
            self.ahead.insert(copy(&self.queue, (self.rank, self.world), &mut self.own[after]));
        let following = read.as_ref().ok().and_then(|&(rows, _)| rows);
        let share = |at: usize, rows| Share { batch: &self.own[at], rows };
        Ok(Some((share(self.at, rows), following.map(|rows| share(after, rows)))))
    }

    /// Goes to the next batch of several ranks; its rows, `None` at the end.
    fn advance(&mut self) -> Result<Option<usize>> {
        let read = match self.ahead.take() {
            Some(read) => {
                self.at = 1 - self.at;
                read
            }
            None => copy(&self.queue, (self.rank, self.world), &mut self.own[self.at]),
        };
        let (rows, skipped) = read?;
        self.skipped = skipped;
        Ok(rows)
    }

    /// Goes on from the sample with this number, counted from 0; every rank calls it with the
    /// same one and waits until the last rank that still lives has called it.
    ///
    /// Ranks may be at any batch; those that wait here keep no other from reading on.
    ///
    /// # Errors
    /// What the source cannot read on its way; ranks that name different samples. Every rank gets
    /// the error, and `next` fails with it until a restart that succeeds.
    pub fn restart_at(&mut self, row: u64) -> Result<()> {
        self.give_back();
        self.ahead = None;
        self.queue.restart(self.rank, row)?;
        self.skipped = BadRows::default();
        Ok(())
    }

    /// Bad rows left out since the last restart, as of the last batch that this rank was given,
    /// or the end.
    pub fn skipped(&self) -> BadRows {
        self.skipped
    }

    /// What the source is.
    pub fn describe(&self) -> SourceInfo {
        SourceInfo::clone(&self.info)
    }

    /// Lets a lent batch be refilled.
    fn give_back(&mut self) {
        if let Some(batch) = self.held.take() {
            drop(batch);
            self.queue.give_back(self.rank);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.held = None;
        if let Some(thread) = self.queue.leave(self.rank) {
            // A panic of the source is reported by `next`; here nobody asks for more.
            drop(thread.join());
        }
    }
}

/// Takes the next global batch and copies the rows of `rank` in a world of `world`.
fn copy(queue: &Queue, (rank, world): (usize, usize), own: &mut Batch) -> Read {
    let (batch, skipped) = queue.take(rank)?;
    let Some(batch) = batch else { return Ok((None, skipped)) };
    let rows = batch.rows;
    let copied = batch.copy_rows(share(rows, world, rank), own);
    drop(batch);
    queue.give_back(rank);
    copied?;
    Ok((Some(rows), skipped))
}

/// Samples of rank `rank` in a global batch of `rows`: contiguous and in rank order; sizes differ
/// by at most one, and the first ranks have more.
///
/// # Panics
/// If there is no such rank in a world of `world`.
pub fn share(rows: usize, world: usize, rank: usize) -> Range<usize> {
    assert!(rank < world, "rank {rank} in a world of {world}");
    let (each, more) = (rows / world, rows % world);
    let start = rank * each + rank.min(more);
    start..start + each + usize::from(rank < more)
}
