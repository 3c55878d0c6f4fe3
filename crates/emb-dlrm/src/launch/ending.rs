//! How a rank's process ended, and which of many ends was the first cause: [`judge`].

use super::{PEER_FAILED, status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

const JOB_ENDED: i32 = status::JOB_ENDED as i32;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Nobody knows: the connection to its host broke.
    Gone,
    /// It did not begin.
    NotStarted(String),
    /// It did not come on, and was ended after the others had given up on it.
    Stalled,
}

/// The end of one rank's process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Its rank.
    pub rank: usize,
    /// Its host.
    pub host: String,
    /// Its number on the host.
    pub pid: u32,
    /// How it ended.
    pub how: How,
    /// Seconds it ran.
    pub seconds: f64,
    /// The step it was in; 0 before the first.
    pub step: u64,
    /// Ranks that it waited for in vain.
    pub missing: Vec<usize>,
    /// Whether it was told to end, as the others are when one failed.
    pub told: bool,
    /// Whether who had started it was gone when it ended: `mpirun`, or its helper on that host.
    pub orphaned: bool,
}

/// What the ends of all ranks mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The first cause.
    pub cause: End,
    /// Ranks whose processes are lost: killed, stalled, or on a host that is gone. Empty where a
    /// process failed by itself, as it would again.
    pub lost: Vec<usize>,
    /// Whether nothing is known to be wrong with any process: who had started them is gone, or ended
    /// them. All may start again.
    pub orphaned: bool,
    /// The exit code that says the same to a shell.
    pub code: u8,
}

impl Verdict {
    fn of(cause: End, lost: Vec<usize>) -> Self {
        let code = cause.exit_code();
        Self { cause, lost, orphaned: false, code }
    }

    fn orphaned(cause: End) -> Self {
        Self { orphaned: true, code: 1, ..Self::of(cause, Vec::new()) }
    }

    /// Which of `world` ranks do not start again, with their places on hosts: those that are lost,
    /// but for one where all are, as nothing says that it would be killed again.
    pub fn left_out(&self, world: usize) -> Vec<usize> {
        let all = self.lost.len() >= world;
        self.lost.iter().copied().filter(|&rank| !all || rank != self.cause.rank).collect()
    }
}

impl End {
    /// Whether the process itself is lost, though it did nothing wrong that is known.
    fn is_lost(&self) -> bool {
        self.is_own() && matches!(self.how, How::Signal(_) | How::Gone | How::Stalled)
    }

    /// Whether it ended well.
    pub fn is_good(&self) -> bool {
        self.how == How::Code(0)
    }

    /// Whether it says more than that a peer failed.
    pub(super) fn is_news(&self) -> bool {
        self.is_lost() || self.is_own_failure()
    }

    fn is_own_failure(&self) -> bool {
        let own = |code| ![0, i32::from(PEER_FAILED), JOB_ENDED].contains(&code);
        self.is_own() && matches!(&self.how, How::Code(code) if own(*code))
            || matches!(self.how, How::NotStarted(_))
    }

    /// Whether it ended neither because it was told to nor because who had started it was gone.
    fn is_own(&self) -> bool {
        !self.told && !self.orphaned
    }

    /// Whether it found nothing wrong with itself.
    pub fn is_of_a_peer(&self) -> bool {
        let codes = [i32::from(PEER_FAILED), JOB_ENDED];
        self.is_own() && matches!(self.how, How::Code(code) if codes.contains(&code))
    }

    /// The exit code that says the same to a shell: 128 and the signal where one ended it.
    pub fn exit_code(&self) -> u8 {
        match self.how {
            How::Code(code) => u8::try_from(code).unwrap_or(1),
            How::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
            How::Stalled => PEER_FAILED,
            How::Gone | How::NotStarted(_) => 1,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, host, pid, seconds, step, .. } = self;
        write!(f, "rank {rank} (pid {pid} on {host}) ")?;
        match &self.how {
            How::Code(0) => write!(f, "ended well")?,
            How::Code(code) => write!(f, "ended with exit code {code}")?,
            How::Signal(signal) => {
                let name = signal_hook::low_level::signal_name(*signal);
                let name = name.map_or(String::new(), |name| format!(" ({name})"));
                write!(f, "was killed by signal {signal}{name}")?;
            }
            How::Gone => write!(f, "is gone: the connection to its host broke")?,
            How::NotStarted(why) => return write!(f, "did not start: {why}"),
            How::Stalled => write!(f, "came no further; the others gave up on it")?,
        }
        write!(f, " after {seconds:.1} s")?;
        if *step > 0 {
            write!(f, ", in step {step}")?;
        }
        if self.orphaned { write!(f, ": who had started it there is gone") } else { Ok(()) }
    }
}

