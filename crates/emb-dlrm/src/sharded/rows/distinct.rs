//! Rows without duplicates: [`Distinct`].

/// Rows as they are looked up, and then each once.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    rows: Vec<u64>,
    keys: Vec<(u64, u32)>,
    packed: Vec<u64>,
}

impl Distinct {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(super) fn push(&mut self, row: u64) {
        self.rows.push(row);
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.rows
    }

    /// Leaves each row once, ascending; `number_of` becomes the place of every row that was pushed
    /// among them.
    pub(super) fn number(&mut self, number_of: &mut Vec<u32>) {
        let Self { rows, keys, packed } = self;
        number_of.clear();
        number_of.resize(rows.len(), 0);
        let bits = |count: u64| u64::BITS - count.leading_zeros();
        let position_bits = bits(rows.len() as u64);
        let row_bits = bits(rows.iter().copied().max().unwrap_or(0));
        if position_bits + row_bits <= u64::BITS {
            // One word holds both, which sorts faster than a pair.
            packed.clear();
            packed.extend((0_u64..).zip(&*rows).map(|(k, row)| row << position_bits | k));
            packed.sort_unstable();
            let mask = (1 << position_bits) - 1;
            let sorted = packed.iter().map(|key| (key >> position_bits, (key & mask) as usize));
            number_sorted(sorted, rows, number_of);
        } else {
            keys.clear();
            keys.extend(rows.iter().copied().zip(0..));
            keys.sort_unstable();
            let sorted = keys.iter().map(|&(row, k)| (row, k as usize));
            number_sorted(sorted, rows, number_of);
        }
    }
}

/// Numbers rows that come ascending, with the place where each was pushed.
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
            rows in prop::collection::vec(prop_oneof![0_u64..20, any::<u64>()], 0..200),
        ) {
            let (mut distinct, mut numbers) = (Distinct::default(), vec![7]);
            for &row in &rows {
                distinct.push(row);
            }
            distinct.number(&mut numbers);
            let once = distinct.as_slice();
            prop_assert!(once.is_sorted_by(|a, b| a < b));
            let found: Vec<u64> = numbers.iter().map(|&n| once[n as usize]).collect();
            prop_assert_eq!(found, rows.clone());
            prop_assert!(once.iter().all(|row| rows.contains(row)));
        }
    }
}
