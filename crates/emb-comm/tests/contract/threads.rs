//! Cases of the failure contract among threads, under a watchdog.

use crate::rows::Row;
use emb_comm::conformance::contract::{
    CULPRIT, Case, Expected, Fault, Told, WORLD, judge, now, play,
};
use emb_comm::{Collective, FailureKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::time::Duration;

/// The timeout of ranks that are told; never reached.
const LONG: Duration = Duration::from_secs(30);
/// The timeout of ranks that find out by waiting.
const SHORT: Duration = Duration::from_secs(1);
/// Until when ranks are told that need not wait, and how much later than the timeout the others: at
/// once, and threads may wait for busy processors.
const SOON: Duration = Duration::from_secs(2);
/// Until when the watchdog waits for a rank.
const HANGS: Duration = Duration::from_mins(1);

/// Panics that nobody planned.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// How much of the contract a transport keeps in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    /// Ranks may find out by the timeout alone, where the contract says that they are told: a rank
    /// that has gone has said nothing.
    pub(crate) waits: bool,
    /// Every survivor names the rank at fault; else it ends with an error that names some rank.
    pub(crate) names: bool,
}

impl Promise {
    /// All of it.
    pub(crate) const WHOLE: Self = Self { waits: false, names: true };
}

/// Plays cases one after the other; `world` makes the ranks of each, for a timeout.
pub(crate) fn run<C: Collective + 'static>(
    transport: &'static str,
    cases: &[(Case, Promise)],
    world: impl Fn(Duration) -> Vec<C>,
) -> Vec<Row> {
    watch_panics();
    let rows = cases.iter().map(|&(case, promise)| {
        let waits = case.fault.takes_the_timeout() || promise.waits;
        let row = one(transport, case, promise, world(if waits { SHORT } else { LONG }));
        row.write();
        row
    });
    rows.collect()
}

/// Says nothing of the panic that is planned, and counts the others.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&"a planned panic") {
                PANICS.fetch_add(1, Ordering::Relaxed);
                before(panic);
            }
        }));
    });
}

fn one<C: Collective + 'static>(
    transport: &'static str,
    case: Case,
    promise: Promise,
    ranks: Vec<C>,
) -> Row {
    let before = PANICS.load(Ordering::Relaxed);
    let fell = Arc::new(Mutex::new(None));
    let (sender, ended) = mpsc::channel();
    for (rank, comm) in ranks.into_iter().enumerate() {
        let (sender, fell) = (sender.clone(), Arc::clone(&fell));
        std::thread::spawn(move || {
            let falls = move || {
                fell.lock().expect("no panic").get_or_insert_with(now);
                if matches!(case.fault, Fault::Stalls | Fault::NeverCalls) {
                    std::thread::sleep(2 * SHORT);
                }
            };
            let told = catch_unwind(AssertUnwindSafe(|| play(comm, case, &falls)));
            // Without a receiver, the watchdog has bitten.
            let _ = sender.send((rank, told.ok()));
        });
    }
    drop(sender);
    let mut told: Vec<Option<Told>> = vec![None; WORLD];
    let mut panicked = Vec::new();
    let mut findings = Vec::new();
    for _ in 0..WORLD {
        match ended.recv_timeout(HANGS) {
            Ok((rank, Some(what))) => told[rank] = what,
            Ok((rank, None)) => panicked.push(rank),
            Err(_) => {
                findings.push(format!("ranks hang; {told:?} have ended"));
                break;
            }
        }
    }
    let planned: &[usize] = if case.fault == Fault::Panics { &[CULPRIT] } else { &[] };
    if panicked != planned || PANICS.load(Ordering::Relaxed) != before {
        findings.push(format!("ranks {panicked:?} panicked, planned were {planned:?}"));
    }
    let fell = fell.lock().expect("no panic").unwrap_or_default();
    findings.extend(if promise.names {
        judge_all(case, promise, &told, fell)
    } else {
        judge_loosely(case, &told, fell)
    });
    Row::of(transport, case, &told, fell, findings)
}

/// The contract as it is written.
fn judge_all(case: Case, promise: Promise, told: &[Option<Told>], fell: Duration) -> Vec<String> {
    let waits = case.fault.takes_the_timeout() || promise.waits;
    let limit = if waits { SHORT + SOON } else { SOON };
    let goes = [Fault::Leaves, Fault::Panics].contains(&case.fault) || promise.waits;
    let there: Vec<usize> = (0..WORLD).filter(|&rank| rank != CULPRIT || !goes).collect();
    let mut told = told.to_vec();
    for told in told.iter_mut().flatten() {
        // The rank at fault comes later than the others are told.
        if waits && told.rank == CULPRIT {
            told.at = fell;
        }
        if promise.waits && told.kind == FailureKind::Missing {
            told.kind = Expected::of(case).kinds[0];
        }
    }
    judge(case, &told, &there, fell, limit)
}

/// Every survivor has an error that names some rank, in time.
fn judge_loosely(case: Case, told: &[Option<Told>], fell: Duration) -> Vec<String> {
    let mut findings = Vec::new();
    for rank in (0..WORLD).filter(|&rank| rank != CULPRIT) {
        match &told[rank] {
            None => findings.push(format!("rank {rank} was not told")),
            Some(told) if told.ranks.is_empty() => {
                findings.push(format!("rank {rank} is told of no rank: {}", told.message));
            }
            // A rank that is told by nobody waits for one that itself has waited.
            Some(told) if told.at.saturating_sub(fell) > 2 * SHORT + SOON => {
                findings.push(format!("rank {rank} is told of {} late", case.name()));
            }
            Some(_) => {}
        }
    }
    findings
}
