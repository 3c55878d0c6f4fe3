//! What processes tell each other beside NCCL: [`NcclControl`].
//!
//! NCCL itself says of a peer that has failed that it is gone, and not why. So ranks that failed
//! tell the others before they end their communicators, on connections of their own, a star around
//! rank 0:
//!
//! ```text
//!   rank 2                     rank 0                      rank 1, 3
//!     fails, tells rank 0 ----> takes the first, tells all --> know why
//!     ends its communicators                                   an error of the library: a moment
//!                                                              for the reason, then it is told
//!     or is killed: EOF ------> says who is gone ------------> know who
//!     or is late: asks -------> asks all, judges ------------> know for whom they wait
//! ```
//!
//! A thread a process listens; it sleeps while nothing is said, so that a step costs nothing. It
//! answers whatever the rank does, so that only a process that is stopped says nothing.
//! `message.rs` has the messages, `line.rs` a connection, `hear.rs` the thread, `desk.rs` what
//! rank 0 keeps for all, `missed.rs` who is to blame, `member.rs` what a set asks of it.

mod desk;
mod hear;
mod line;
mod member;
mod message;
mod missed;

pub(super) use member::Member;

use crate::failure::{Failure, FailureKind};
use crate::local::world::World;
use crate::{Error, Host, Options, Result};
use desk::Desk;
use line::Line;
use member::Seat;
use message::{Left, Message};
use std::collections::VecDeque;
use std::fmt;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// The name that stands for every set of a rank.
const EVERY: u64 = u64::MAX;

/// Most departures that are kept of sets that are not known here: they may be about to be made.
const EARLY: usize = 256;

/// Connections between the processes of a world, on which a rank that fails tells all others why,
/// before the library can tell them that it is gone.
///
/// With it, every error of [`Nccl`](crate::Nccl) between processes names the rank that failed first,
/// its operation and its step, also with subgroups and duplicates at work. A process that is killed
/// is told of by its connection, which breaks. When the time of an operation is over, ranks say where
/// they are, and the one that all wait for is named. Without it, such errors may be those of the
/// library, and come as late as the timeout.
///
/// Made of connections that the caller has: one from rank 0 to every other rank, as rank 0 accepts
/// them when ranks meet to learn the id. It has a thread that listens, and ends with the last of its
/// clones and of the sets that were made with it. After rank 0 has ended its part, the others are on
/// their own again.
///
/// ```
/// use emb_comm::NcclControl;
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
///
/// fn meet(rank: usize, world: usize, listener: TcpListener) -> Result<NcclControl, Box<dyn std::error::Error>> {
///     if rank > 0 {
///         let mut first = TcpStream::connect(listener.local_addr()?)?;
///         first.write_all(&[rank as u8])?;
///         return Ok(NcclControl::to_first(rank, world, first)?);
///     }
///     let mut others = Vec::new();
///     for _ in 1..world {
///         let (mut stream, _) = listener.accept()?;
///         let mut rank = [0];
///         stream.read_exact(&mut rank)?;
///         others.push((rank[0], stream));
///     }
///     others.sort_by_key(|(rank, _)| *rank);
///     Ok(NcclControl::of_first(others.into_iter().map(|(_, stream)| stream).collect())?)
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let (here, there) = (listener.try_clone()?, listener);
/// let other = std::thread::spawn(move || meet(1, 2, there).expect("rank 0 is there"));
/// let first = meet(0, 2, here)?;
/// // What a rank finds wrong before it joins, the others are told.
/// other.join().expect("no panic").abort("the disk is full");
/// while first.failure().is_none() {
///     std::thread::yield_now();
/// }
/// let failure = first.failure().expect("looked at above");
/// assert_eq!(failure.to_string(), "rank 1 gave up in step 0: the disk is full");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct NcclControl {
    pub(super) control: Arc<Control>,
}

/// The end of this process, with its thread.
pub(super) struct Control {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the threads of this process share.
struct Shared {
    me: usize,
    size: usize,
    /// Connections: on rank 0 to the ranks from 1 on, on others to rank 0.
    lines: Box<[Line]>,
    /// Has the failure.
    root: Arc<World<Host>>,
    /// The same world under the options of the run, with the steps of this rank, once it has joined.
    joined: Mutex<Option<Arc<World<Host>>>>,
    /// Whether the others know of the failure.
    told: AtomicBool,
    seats: Mutex<Vec<Arc<Seat>>>,
    /// How many departures are known, so that mostly nobody looks for them.
    departures: AtomicU64,
    /// Ranks that have ended: in which step, and when that was heard.
    ended: Mutex<Vec<(usize, u64, Instant)>>,
    /// Departures from sets that are not known here: rank, what it said, when that was heard.
    early: Mutex<VecDeque<(usize, Left, Instant)>>,
    /// What rank 0 keeps for all.
    desk: Mutex<Desk>,
    /// Whether this process ends.
    ends: AtomicBool,
}

impl NcclControl {
    /// The end of rank 0. `to_others[r - 1]` is connected to rank `r`, which makes its end of it by
    /// [`to_first`](Self::to_first); nothing is unread on it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn of_first(to_others: Vec<TcpStream>) -> Result<Self> {
        let size = to_others.len() + 1;
        Self::new(0, size, (1..size).zip(to_others).collect())
    }

