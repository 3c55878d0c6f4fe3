//! Which choices `TorchRec` tries together: [`propose`].
//!
//! The proposers of `torchrec/distributed/planner/proposers.py` in the planner's own order. None of
//! them listens to how good a plan is, so they are one list of proposals.

use super::options::{Choice, Way};

/// Calls `visit` with every proposal: for each table the number of its choice.
pub(super) fn propose(
    options: &[Vec<Choice>],
    max_proposals: u64,
    mut visit: impl FnMut(&[usize]),
) {
    grid(options, max_proposals, &mut visit);
    greedy(options, |choice| choice.seconds, &mut visit);
    greedy(options, |choice| choice.seconds * f64::from(choice.shards()), &mut visit);
    uniform(options, &mut visit);
}

/// `GridSearchProposer`: every combination, if they are few.
fn grid(options: &[Vec<Choice>], max_proposals: u64, visit: &mut impl FnMut(&[usize])) {
    let count = options.iter().try_fold(1_u64, |count, table| {
        count.checked_mul(table.len() as u64).filter(|&count| count <= max_proposals)
    });
    let mut proposal = vec![0; options.len()];
    for _ in 0..count.unwrap_or(0) {
        visit(&proposal);
        // The next number of mixed radix.
        for (chosen, table) in proposal.iter_mut().zip(options).rev() {
            *chosen = (*chosen + 1) % table.len();
            if *chosen != 0 {
                break;
            }
        }
    }
}

/// `GreedyProposer`: the fastest choice of every table, then, again and again, the next one of the
/// table whose largest shard is largest.
fn greedy(
    options: &[Vec<Choice>],
    seconds: impl Fn(&Choice) -> f64,
    visit: &mut impl FnMut(&[usize]),
) {
    let by_seconds = |table: &Vec<Choice>| {
        let mut order: Vec<usize> = (0..table.len()).collect();
        order.sort_by(|&a, &b| seconds(&table[a]).total_cmp(&seconds(&table[b])));
        order
    };
    let orders: Vec<Vec<usize>> = options.iter().map(by_seconds).collect();
    let mut at = vec![0; options.len()];
    let mut proposal: Vec<usize> = orders.iter().map(|order| order[0]).collect();
    loop {
        visit(&proposal);
        let mut largest: Option<((u64, u128), usize)> = None;
        for number in 0..options.len() {
            if at[number] + 1 == orders[number].len() {
                continue;
            }
            let choice = options[number][proposal[number]];
            let bytes = (choice.bytes, choice.total_bytes());
            // Among equals the first table.
            if largest.is_none_or(|(most, _)| bytes > most) {
                largest = Some((bytes, number));
            }
        }
        let Some((_, number)) = largest else { return };
        at[number] += 1;
        proposal[number] = orders[number][at[number]];
    }
}

/// `UniformProposer`: every way that all tables have.
fn uniform(options: &[Vec<Choice>], visit: &mut impl FnMut(&[usize])) {
    for way in Way::ALL {
        let of = |table: &Vec<Choice>| table.iter().position(|choice| choice.way == way);
        if let Some(proposal) = options.iter().map(of).collect::<Option<Vec<usize>>>() {
            visit(&proposal);
        }
    }
}
