//! Whether what ranks were told is what the contract says: [`judge`].

use super::case::{CULPRIT, Case, Fault, STEP, WORLD};
use super::told::Told;
use crate::FailureKind;
use std::time::Duration;

/// What the contract says of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// Kinds of failure that it may be.
    pub kinds: Vec<FailureKind>,
    /// Ranks of which at least one is named, and no other.
    pub ranks: Vec<usize>,
    /// What the message says besides.
    pub texts: Vec<String>,
}

impl Expected {
    /// For a case.
    pub fn of(case: Case) -> Self {
        let mut ranks = vec![CULPRIT];
        let mut texts = Vec::new();
        // Whose counts disagree, and who refuses them.
        let near = (0..WORLD).find(|&rank| case.is_near(rank)).unwrap_or(0);
        let kind = match case.fault {
            Fault::ExpectsLess => {
                texts.push(format!(
                    "rank {near} sends 2 elements to rank {CULPRIT}, which expects 1"
                ));
                FailureKind::Error
            }
            Fault::SendsMore => {
                ranks.push(near);
                texts.push(format!(
                    "rank {CULPRIT} sends 3 elements to rank {near}, which expects 2"
                ));
                FailureKind::Error
            }
            Fault::OtherOperation => {
                texts.extend(["all_reduce of 8 f32", "broadcast of 8 f32"].map(str::to_owned));
                FailureKind::Mismatch
            }
            Fault::OtherType => {
                texts.extend(["of 8 f32", "of 8 f64"].map(str::to_owned));
                FailureKind::Mismatch
            }
            Fault::OtherLength => {
                texts.extend(["of 8 f32", "of 9 f32"].map(str::to_owned));
                FailureKind::Mismatch
            }
            Fault::OtherOrder => {
                texts.extend(["all_reduce of 8 f32", "barrier in step"].map(str::to_owned));
                FailureKind::Mismatch
            }
            Fault::OtherRoot => {
                texts.extend(["from root 0", "from root 1"].map(str::to_owned));
                FailureKind::Mismatch
            }
            Fault::OtherStep => {
                texts.push(format!("in step {}", STEP + 1));
                FailureKind::Mismatch
            }
            Fault::OtherLists | Fault::OtherDivision => {
                texts.push("subgroups".to_owned());
                FailureKind::Mismatch
            }
            Fault::OtherSetFirst => {
                // Two ranks wait for each other: either may be called the one to look at.
                ranks.extend((0..CULPRIT).filter(|&rank| case.is_near(rank)));
                FailureKind::Missing
            }
            Fault::WrongArguments => {
                texts.push("all_gather_v: recv_counts: expected length".to_owned());
                FailureKind::Error
            }
            Fault::GivesUp => {
                texts.push("the loss is not a number".to_owned());
                FailureKind::Aborted
            }
            Fault::Panics => FailureKind::Panic,
            Fault::Stalls | Fault::NeverCalls | Fault::IsStopped | Fault::NeverJoins => {
                FailureKind::Missing
            }
            _ => FailureKind::Left,
        };
        Self { kinds: vec![kind], ranks, texts }
    }
}

/// What of a case breaks the contract, a line a finding: nothing, where it is kept.
///
/// `fell` is when it happened, by [`now`](super::now), `limit` how long after that a rank may be
/// told. `told` is by rank; `there` says of which ranks something must be heard.
pub fn judge(
    case: Case,
    told: &[Option<Told>],
    there: &[usize],
    fell: Duration,
    limit: Duration,
) -> Vec<String> {
    let expected = Expected::of(case);
    let mut findings = Vec::new();
    for &rank in there {
        let Some(told) = told.get(rank).and_then(Option::as_ref) else {
            findings.push(format!("rank {rank} was not told"));
            continue;
        };
        let mut found =
            |what: String| findings.push(format!("rank {rank} {what}: {}", told.message));
        if !told.problem.is_empty() {
            found(format!("finds: {}", told.problem));
        }
        if !expected.kinds.contains(&told.kind) {
            found(format!("is told {:?}, not {:?}", told.kind, expected.kinds));
        }
        let stray = told.ranks.iter().any(|rank| !expected.ranks.contains(rank));
        if told.ranks.is_empty() || stray {
            found(format!("is told of {:?}, not of {:?}", told.ranks, expected.ranks));
        }
        let step = if case.fault == Fault::NeverCalls { 0 } else { STEP };
        if told.failed_in != step {
            found(format!("is told of step {}, not {step}", told.failed_in));
        }
        if told.at.saturating_sub(fell) > limit {
            let after = told.at.saturating_sub(fell);
            found(format!("is told after {after:?}, later than {limit:?}"));
        }
        // A rank that finds its own arguments wrong says that alone.
        let texts = expected.texts.iter().cloned();
        let names = format!("rank {CULPRIT}");
        for text in texts.chain((rank != CULPRIT).then_some(names)) {
            if !told.message.contains(&text) {
                found(format!("does not say {text:?}"));
            }
        }
    }
    findings
}
