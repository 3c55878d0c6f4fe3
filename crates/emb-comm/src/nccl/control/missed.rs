//! Who is to blame where the time of an operation is over: [`missed`].

use super::message::{Late, Place};
use crate::failure::{Failure, FailureKind, list};

/// What a rank said of where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Place(Place),
    /// Nothing, in time.
    Silent,
    /// It had ended before.
    Ended,
}

/// The failure that an operation which is late ends in, by what all ranks said of where they are.
/// Those that wait for others are not to blame: those others are.
pub(super) fn missed(late: &Late, answers: &[Answer]) -> Failure {
    let is_missing = |rank: &usize| !has_begun(answers, *rank, late.set, late.begun);
    let known = late.members.iter().copied().filter(|&rank| rank < answers.len());
    let (mut absent, mut here): (Vec<usize>, Vec<usize>) = known.partition(is_missing);
    absent.sort_unstable();
    here.sort_unstable();
    let Late { operation, step, timeout, .. } = late;
    let operation_of = format!("{operation}{}", among(late, answers.len()));
    let mut culprits: Vec<usize> = absent.iter().map(|&rank| culprit(rank, answers)).collect();
    culprits.sort_unstable();
    culprits.dedup();
    let message = if absent.is_empty() {
        format!(
            "{operation_of} in step {step} did not end within {timeout:?} though all have begun it: \
             a link or a device has stopped"
        )
    } else {
        let mut named = absent.clone();
        named.extend(culprits.iter().filter(|rank| !absent.contains(rank)));
        let places: Vec<String> =
            named.into_iter().map(|rank| whereabouts(rank, answers)).collect();
        format!(
            "{} did not arrive at {operation_of} in step {step} within {timeout:?}, {} did: {}",
            list(&absent),
            list(&here),
            places.join(", ")
        )
    };
    Failure::new(FailureKind::Missing, culprits, Some(*operation), *step, message)
}

/// " of ranks 2 and 3", where that is not all.
fn among(late: &Late, world: usize) -> String {
    if late.members.len() == world {
        return String::new();
    }
    let mut members = late.members.clone();
    members.sort_unstable();
    format!(" of {}", list(&members))
}

/// Whether a rank has begun as many operations of a set.
fn has_begun(answers: &[Answer], rank: usize, set: u64, operations: u64) -> bool {
    let Answer::Place(place) = &answers[rank] else { return false };
    place.sets.iter().any(|&(name, begun)| name == set && begun >= operations)
}

/// The rank that a rank waits for: the first that has not begun the operation which it is in. Of
/// those that say nothing it is not known whether they belong to its set.
fn waits_for(rank: usize, answers: &[Answer]) -> Option<usize> {
    let Answer::Place(place) = &answers[rank] else { return None };
    let (_, set) = place.inside?;
    let &(_, begun) = place.sets.iter().find(|&&(name, _)| name == set)?;
    let is_behind = |answer: &Answer| match answer {
        Answer::Place(other) => {
            other.sets.iter().any(|&(name, others)| name == set && others < begun)
        }
        Answer::Silent | Answer::Ended => false,
    };
    let silent = || answers.iter().position(|answer| *answer == Answer::Silent);
    answers.iter().position(is_behind).or_else(silent)
}

/// The rank at the end of the chain of waiting that begins with `rank`; in a cycle, itself.
fn culprit(rank: usize, answers: &[Answer]) -> usize {
    let mut last = rank;
    for _ in 0..answers.len() {
        match waits_for(last, answers) {
            None => return last,
            Some(next) if next == rank => return rank,
            Some(next) => last = next,
        }
    }
    rank
}

