//! Messages of more bytes than a call can count: [`chunks`].

use std::ops::Range;

/// Bytes of the longest message. Calls count in 32 bits with a sign, and libraries overflow inside
/// before that; a power of two keeps elements whole.
pub(super) const LONGEST: usize = 1 << 30;

/// The parts that `bytes` travel in, one after the other; none for no bytes.
pub(super) fn chunks(bytes: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    (0..bytes.div_ceil(LONGEST))
        .map(move |chunk| chunk * LONGEST..bytes.min((chunk + 1).saturating_mul(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, chunks};

    fn cut(bytes: usize) -> Vec<usize> {
        let mut end = 0;
        let cut = chunks(bytes).map(|chunk| {
            assert_eq!(chunk.start, end, "one after the other");
            end = chunk.end;
            chunk.len()
        });
        let cut: Vec<usize> = cut.collect();
        assert_eq!(end, bytes, "all of it");
        assert!(cut.iter().all(|&chunk| 0 < chunk && chunk <= LONGEST), "{cut:?}");
        cut
    }

    #[test]
    fn u25_totals_beyond_2_to_the_31_are_cut_into_parts_that_sum_exactly() {
        assert_eq!(cut((1 << 31) + 8), [1 << 30, 1 << 30, 8]);
        let f32s = cut(3_000_000_000 * size_of::<f32>());
        assert_eq!(f32s.len(), 12);
        assert_eq!(f32s.last(), Some(&(12_000_000_000 - 11 * (1 << 30))));
        assert_eq!(cut(1 << 40).len(), 1 << 10);
    }

    #[test]
    fn short_messages_travel_whole_and_empty_ones_do_not_travel() {
        assert_eq!(cut(0), [0usize; 0]);
        assert_eq!(cut(1), [1]);
        assert_eq!(cut(1 << 30), [1 << 30]);
        assert_eq!(cut((1 << 30) + 1), [1 << 30, 1]);
    }
}
