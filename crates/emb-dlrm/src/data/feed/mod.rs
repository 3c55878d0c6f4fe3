//! Reads ahead on one background thread and gives every rank its share of each global batch.
//!
//! ```text
//!                    +-> rank 0: rows 0..43 of 128
//!  Source -> Queue --+-> rank 1: rows 43..86
//!  (thread)          +-> rank 2: rows 86..128
//! ```
//!
//! Where ranks are processes, each has a source, reader and queue of its own, which read the same, and
//! takes its rows alone. That they do read the same is for the ranks to compare: [`Share::seen`].
//!
//! Three batches exist in all, whatever the number of ranks: one that the slowest rank is at and
//! two ahead of it. They are refilled in place, so nothing is allocated after warm-up.

mod digest;
mod queue;
mod reader;

use std::ops::Range;
use std::sync::Arc;

use super::{BadRows, Batch, Error, Result, Source, SourceInfo, source::check_limit};
use queue::{Queue, Taken};

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
    /// Which of the queue's readers this is: its rank, or the only one.
    seat: usize,
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
    ahead: Option<Result<Read>>,
    /// Of all that was read since the last restart; `None` where ranks share a source.
    seen: Option<u64>,
}

/// A global batch whose share was copied.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Its rows; `None` at the end.
    rows: Option<usize>,
    /// Bad rows up to it.
    skipped: BadRows,
    /// What tells it from others.
    digest: u64,
}

/// A rank's part of a global batch.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// This rank's samples; maybe none, in a batch of fewer samples than ranks.
    pub batch: &'a Batch,
    /// Samples of the global batch, at least 1.
    pub rows: usize,
    /// What tells all that was read up to here, and what follows as far as it was read, from other
    /// data; 0 where all ranks share one source, which needs no comparison.
    pub seen: u64,
    /// Why what follows can't be read, as far as that is known; the next call returns it.
    pub trouble: Option<&'a Error>,
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
        queue.serve(reader::spawn(source, limit, false, Arc::clone(&queue))?);
        let end = |rank| Self::new(rank, world, rank, Arc::clone(&info), Arc::clone(&queue));
        Ok((0..world).map(end).collect())
    }

    /// Starts reading batches of `limit` samples ahead for rank `rank` of `world` alone: every other
    /// rank has a source of its own, in a process of its own.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn one_of<S: Source + 'static>(
        source: S,
        limit: usize,
        rank: usize,
        world: usize,
    ) -> Result<Self> {
        assert!(rank < world, "rank {rank} in a world of {world}");
        check_limit(limit)?;
        let info = Arc::new(source.describe());
        let queue = Arc::new(Queue::new(1));
        queue.serve(reader::spawn(source, limit, true, Arc::clone(&queue))?);
        let mut end = Self::new(rank, world, 0, info, queue);
        end.seen = Some(0);
        Ok(end)
    }

    fn new(
        rank: usize,
        world: usize,
        seat: usize,
        info: Arc<SourceInfo>,
        queue: Arc<Queue>,
    ) -> Self {
        let (skipped, own) = (BadRows::default(), <[Batch; 2]>::default());
        let (held, ahead, seen) = (None, None, None);
        Self { rank, world, seat, info, skipped, queue, held, own, at: 0, ahead, seen }
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
            let Taken { batch, skipped, .. } = self.queue.take(self.seat)?;
            self.skipped = skipped;
            let Some(batch) = batch else { return Ok(None) };
            let rows = batch.rows;
            return Ok(Some(Share {
                batch: self.held.insert(batch),
                rows,
                seen: 0,
                trouble: None,
            }));
        }
        let rows = self.advance()?;
        let (at, seen) = (self.at, self.seen.unwrap_or(0));
        Ok(rows.map(|rows| Share { batch: &self.own[at], rows, seen, trouble: None }))
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
        let read = self.read(after);
        let seen = self.seen.unwrap_or(0);
        let (own, read) = (&self.own, &*self.ahead.insert(read));
        let share = |at: usize, rows, trouble| Share { batch: &own[at], rows, seen, trouble };
        let following = read.as_ref().ok().and_then(|read| read.rows);
        let following = following.map(|rows| share(after, rows, None));
        Ok(Some((share(self.at, rows, read.as_ref().err()), following)))
    }

    /// Goes to the next batch of several ranks; its rows, `None` at the end.
    fn advance(&mut self) -> Result<Option<usize>> {
        let read = match self.ahead.take() {
            Some(read) => {
                self.at = 1 - self.at;
                read
            }
            None => self.read(self.at),
        };
        let Read { rows, skipped, .. } = read?;
        self.skipped = skipped;
        Ok(rows)
    }

    /// Takes the next global batch and copies this rank's rows.
    fn read(&mut self, into: usize) -> Result<Read> {
        let read = copy(&self.queue, self.seat, (self.rank, self.world), &mut self.own[into]);
        if let Some(seen) = &mut self.seen {
            let this = match &read {
                Ok(Read { rows: Some(_), digest, .. }) => *digest,
                Ok(Read { rows: None, .. }) => digest::END,
                Err(_) => digest::ERROR,
            };
            *seen = digest::follow(*seen, this);
        }
        read
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
        let restarted = self.queue.restart(self.seat, row);
        let seen = digest::follow(0, row);
        let failed = || digest::follow(seen, digest::ERROR);
        let seen = if restarted.is_ok() { seen } else { failed() };
        self.seen = self.seen.map(|_| seen);
        restarted?;
        self.skipped = BadRows::default();
        Ok(())
    }

    /// Bad rows left out since the last restart, as of the last batch that this rank was given,
    /// or the end.
    pub fn skipped(&self) -> BadRows {
        self.skipped
    }

    /// [`Share::seen`] as of the last batch that was taken, the end, or what could not be read.
    pub fn seen(&self) -> u64 {
        self.seen.unwrap_or(0)
    }

    /// What the source is.
    pub fn describe(&self) -> SourceInfo {
        SourceInfo::clone(&self.info)
    }

    /// Lets a lent batch be refilled.
    fn give_back(&mut self) {
        if let Some(batch) = self.held.take() {
            drop(batch);
            self.queue.give_back(self.seat);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.held = None;
        if let Some(thread) = self.queue.leave(self.seat) {
            // A panic of the source is reported by `next`; here nobody asks for more.
            drop(thread.join());
        }
    }
}

/// Takes the next global batch and copies the rows of `rank` in a world of `world`.
fn copy(
    queue: &Queue,
    seat: usize,
    (rank, world): (usize, usize),
    own: &mut Batch,
) -> Result<Read> {
    let Taken { batch, skipped, digest } = queue.take(seat)?;
    let Some(batch) = batch else { return Ok(Read { rows: None, skipped, digest }) };
    let rows = batch.rows;
    let copied = batch.copy_rows(share(rows, world, rank), own);
    drop(batch);
    queue.give_back(seat);
    copied?;
    Ok(Read { rows: Some(rows), skipped, digest })
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