/// Where a rank is, in words.
fn whereabouts(rank: usize, answers: &[Answer]) -> String {
    let place = match &answers[rank] {
        Answer::Silent => {
            return format!("rank {rank} does not answer: it is stopped, or its host out of reach");
        }
        Answer::Ended => return format!("rank {rank} has ended"),
        Answer::Place(place) => place,
    };
    let step = place.step;
    let Some((operation, _)) = place.inside else {
        return format!("rank {rank} is outside any collective in step {step}");
    };
    match waits_for(rank, answers) {
        Some(other) => {
            format!("rank {rank} is in {operation} in step {step} and waits for rank {other}")
        }
        None => format!("rank {rank} is in {operation} in step {step}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use std::time::Duration;

    const WORLD: u64 = 0;
    const LOW: u64 = 10;
    const HIGH: u64 = 20;

    /// A rank of a world and of a group, with what it has begun of each, in an operation of `set`.
    fn at(set: Option<u64>, world: u64, group: (u64, u64)) -> Answer {
        let inside = set.map(|set| (Operation::Barrier, set));
        Answer::Place(Place { inside, step: 5, sets: vec![(WORLD, world), group] })
    }

    fn late(set: u64, begun: u64, members: &[usize]) -> Late {
        let (operation, timeout) = (Operation::AllReduce, Duration::from_secs(1));
        Late { operation, step: 5, copy: 0, set, begun, timeout, members: members.to_vec() }
    }

    #[test]
    fn who_waits_is_not_to_blame_but_whoever_is_elsewhere_is() {
        // Rank 3 is outside, rank 2 waits for it in their group, 0 and 1 wait for both.
        let answers = [
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(HIGH), 6, (HIGH, 4)),
            at(None, 6, (HIGH, 3)),
        ];
        let failure = missed(&late(WORLD, 7, &[0, 1, 2, 3]), &answers);
        assert_eq!(failure.ranks(), [3]);
        let text = "ranks 2 and 3 did not arrive at all_reduce in step 5 within 1s, ranks 0 and 1 \
                    did: rank 2 is in barrier in step 5 and waits for rank 3, rank 3 is outside any \
                    collective in step 5";
        assert_eq!(failure.to_string(), text);
        let failure = missed(&late(HIGH, 4, &[2, 3]), &answers);
        assert!(failure.to_string().contains("all_reduce of ranks 2 and 3 in step 5"), "{failure}");
    }

    #[test]
    fn a_rank_that_says_nothing_is_to_blame_also_for_those_that_wait_for_it_elsewhere() {
        let answers = [
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(HIGH), 6, (HIGH, 4)),
            Answer::Silent,
        ];
        let failure = missed(&late(WORLD, 7, &[0, 1, 2, 3]), &answers);
        assert_eq!(failure.ranks(), [3]);
        assert!(failure.to_string().contains("rank 3 does not answer"), "{failure}");
    }

    #[test]
    fn ranks_that_wait_for_each_other_are_both_named_and_an_end_is_found() {
        let answers = [
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(WORLD), 7, (LOW, 4)),
            at(Some(HIGH), 6, (HIGH, 4)),
            at(Some(WORLD), 7, (HIGH, 3)),
        ];
        let failure = missed(&late(HIGH, 4, &[2, 3]), &answers);
        assert_eq!(failure.ranks(), [3]);
        let failure = missed(&late(WORLD, 7, &[0, 1, 2, 3]), &answers);
        assert_eq!(failure.ranks(), [2]);
        assert!(failure.to_string().contains("waits for rank 3"), "{failure}");
    }

    #[test]
    fn where_all_have_come_a_link_or_a_device_is_to_blame() {
        let answers = [at(Some(LOW), 7, (LOW, 4)), at(Some(LOW), 7, (LOW, 4))];
        let failure = missed(&late(LOW, 4, &[0, 1]), &answers);
        assert!(failure.ranks().is_empty());
        assert!(failure.to_string().contains("a link or a device has stopped"), "{failure}");
        let failure = missed(&late(LOW, 4, &[0, 1]), &[at(None, 1, (LOW, 4)), Answer::Ended]);
        assert!(failure.to_string().ends_with("rank 1 has ended"), "{failure}");
    }
}