    /// The end of rank `rank`, from 1 on, of `world`, with its connection to rank 0.
    ///
    /// # Errors
    /// A rank outside the world, or rank 0; the system refuses.
    pub fn to_first(rank: usize, world: usize, first: TcpStream) -> Result<Self> {
        if rank == 0 || rank >= world {
            return Err(Error::NoSuchRank { operation: "to_first", rank, world });
        }
        Self::new(rank, world, vec![(0, first)])
    }

    fn new(me: usize, size: usize, streams: Vec<(usize, TcpStream)>) -> Result<Self> {
        let refused = |rank: usize, error: std::io::Error| {
            Error::Space(format!("rank {me}, connection to rank {rank}: {error}"))
        };
        let lines = streams.into_iter();
        let lines: Result<Vec<Line>> =
            lines.map(|(rank, to)| Line::new(rank, to).map_err(|e| refused(rank, e))).collect();
        let shared = Arc::new(Shared {
            me,
            size,
            lines: lines?.into(),
            root: Arc::new(World::new(size, Options::default())),
            joined: Mutex::default(),
            told: AtomicBool::new(false),
            seats: Mutex::default(),
            departures: AtomicU64::new(0),
            ended: Mutex::default(),
            early: Mutex::default(),
            desk: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let mut thread = None;
        if size > 1 {
            let (listens, named) = (Arc::clone(&shared), std::thread::Builder::new());
            let started = named.name("nccl control".to_owned()).spawn(move || hear::hear(&listens));
            thread = Some(started.map_err(|error| refused(0, error))?);
        }
        Ok(Self { control: Arc::new(Control { shared, thread: Mutex::new(thread) }) })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.control.shared.me
    }

    /// Number of ranks.
    pub fn world(&self) -> usize {
        self.control.shared.size
    }

    /// Tells all ranks that this one gives up, before or after it has joined: they fail with
    /// `reason` instead of waiting.
    pub fn abort(&self, reason: &str) {
        let shared = &self.control.shared;
        let world = shared.world();
        world.fail(world.own_failure(FailureKind::Aborted, shared.me, reason));
        shared.tell();
    }

    /// What happened first, if any rank has failed.
    pub fn failure(&self) -> Option<Failure> {
        self.control.shared.root.failure()
    }
}

impl Shared {
    /// The world with the steps of this rank.
    fn world(&self) -> Arc<World<Host>> {
        Arc::clone(lock(&self.joined).as_ref().unwrap_or(&self.root))
    }

    /// The step that this rank is in.
    fn step(&self) -> u64 {
        self.world().step(self.me)
    }

    /// Tells all ranks of the failure, if there is one that they are not told of yet.
    fn tell(&self) {
        let Some(failure) = self.root.failure() else { return };
        if !self.told.swap(true, Ordering::AcqRel) {
            self.send(self.me, &Message::Failed(failure), self.me);
        }
    }

    /// Sends a message said of rank `of`: to rank 0, or from there to all but `except`.
    fn send(&self, of: usize, message: &Message, except: usize) {
        for line in self.lines.iter().filter(|line| line.rank != except && line.is_open()) {
            line.send(of, message);
        }
    }

    /// A failure that is known, here or from a peer, is told to all whom that tells more.
    fn fails(&self, failure: Failure, from: usize) {
        let before = self.root.failure();
        let after = self.root.explain(failure);
        let told = self.told.swap(true, Ordering::AcqRel);
        // Rank 0 knows first what all are to say.
        if self.me == 0 && (!told || before.as_ref() != Some(&after)) {
            self.send(0, &Message::Failed(after), from);
        }
    }

    /// A rank has left a set, or all of them: those that wait for it there are to know.
    fn departs(&self, rank: usize, left: Left) {
        let now = Instant::now();
        if left.set == EVERY {
            lock(&self.ended).push((rank, left.step, now));
        } else {
            let seats = lock(&self.seats);
            let Some(seat) = seats.iter().find(|seat| seat.name == left.set) else {
                let mut early = lock(&self.early);
                early.truncate(EARLY - 1);
                early.push_front((rank, left, now));
                return;
            };
            lock(&seat.gone).push((rank, left, now));
        }
        self.departures.fetch_add(1, Ordering::AcqRel);
    }

    /// This rank leaves a set, or all of them.
    fn leaves(&self, left: Left) {
        if self.me != 0 {
            return self.send(self.me, &Message::Left(left), self.me);
        }
        if lock(&self.desk).leave(0, left, self.size) {
            self.send(0, &Message::Left(left), 0);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let shared = &self.shared;
        let step = shared.step();
        shared.ends.store(true, Ordering::Release);
        for (rank, left) in lock(&shared.desk).overdue(None) {
            shared.send(rank, &Message::Left(left), rank);
        }
        shared.send(shared.me, &Message::Ends(step), shared.me);
        shared.lines.iter().for_each(Line::end);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for NcclControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { me, size, .. } = &*self.control.shared;
        f.debug_struct("NcclControl").field("rank", me).field("world", size).finish_non_exhaustive()
    }
}

/// A lock that a panic elsewhere does not take away: what it guards is changed in one go.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