/// Says which of the ends, in the order in which they came, was the first cause; `None` where all
/// ended well.
///
/// A lost process is never the consequence of another's failure, so it comes first, but for keepers that
/// went after a rank had MPI end the job: `mpirun` kills them, too. Then who failed by itself, unless who
/// had started it was gone before. Where all only say that a peer failed, it is the one that did not end
/// by itself: it stalled. Where none failed and all were ended, it was by who had started them.
pub fn judge(ends: &[End]) -> Option<Verdict> {
    let all_ended = ends.iter().position(|end| end.is_own() && end.how == How::Code(JOB_ENDED));
    let ended_with_all =
        |end: &End| end.how == How::Gone && all_ended.is_some_and(|at| !ends[..at].contains(end));
    let lost =
        ends.iter().filter(|end| end.is_lost() && end.how != How::Stalled && !ended_with_all(end));
    let first = lost.clone().find(|end| end.how != How::Gone).or_else(|| lost.clone().next());
    if let Some(cause) = first {
        let ranks: BTreeSet<usize> = lost.map(|end| end.rank).collect();
        return Some(Verdict::of(cause.clone(), ranks.into_iter().collect()));
    }
    if let Some(cause) = ends.iter().find(|end| end.is_own_failure()) {
        return Some(Verdict::of(cause.clone(), Vec::new()));
    }
    if let Some(cause) = ends.iter().find(|end| end.orphaned && !end.is_good()) {
        return Some(Verdict::orphaned(cause.clone()));
    }
    let gave_up: Vec<&End> = ends.iter().filter(|end| end.is_of_a_peer()).collect();
    let named: BTreeSet<usize> = gave_up.iter().flat_map(|end| end.missing.clone()).collect();
    let stayed = || ends.iter().filter(|end| end.told || ended_with_all(end));
    // Where one of them had MPI end the job, the others may not have come to give up.
    let all_spoke =
        !gave_up.is_empty() && gave_up.iter().all(|end| end.how != How::Code(JOB_ENDED));
    let mut stalled: Vec<&End> = stayed().filter(|end| named.contains(&end.rank)).collect();
    if stalled.is_empty() && all_spoke {
        stalled = stayed().collect();
    }
    if let Some(&first) = stalled.first() {
        let cause = End { how: How::Stalled, told: false, ..first.clone() };
        return Some(Verdict::of(cause, stalled.iter().map(|end| end.rank).collect()));
    }
    if let Some(&cause) = gave_up.first() {
        return Some(Verdict::of(cause.clone(), Vec::new()));
    }
    let cause = ends.iter().find(|end| !end.is_good())?.clone();
    // Nobody knows who sent the signal, but which it was.
    let code = if matches!(cause.how, How::Signal(_)) { cause.exit_code() } else { 1 };
    Some(Verdict { code, ..Verdict::orphaned(cause) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rank: usize, how: How) -> End {
        let (host, missing) = ("a".to_owned(), Vec::new());
        let (told, orphaned) = (false, false);
        End { rank, host, pid: 100, how, seconds: 12.3, step: 37, missing, told, orphaned }
    }

    fn told(rank: usize) -> End {
        End { told: true, ..end(rank, How::Signal(15)) }
    }

    fn gave_up(rank: usize, missing: &[usize]) -> End {
        End { missing: missing.to_vec(), ..end(rank, How::Code(75)) }
    }

    fn check(ends: &[End], cause: (usize, How), lost: &[usize]) {
        let verdict = judge(ends).expect("something failed");
        assert_eq!((verdict.cause.rank, verdict.cause.how), cause, "{ends:?}");
        assert_eq!(verdict.lost, lost, "{ends:?}");
    }

    #[test]
    fn a_killed_process_is_lost_whoever_else_complains_first() {
        let killed = end(2, How::Signal(9));
        check(&[killed.clone(), told(0), told(1)], (2, How::Signal(9)), &[2]);
        check(&[gave_up(0, &[2]), killed.clone(), told(1)], (2, How::Signal(9)), &[2]);
        check(&[killed, end(3, How::Signal(11)), told(0)], (2, How::Signal(9)), &[2, 3]);
    }

    #[test]
    fn a_process_that_fails_by_itself_is_not_lost() {
        check(&[gave_up(0, &[]), end(1, How::Code(2)), told(2)], (1, How::Code(2)), &[]);
        check(&[end(1, How::Code(101)), end(0, How::Code(1))], (1, How::Code(101)), &[]);
        let absent = How::NotStarted("no such file".to_owned());
        check(&[end(1, absent.clone()), told(0)], (1, absent), &[]);
    }

    #[test]
    fn who_stays_when_all_others_gave_up_has_stalled() {
        check(&[gave_up(0, &[]), gave_up(1, &[]), told(2)], (2, How::Stalled), &[2]);
        // One that is only slow to end is not who was missed.
        check(&[gave_up(0, &[2]), told(1), told(2)], (2, How::Stalled), &[2]);
        // Where MPI ended all, only who is named is known to have stalled.
        let job = end(0, How::Code(70));
        check(&[job.clone(), told(1), told(2)], (0, How::Code(70)), &[]);
        check(&[job, gave_up(1, &[2]), told(3), told(2)], (2, How::Stalled), &[2]);
        let stuck = End { missing: vec![2], ..end(0, How::Code(70)) };
        check(&[stuck.clone(), told(1), told(2)], (2, How::Stalled), &[2]);
        // It kills keepers, too, before they say how their ranks ended; a host may be gone before.
        check(&[stuck.clone(), end(1, How::Gone), told(2)], (2, How::Stalled), &[2]);
        check(&[stuck.clone(), told(1), end(2, How::Gone)], (2, How::Stalled), &[2]);
        check(&[end(1, How::Gone), stuck, told(2)], (1, How::Gone), &[1]);
        // A rank that woke up in time and gave up too.
        check(&[gave_up(0, &[2]), gave_up(2, &[0])], (0, How::Code(75)), &[]);
    }

    #[test]
    fn where_all_are_lost_one_starts_again_whose_host_is_there() {
        let verdict = judge(&[end(0, How::Gone), end(1, How::Signal(9))]).expect("lost");
        assert_eq!((verdict.left_out(3), verdict.left_out(2)), (vec![0, 1], vec![0]));
        let verdict = judge(&[end(0, How::Signal(9))]).expect("lost");
        assert_eq!(verdict.left_out(1), [0; 0]);
    }

    #[test]
    fn hosts_that_are_gone_take_their_ranks_along() {
        let gone = [end(2, How::Gone), end(3, How::Gone), told(0), told(1)];
        check(&gone, (2, How::Gone), &[2, 3]);
    }

    #[test]
    fn who_had_started_the_processes_may_be_all_that_is_gone() {
        let orphan = |rank, how| End { orphaned: true, ..end(rank, how) };
        let all = |ends: &[End]| judge(ends).expect("something failed");
        // What MPI makes of it in ranks there, and what the others make of these.
        for how in [How::Code(1), How::Signal(6), How::Code(75)] {
            let verdict = all(&[gave_up(0, &[2]), orphan(2, how), told(1)]);
            assert_eq!((verdict.cause.rank, verdict.orphaned, verdict.code), (2, true, 1));
            assert_eq!(verdict.lost, [0; 0]);
        }
        // All were ended by who had started them.
        let ended = all(&[told(0), told(1)]);
        assert!(ended.orphaned);
        assert_eq!(ended.code, 143, "what is said is that a signal ended it");
        // A rank that failed before has not failed because of it.
        let first = all(&[end(1, How::Code(2)), orphan(0, How::Code(1))]);
        assert_eq!((first.cause.rank, first.orphaned, first.code), (1, false, 2));
        let killed = all(&[orphan(0, How::Code(1)), end(1, How::Signal(9))]);
        assert_eq!((killed.cause.rank, killed.orphaned, killed.code), (1, false, 137));
        // Some came to the end.
        assert_eq!(judge(&[orphan(0, How::Code(0)), end(1, How::Code(0))]), None);
        let text = orphan(2, How::Code(1)).to_string();
        assert!(text.ends_with("in step 37: who had started it there is gone"), "{text}");
    }

    #[test]
    fn all_well_is_no_failure() {
        assert_eq!(judge(&[end(0, How::Code(0)), end(1, How::Code(0))]), None);
    }

    #[test]
    fn ends_say_who_where_how_and_when() {
        let said = [How::Signal(9), How::Code(2), How::Stalled].map(|how| end(2, how));
        assert_eq!(
            said[0].to_string(),
            "rank 2 (pid 100 on a) was killed by signal 9 (SIGKILL) after 12.3 s, in step 37"
        );
        assert_eq!(
            End { step: 0, ..said[1].clone() }.to_string(),
            "rank 2 (pid 100 on a) ended with exit code 2 after 12.3 s"
        );
        assert_eq!(said.map(|end| end.exit_code()), [137, 2, 75]);
    }
}
