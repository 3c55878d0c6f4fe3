//! What tells batches from others, for ranks that do not share a source: [`of`], [`follow`].

use crate::data::{Batch, mix};

/// That of the end of the data.
pub(super) const END: u64 = 1;
/// That of what can't be read.
pub(super) const ERROR: u64 = 2;

/// Odd, with bits everywhere: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that differs, as good as always, where a batch has another bit.
pub(super) fn of(batch: &Batch) -> u64 {
    let sparse = batch.sparse.as_ref();
    let floats = |hash: u64, values: &[f32]| {
        values.iter().fold(hash, |hash, value| step(hash, u64::from(value.to_bits())))
    };
    let mut hash = step(0, batch.rows as u64);
    hash = floats(floats(hash, &batch.labels), &batch.dense);
    hash = sparse.offsets.iter().fold(hash, |hash, &offset| step(hash, offset));
    hash = sparse.values.iter().fold(hash, |hash, &id| step(hash, id as u64));
    if let Some(weights) = sparse.weights {
        hash = floats(hash, weights);
    }
    mix(hash)
}

/// The digest of what was read, and then something more.
pub(super) fn follow(seen: u64, next: u64) -> u64 {
    mix(seen.rotate_left(17) ^ next)
}

/// One value more. Each step is one-to-one in both, so that one changed value always shows.
fn step(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(25) ^ value).wrapping_mul(SPREAD)
}
