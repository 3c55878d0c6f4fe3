//! Checks of arguments that transports share.

use crate::failure::list;
use crate::{Error, Result};

/// A list of counts has one entry a rank.
pub(crate) fn world_long(
    operation: &'static str,
    what: &'static str,
    world: usize,
    counts: &[usize],
) -> Result<()> {
    same_length(operation, what, world, counts.len())
}

/// A buffer is as long as it must be.
pub(crate) fn same_length(
    operation: &'static str,
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Length { operation, what, expected, got }) }
}

/// What one rank sends is what the other expects. Ranks as numbered in the world.
pub(crate) fn same_count(
    operation: &'static str,
    from: usize,
    to: usize,
    sent: usize,
    expected: usize,
) -> Result<()> {
    if sent == expected {
        Ok(())
    } else {
        Err(Error::Counts { operation, from, to, sent, expected })
    }
}

/// The sum of counts. One that does not fit is longer than any buffer.
pub(crate) fn sum(operation: &'static str, what: &'static str, counts: &[usize]) -> Result<usize> {
    let sum = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    sum.ok_or(Error::CountsTooLarge { operation, what })
}

/// A number that differs, but for chance, where lists differ (FNV-1a over words).
pub(crate) fn hash(list: &[usize]) -> u64 {
    list.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &entry| {
        let mixed = (hash ^ entry as u64).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ (mixed >> 32)
    })
}

/// Lists of ranks are disjoint, not empty, and name ranks that exist.
pub(crate) fn checked(world: usize, groups: &[&[usize]]) -> Result<()> {
    let empty: Vec<usize> = (0..groups.len()).filter(|&list| groups[list].is_empty()).collect();
    let mut times = vec![0usize; world];
    let mut outside = Vec::new();
    for &rank in groups.iter().copied().flatten() {
        match times.get_mut(rank) {
            Some(times) => *times += 1,
            None => outside.push(rank),
        }
    }
    outside.sort_unstable();
    outside.dedup();
    let twice: Vec<usize> = (0..world).filter(|&rank| times[rank] > 1).collect();
    let mut problems = Vec::new();
    if !twice.is_empty() {
        let verb = if twice.len() == 1 { "is" } else { "are" };
        problems.push(format!("{} {verb} listed more than once", list(&twice)));
    }
    if !outside.is_empty() {
        let verb = if outside.len() == 1 { "does" } else { "do" };
        problems.push(format!("{} {verb} not exist", list(&outside)));
    }
    if !empty.is_empty() {
        let numbers: Vec<String> = empty.iter().map(ToString::to_string).collect();
        problems.push(format!("no rank in list {}", numbers.join(", ")));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Subgroups { world, problem: problems.join("; ") })
}
