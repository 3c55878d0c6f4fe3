//! Stable radix sort of packed keys, as many passes as the key needs.

#[cfg(test)]
mod tests;

/// Below this count a comparison sort beats the histograms (measured at 20 key bits).
const SMALL: usize = 512;

/// Widest digit: 2,048 counters fit the first-level cache beside the write streams.
const DIGIT_BITS: u32 = 11;

/// Sorts `keys` by their bits `low..low + width`, stably; `spare` is scratch and grows.
///
/// The bits below `low` must ascend in the order of the input (positions do) and the bits above
/// `low + width` must be 0: the result then ascends as a whole, and few keys are sorted as such.
pub(crate) fn sort(keys: &mut Vec<u64>, spare: &mut Vec<u64>, low: u32, width: u32) {
    debug_assert!(low + width <= 64);
    if keys.len() <= SMALL {
        keys.sort_unstable();
        return;
    }
    if width == 0 {
        return;
    }
    spare.clear();
    spare.resize(keys.len(), 0);
    let passes = width.div_ceil(DIGIT_BITS);
    let bits = width.div_ceil(passes);
    let mask = (1_u64 << bits) - 1;
    for pass in 0..passes {
        let shift = low + pass * bits;
        let mut counts = [0_usize; 1 << DIGIT_BITS];
        for &key in &*keys {
            counts[digit(key, shift, mask)] += 1;
        }
        if counts[digit(keys[0], shift, mask)] == keys.len() {
            continue;
        }
        let mut start = 0;
        for count in &mut counts[..=mask as usize] {
            start += std::mem::replace(count, start);
        }
        for &key in &*keys {
            let place = &mut counts[digit(key, shift, mask)];
            spare[*place] = key;
            *place += 1;
        }
        std::mem::swap(keys, spare);
    }
}

#[inline(always)]
fn digit(key: u64, shift: u32, mask: u64) -> usize {
    (key >> shift & mask) as usize & ((1 << DIGIT_BITS) - 1)
}

/// Bits needed to write every number below `count`.
pub(crate) fn bits_for(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}
