//! The batches between the reading thread and the ranks, and who has had which.
//!
//! The source is called, and batches are copied, outside the lock: who holds it is never waited
//! for longer than a look around.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::data::{BadRows, Batch, Error, Result};

/// Batches that exist: one that a rank is at and two ahead of it.
const BATCHES: usize = 3;

/// Where the reader puts batches and every rank takes them.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// The reader waits here for something to do.
    orders: Condvar,
    /// The ranks wait here for a batch or a restart.
    news: Condvar,
}

/// What the reader shall do next.
pub(super) enum Order {
    /// Refill this batch, which nobody else holds.
    Fill(Arc<Batch>),
    /// Go to this sample.
    Restart(u64),
}

/// What a rank takes: a batch, or the end.
pub(super) struct Taken {
    /// `None` at the end of the data.
    pub(super) batch: Option<Arc<Batch>>,
    /// Rows skipped up to it.
    pub(super) skipped: BadRows,
    /// What tells it from others; 0 where nobody compares.
    pub(super) digest: u64,
}

/// A batch that some rank still needs.
#[derive(Debug)]
struct Filled {
    batch: Arc<Batch>,
    skipped: BadRows,
    digest: u64,
}

#[derive(Debug)]
struct State {
    /// Batches to refill, in turn: each has grown to its size after the first few.
    free: VecDeque<Arc<Batch>>,
    /// Batches that some rank still needs.
    filled: VecDeque<Filled>,
    /// Number of the first of them, counted from the last restart.
    first: u64,
    /// What follows the last of them, once the source has none left.
    end: Option<End>,
    /// Restarts done.
    restarts: u64,
    /// Why the last restart failed, if it did.
    refused: Option<Arc<Error>>,
    ranks: Vec<Rank>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum End {
    /// The end of the data, with the rows skipped up to it.
    Data(BadRows),
    /// An error that a restart may heal.
    Failed(Arc<Error>),
    /// The thread has ended.
    Stopped(String),
}

#[derive(Clone, Debug)]
struct Rank {
    /// Whether its end exists.
    lives: bool,
    /// Number of the batch it takes next, counted from the last restart.
    next: u64,
    /// The sample it wants to restart at; it takes nothing before that.
    asks: Option<u64>,
}

impl Queue {
    pub(super) fn new(world: usize) -> Self {
        let state = State {
            free: (0..BATCHES).map(|_| Arc::default()).collect(),
            filled: VecDeque::with_capacity(BATCHES),
            first: 0,
            end: None,
            restarts: 0,
            refused: None,
            ranks: vec![Rank { lives: true, next: 0, asks: None }; world],
            thread: None,
        };
        Self { state: Mutex::new(state), orders: Condvar::new(), news: Condvar::new() }
    }

    /// Keeps the handle of the reading thread for the last rank that leaves.
    pub(super) fn serve(&self, thread: JoinHandle<()>) {
        self.lock().thread = Some(thread);
    }

    /// Rank: waits for its next batch, `None` at the end of the data, with the rows skipped up to
    /// it. The batch counts as needed until it is given back.
    pub(super) fn take(&self, rank: usize) -> Result<Taken> {
        let mut state = self.lock();
        loop {
            // A restart that a stop cut short leaves its rank behind the batches.
            let place = state.ranks[rank].next.checked_sub(state.first);
            let found = place.and_then(|place| state.filled.get(place as usize));
            if let Some(Filled { batch, skipped, digest }) = found {
                let batch = Some(Arc::clone(batch));
                return Ok(Taken { batch, skipped: *skipped, digest: *digest });
            }
            match &state.end {
                Some(End::Data(skipped)) => {
                    return Ok(Taken { batch: None, skipped: *skipped, digest: 0 });
                }
                Some(End::Failed(error)) => return Err(Arc::clone(error).into()),
                Some(End::Stopped(reason)) => return Err(stopped(reason)),
                None => state = wait(&self.news, state),
            }
        }
    }

    /// Rank: is done with the batch it took last, and has dropped it.
    pub(super) fn give_back(&self, rank: usize) {
        self.lock().ranks[rank].next += 1;
        self.orders.notify_one();
    }

