//! Checks of arguments that transports share.

use crate::failure::list;
use crate::{Error, Result};

/// A list of counts has one entry a rank.
fn world_long(
    operation: &'static str,
    what: &'static str,
    world: usize,
    counts: &[usize],
) -> Result<()> {
    same_length(operation, what, world, counts.len())
}

/// A buffer is as long as it must be.
fn same_length(
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
fn sum(operation: &'static str, what: &'static str, counts: &[usize]) -> Result<usize> {
    let sum = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    sum.ok_or(Error::CountsTooLarge { operation, what })
}

/// The lists and buffers of an all-to-all, of these lengths.
pub(crate) fn exchanged(
    operation: &'static str,
    world: usize,
    (send, send_counts): (usize, &[usize]),
    (recv, recv_counts): (usize, &[usize]),
) -> Result<()> {
    world_long(operation, "send_counts", world, send_counts)?;
    world_long(operation, "recv_counts", world, recv_counts)?;
    same_length(operation, "send", sum(operation, "send_counts", send_counts)?, send)?;
    same_length(operation, "recv", sum(operation, "recv_counts", recv_counts)?, recv)
}

/// Equally many numbers for every rank, and as many from each.
pub(crate) fn counted(
    operation: &'static str,
    world: usize,
    send: usize,
    recv: usize,
) -> Result<()> {
    same_length(operation, "send", send / world * world, send)?;
    same_length(operation, "recv", send, recv)
}

/// What rank `me` gives to a gathering, and room for what all give.
pub(crate) fn gathered(
    operation: &'static str,
    (me, world): (usize, usize),
    send: usize,
    (recv, recv_counts): (usize, &[usize]),
) -> Result<()> {
    world_long(operation, "recv_counts", world, recv_counts)?;
    same_length(operation, "recv", sum(operation, "recv_counts", recv_counts)?, recv)?;
    same_length(operation, "send", recv_counts[me], send)
}

/// What rank `me` gives to a reduction, and room for its part; without counts all parts are as long.
pub(crate) fn reduced(
    operation: &'static str,
    (me, world): (usize, usize),
    send: usize,
    (recv, counts): (usize, Option<&[usize]>),
) -> Result<()> {
    let Some(counts) = counts else {
        return same_length(operation, "send", world.saturating_mul(recv), send);
    };
    world_long(operation, "counts", world, counts)?;
    same_length(operation, "send", sum(operation, "counts", counts)?, send)?;
    same_length(operation, "recv", counts[me], recv)
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
