//! The checksum of a packed list: four sums side by side, since each waits for its multiplication.

/// 2^64 over the golden ratio, odd.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Checksum of `words` and of what the header says beside it.
pub(super) fn checksum(header: u32, ids: usize, words: &[u64]) -> u32 {
    let mut sums = [1, 2, 3, 4].map(|j: u64| FACTOR.wrapping_mul(j));
    let (whole, rest) = words.as_chunks::<4>();
    for words in whole {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = mix(*sum ^ word);
        }
    }
    for (sum, word) in sums.iter_mut().zip(rest) {
        *sum = mix(*sum ^ word);
    }
    let start = mix(ids as u64) ^ u64::from(header);
    sums.into_iter().fold(start, |sum, part| mix(sum ^ part)) as u32
}

/// A permutation of the 64-bit numbers.
#[inline(always)]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(FACTOR);
    value ^ value >> 32
}