    /// Rank: asks for a restart and waits for it. It holds no batch.
    pub(super) fn restart(&self, rank: usize, row: u64) -> Result<()> {
        let mut state = self.lock();
        state.ranks[rank].asks = Some(row);
        self.orders.notify_one();
        // No further restart can follow unseen: it would need this rank to ask again.
        let before = state.restarts;
        while state.restarts == before {
            if let Some(End::Stopped(reason)) = &state.end {
                return Err(stopped(reason));
            }
            state = wait(&self.news, state);
        }
        state.refused.clone().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Rank: is gone and holds no batch. The last one gets the thread to join.
    pub(super) fn leave(&self, rank: usize) -> Option<JoinHandle<()>> {
        let mut state = self.lock();
        state.ranks[rank].lives = false;
        self.orders.notify_one();
        if state.ranks.iter().any(|rank| rank.lives) { None } else { state.thread.take() }
    }

    /// Reader: waits for something to do; `None` when all ranks are gone.
    pub(super) fn order(&self) -> Option<Order> {
        let mut state = self.lock();
        loop {
            if !state.ranks.iter().any(|rank| rank.lives) {
                return None;
            }
            state.recycle();
            match state.asked() {
                Some(Ok(row)) => return Some(Order::Restart(row)),
                Some(Err(error)) => {
                    state.restarted(Err(error));
                    self.news.notify_all();
                }
                None => {
                    if state.end.is_none()
                        && let Some(batch) = state.free.pop_front()
                    {
                        return Some(Order::Fill(batch));
                    }
                }
            }
            state = wait(&self.orders, state);
        }
    }

    /// Reader: has refilled a batch as ordered.
    pub(super) fn filled(
        &self,
        batch: Arc<Batch>,
        read: Result<usize>,
        skipped: BadRows,
        digest: u64,
    ) {
        let mut state = self.lock();
        match read {
            Ok(1..) => state.filled.push_back(Filled { batch, skipped, digest }),
            other => {
                state.free.push_back(batch);
                state.end = Some(match other {
                    Ok(_) => End::Data(skipped),
                    Err(error) => End::Failed(Arc::new(error)),
                });
            }
        }
        self.news.notify_all();
    }

    /// Reader: has restarted the source as ordered.
    pub(super) fn restarted(&self, result: Result<()>) {
        self.lock().restarted(result);
        self.news.notify_all();
    }

    /// Reader: ends for this reason.
    pub(super) fn stop(&self, reason: String) {
        self.lock().end = Some(End::Stopped(reason));
        self.news.notify_all();
    }

    /// A panic under the lock is the reader's and reaches the ranks by `stop`.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Frees the batches that every rank is done with. Ranks that are gone or ask for a restart
    /// need none; neither holds one.
    fn recycle(&mut self) {
        let needed = |rank: &&Rank| rank.lives && rank.asks.is_none();
        let first = self.ranks.iter().filter(needed).map(|rank| rank.next).min();
        while first.is_none_or(|first| self.first < first) {
            let Some(filled) = self.filled.pop_front() else { break };
            self.free.push_back(filled.batch);
            self.first += 1;
        }
    }

    /// The sample to restart at, once all ranks that live ask for one, and for the same.
    fn asked(&self) -> Option<Result<u64>> {
        let mut ranks = self.ranks.iter().enumerate().filter(|(_, rank)| rank.lives);
        let (first, row) = ranks.next().and_then(|(rank, state)| Some((rank, state.asks?)))?;
        let mut other = None;
        for (rank, state) in ranks {
            let asks = state.asks?;
            if asks != row {
                other = other.or(Some((rank, asks)));
            }
        }
        Some(match other {
            None => Ok(row),
            Some((other, other_row)) => Err(Error::Restart { first, row, other, other_row }),
        })
    }

    fn restarted(&mut self, result: Result<()>) {
        self.refused = result.err().map(Arc::new);
        self.end = self.refused.clone().map(End::Failed);
        self.first = 0;
        for rank in &mut self.ranks {
            (rank.next, rank.asks) = (0, None);
        }
        self.restarts += 1;
    }
}

fn stopped(reason: &str) -> Error {
    Error::Stopped { reason: reason.to_owned() }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}
