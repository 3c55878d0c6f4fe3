//! What a run's ranks tell rank 0 at its end: [`gather`], [`most`].

use super::report::Exchange;
use crate::Result;
use emb_comm::{Collective, Element};

/// The values of all ranks, in rank order, on rank 0.
///
/// # Errors
/// A peer that fails.
pub(super) fn to_first<T: Element + Default, C: Collective>(
    ranks: &mut C,
    values: &[T],
) -> Result<Option<(Vec<T>, Vec<usize>)>> {
    let world = ranks.world();
    let mut send = vec![0; world];
    send[0] = values.len();
    let mut counts = vec![0; world];
    ranks.exchange_counts(&send, &mut counts)?;
    let mut all = vec![T::default(); counts.iter().sum()];
    ranks.all_to_all_v(values, &send, &mut all[..], &counts)?;
    Ok((ranks.rank() == 0).then_some((all, counts)))
}

/// The texts of all ranks, by rank, on rank 0.
///
/// # Errors
/// A peer that fails.
pub(super) fn gather<C: Collective>(ranks: &mut C, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
    let Some((all, counts)) = to_first(ranks, own)? else { return Ok(None) };
    let mut rest = &all[..];
    let texts = counts.into_iter().map(|count| {
        let (text, after) = rest.split_at(count);
        rest = after;
        text.to_vec()
    });
    Ok(Some(texts.collect()))
}

/// The exchanges of the rank with most bytes, on every rank.
///
/// # Errors
/// A peer that fails.
pub(super) fn most<C: Collective>(
    ranks: &mut C,
    own: Option<Exchange>,
) -> Result<Option<Exchange>> {
    let world = ranks.world();
    let Some(own) = own else { return Ok(None) };
    let numbers = [
        own.collectives_per_step,
        own.intra_node_bytes_per_step,
        own.inter_node_bytes_per_step,
        own.seconds,
    ];
    let mut all = vec![0.0; world * numbers.len()];
    ranks.all_gather_v(&numbers[..], &mut all[..], &vec![numbers.len(); world])?;
    let of = |numbers: &[f64]| Exchange {
        world,
        collectives_per_step: numbers[0],
        intra_node_bytes_per_step: numbers[1],
        inter_node_bytes_per_step: numbers[2],
        seconds: numbers[3],
    };
    let bytes = |exchange: &Exchange| {
        exchange.intra_node_bytes_per_step + exchange.inter_node_bytes_per_step
    };
    let most = all.chunks_exact(numbers.len()).map(of);
    Ok(most.max_by(|a, b| bytes(a).total_cmp(&bytes(b))))
}
