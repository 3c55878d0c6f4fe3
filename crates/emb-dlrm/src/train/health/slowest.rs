//! The rank that the others wait for: [`slowest`].

use super::SlowRank;
use super::measure::Figures;

/// How much longer than the others a rank computes that is named: below, ranks differ by what
/// they happen to read.
pub(super) const STANDS_OUT: f64 = 1.2;

/// Part of a step's time below which nobody cares for whom it is waited.
const A_LITTLE: f64 = 0.01;

/// The rank that takes longest to compute, if it stands out.
///
/// It does so by its median step and by the faster quarter of its steps alike, each against the mean
/// of the same figure of the others: a rank that merely lost its core in some steps does not.
/// Of the waiting it causes what is beyond the others: were its `c` seconds to compute those
/// of rank `o`, `o` would wait `c - c_o` less.
pub(super) fn slowest(ranks: &[Figures]) -> Option<SlowRank> {
    let longest = |a: &usize, b: &usize| {
        // Of equal ones the first: `max_by` takes the last.
        ranks[*a].median.total_cmp(&ranks[*b].median).then(b.cmp(a))
    };
    let rank = (0..ranks.len()).max_by(longest)?;
    let ratio = |of: fn(&Figures) -> f64| of(&ranks[rank]) / mean_without(ranks, rank, of);
    let compute_ratio = ratio(|rank| rank.median);
    let caused = ranks.iter().map(|other| ranks[rank].compute() - other.compute());
    let caused: f64 = caused.map(|seconds| seconds.max(0.0)).sum();
    let waited: f64 = ranks.iter().map(|rank| rank.wait).sum();
    let steps: f64 = ranks.iter().map(|rank| rank.step).sum();
    let steady = compute_ratio > STANDS_OUT && ratio(|rank| rank.quartile) > STANDS_OUT;
    let named = steady && compute_ratio.is_finite() && caused.min(waited) > A_LITTLE * steps;
    let waiting_caused = (caused / waited).min(1.0);
    named.then_some(SlowRank { rank, compute_ratio, waiting_caused })
}

/// The mean of a figure over all ranks but one.
pub(super) fn mean_without(ranks: &[Figures], rank: usize, of: impl Fn(&Figures) -> f64) -> f64 {
    let others = ranks.iter().enumerate().filter(|(other, _)| *other != rank);
    let sum: f64 = others.map(|(_, figures)| of(figures)).sum();
    sum / (ranks.len().max(2) - 1) as f64
}
