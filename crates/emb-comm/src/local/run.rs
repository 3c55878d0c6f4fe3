//! Ranks as threads: [`run`], [`Guard`].

use super::world::World;
use super::{Local, Options};
use crate::failure::{Failure, FailureKind};
use crate::{Host, Space};
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, scope};

/// Runs `work` on `world` threads, one a rank, and returns what they return, by rank.
///
/// ```
/// use emb_comm::{Collective, Error, Options, run};
///
/// let sums = run(4, &Options::default(), |rank| {
///     let mut sum = [rank.rank() as f32];
///     rank.all_reduce(&mut sum)?;
///     Ok::<_, Error>(sum[0])
/// })?;
/// assert_eq!(sums, [6.0; 4]);
///
/// let failure = run(4, &Options::default(), |rank| {
///     rank.set_step(5);
///     if rank.rank() == 2 {
///         return Err("out of samples".to_owned());
///     }
///     rank.barrier().map_err(|error| error.to_string())
/// });
/// let failure = failure.expect_err("rank 2 does not come");
/// assert_eq!(failure.to_string(), "rank 2 failed in step 5: out of samples");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What happened first, if any rank returned an error, panicked, or gave up, or any collective
/// failed. The other ranks' collectives fail at once; the call returns when all threads have
/// ended, which a rank that never comes back from its own work can prevent.
pub fn run<R, E>(
    world: usize,
    options: &Options,
    work: impl Fn(&mut Local) -> Result<R, E> + Sync,
) -> Result<Vec<R>, Failure>
where
    R: Send,
    E: Display,
{
    run_over(vec![Host; world], options, work)
}

/// [`run`], with one rank for each of `spaces`.
///
/// # Errors
/// As [`run`].
pub fn run_over<S: Space, R, E>(
    spaces: Vec<S>,
    options: &Options,
    work: impl Fn(&mut Local<S>) -> Result<R, E> + Sync,
) -> Result<Vec<R>, Failure>
where
    R: Send,
    E: Display,
{
    let ranks = Local::over(spaces, options);
    let Some(first) = ranks.first() else { return Ok(Vec::new()) };
    let world = Arc::clone(&first.world);
    let work = &work;
    let results: Vec<Option<R>> = scope(|scope| {
        let threads: Vec<_> = ranks
            .into_iter()
            .enumerate()
            .map(|(rank, mut local)| {
                let named = Builder::new().name(format!("rank {rank}"));
                let thread = named.spawn_scoped(scope, move || one(&mut local, rank, work));
                if let Err(error) = &thread {
                    let reason = format!("its thread did not start: {error}");
                    world.explain(world.own_failure(FailureKind::Error, rank, &reason));
                }
                thread.ok()
            })
            .collect();
        threads.into_iter().map(|thread| thread?.join().ok().flatten()).collect()
    });
    match world.failure() {
        Some(failure) => Err(failure),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

/// The work of one rank. Its failure is known to all before this returns.
fn one<S: Space, R, E: Display>(
    local: &mut Local<S>,
    rank: usize,
    work: &impl Fn(&mut Local<S>) -> Result<R, E>,
) -> Option<R> {
    let (kind, reason) = match catch_unwind(AssertUnwindSafe(|| work(local))) {
        Ok(Ok(result)) => return Some(result),
        Ok(Err(error)) => (FailureKind::Error, error.to_string()),
        Err(panic) => (FailureKind::Panic, text(panic.as_ref()).to_owned()),
    };
    let world = &local.world;
    world.explain(world.own_failure(kind, rank, &reason));
    None
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let string = panic.downcast_ref::<String>().map(String::as_str);
    string.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Tells all ranks that this one failed, unless [`done`](Self::done) is called: for threads that
/// [`run`] does not start.
///
/// ```
/// use emb_comm::{Collective, FailureKind, Local, Options};
///
/// let mut ranks = Local::world(2, &Options::default()).into_iter();
/// let (mut first, second) = (ranks.next().expect("rank 0"), ranks.next().expect("rank 1"));
/// let thread = std::thread::spawn(move || {
///     let guard = second.guard();
///     let samples: usize = "none".parse()?; // returns early, so the guard is dropped
///     guard.done();
///     Ok::<_, std::num::ParseIntError>(samples)
/// });
/// let error = first.barrier().expect_err("rank 1 fails");
/// assert_eq!(first.failure().map(|failure| failure.kind()), Some(FailureKind::Error));
/// # thread.join().expect("no panic").expect_err("not a number");
/// ```
#[must_use = "dropped at once, it fails the world"]
pub struct Guard<S: Space = Host> {
    world: Arc<World<S>>,
    rank: usize,
    armed: bool,
}

impl<S: Space> Guard<S> {
    pub(super) fn new(world: Arc<World<S>>, rank: usize) -> Self {
        Self { world, rank, armed: true }
    }

    /// The rank's work has ended well.
    pub fn done(mut self) {
        self.armed = false;
    }
}

impl<S: Space> Drop for Guard<S> {
    fn drop(&mut self) {
        if self.armed {
            let panics = std::thread::panicking();
            let kind = if panics { FailureKind::Panic } else { FailureKind::Error };
            self.world.explain(self.world.own_failure(kind, self.rank, ""));
        }
    }
}

impl<S: Space> std::fmt::Debug for Guard<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("rank", &self.rank).finish_non_exhaustive()
    }
}
