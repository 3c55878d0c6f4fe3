//! Distinct rows of a list: [`Distinct`].

use crate::cpu::detect::{Instructions, Kernel, dispatch};
use crate::cpu::sort::{bits_for, sort};

/// Most words of a set of bits for each row that is looked up. A word is 16 bytes that are written,
/// counted and read, in order; a row of a sort is 8 bytes that are read and scattered in at least
/// two passes. An estimate from these, not a measurement.
const WORDS: usize = 4;

/// Memory for the distinct ones of rows.
///
/// Rows of small tables are marked in a set of bits, others are sorted by digits.
#[derive(Debug, Default)]
pub struct Distinct {
    marks: Vec<Marks>,
    /// `row << position bits | position`.
    keys: Vec<u64>,
    spare: Vec<u64>,
    /// Where the two don't fit a word.
    pairs: Vec<(u64, u32)>,
}

/// 64 rows.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Which of them are there.
    bits: u64,
    /// Distinct rows before them.
    before: u64,
}

impl Distinct {
    /// Leaves each row once, ascending; `number_of` becomes the place of every row of `rows` among
    /// them.
    ///
    /// # Panics
    /// More than `u32::MAX` rows.
    ///
    /// ```
    /// let (mut rows, mut number_of) = (vec![7, 3, 7], Vec::new());
    /// emb_kernels::host::Distinct::default().number(&mut rows, &mut number_of);
    /// assert_eq!((rows, number_of), (vec![3, 7], vec![1, 0, 1]));
    /// ```
    pub fn number(&mut self, rows: &mut Vec<u64>, number_of: &mut Vec<u32>) {
        assert!(u32::try_from(rows.len()).is_ok(), "{} rows at once", rows.len());
        number_of.clear();
        let largest = rows.iter().copied().max().unwrap_or(0);
        if largest / 64 < (rows.len() * WORDS) as u64 {
            self.marks.clear();
            self.marks.resize(largest as usize / 64 + 1, Marks::default());
            let marks = &mut self.marks;
            dispatch(Instructions::detect(), MarkKernel { marks, rows, number_of });
            return;
        }
        number_of.resize(rows.len(), 0);
        let position_bits = bits_for(rows.len() as u64);
        let row_bits = u64::BITS - largest.leading_zeros();
        if position_bits + row_bits <= u64::BITS {
            let Self { keys, spare, .. } = self;
            keys.clear();
            keys.extend((0_u64..).zip(&*rows).map(|(k, row)| row << position_bits | k));
            sort(keys, spare, position_bits, row_bits);
            let mask = (1 << position_bits) - 1;
            let sorted = keys.iter().map(|key| (key >> position_bits, (key & mask) as usize));
            number_sorted(sorted, rows, number_of);
        } else {
            self.pairs.clear();
            self.pairs.extend(rows.iter().copied().zip(0..));
            self.pairs.sort_unstable();
            let sorted = self.pairs.iter().map(|&(row, k)| (row, k as usize));
            number_sorted(sorted, rows, number_of);
        }
    }
}

struct MarkKernel<'a> {
    /// No marks; 64 rows each.
    marks: &'a mut [Marks],
    rows: &'a mut Vec<u64>,
    number_of: &'a mut Vec<u32>,
}

impl Kernel for MarkKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { marks, rows, number_of } = self;
        for &row in &*rows {
            marks[row as usize / 64].bits |= 1 << (row % 64);
        }
        let mut before = 0;
        for marks in &mut *marks {
            marks.before = before;
            before += u64::from(marks.bits.count_ones());
        }
        number_of.extend(rows.iter().map(|&row| {
            let marks = marks[row as usize / 64];
            let lower = marks.bits & ((1 << (row % 64)) - 1);
            marks.before as u32 + lower.count_ones()
        }));
        rows.clear();
        for (first, marks) in (0_u64..).step_by(64).zip(&*marks) {
            let mut bits = marks.bits;
            while bits != 0 {
                rows.push(first + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
    }
}

/// Numbers rows that come ascending, each with its place in the list.
fn number_sorted(
    sorted: impl Iterator<Item = (u64, usize)>,
    rows: &mut Vec<u64>,
    number_of: &mut [u32],
) {
    // The rows are in what is iterated by now.
    rows.clear();
    for (row, k) in sorted {
        if rows.last() != Some(&row) {
            rows.push(row);
        }
        number_of[k] = rows.len() as u32 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_there_once_and_found_by_its_number(
            lists in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![0_u64..20, 0_u64..1000, 0_u64..1 << 20, any::<u64>()],
                    0..700,
                ),
                1..3,
            ),
            below in prop_oneof![Just(100_u64), Just(5_000), Just(1 << 30), Just(u64::MAX)],
        ) {
            let (mut distinct, mut numbers) = (Distinct::default(), vec![7]);
            for list in lists {
                let rows: Vec<u64> = list.iter().map(|row| row % below).collect();
                let mut once = rows.clone();
                distinct.number(&mut once, &mut numbers);
                prop_assert!(once.is_sorted_by(|a, b| a < b));
                let found: Vec<u64> = numbers.iter().map(|&n| once[n as usize]).collect();
                prop_assert_eq!(&found, &rows);
                prop_assert!(once.iter().all(|row| rows.contains(row)));
            }
        }
    }
}
