//! Rows updated since replicas were last equal: [`TouchedRows`].

use super::error::Result;
use emb_comm::Collective;

/// The rows of a stored part that this replica updated.
///
/// A bit for each row, and a bit of the level above for each word that has any, and so on up to one
/// word: rows are found ascending without a look at those that were not touched.
#[derive(Debug)]
pub(super) struct TouchedRows {
    /// The bits of rows first, one word last.
    levels: Vec<Vec<u64>>,
}

/// Memory of a union over replicas.
#[derive(Debug, Default)]
pub(super) struct UnionMemory {
    lens: Vec<u64>,
    rows: Vec<u64>,
    /// `[replicas, tables]`.
    all_lens: Vec<u64>,
    all_rows: Vec<u64>,
    /// By replica.
    tables: Vec<usize>,
    counts: Vec<usize>,
}

impl TouchedRows {
    /// None of `rows` rows.
    pub(super) fn new(rows: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = rows.max(1);
        while bits > 1 || levels.is_empty() {
            bits = bits.div_ceil(64);
            levels.push(vec![0; bits as usize]);
        }
        Self { levels }
    }

    /// Adds rows that exist.
    pub(super) fn add(&mut self, rows: &[i64]) {
        for &row in rows {
            self.insert(row as u64);
        }
    }

    fn insert(&mut self, row: u64) {
        let mut at = row;
        for level in &mut self.levels {
            let word = &mut level[at as usize / 64];
            let known = *word != 0;
            *word |= 1 << (at % 64);
            if known {
                // Levels above know the word.
                return;
            }
            at /= 64;
        }
    }

    /// Appends the rows, ascending; none are left.
    pub(super) fn take(&mut self, rows: &mut Vec<u64>) {
        self.take_below(self.levels.len() - 1, 0, rows);
    }

    fn take_below(&mut self, level: usize, word: u64, rows: &mut Vec<u64>) {
        let mut bits = std::mem::take(&mut self.levels[level][word as usize]);
        while bits != 0 {
            let at = word * 64 + u64::from(bits.trailing_zeros());
            bits &= bits - 1;
            if level == 0 {
                rows.push(at);
            } else {
                self.take_below(level - 1, at, rows);
            }
        }
    }
}

impl UnionMemory {
    /// Adds to each of the touched rows at `tables` those of the other replicas: two collectives.
    pub(super) fn unite<C: Collective>(
        &mut self,
        replicas: &mut C,
        touched: &mut [Option<TouchedRows>],
        tables: &[usize],
    ) -> Result<()> {
        self.lens.clear();
        self.rows.clear();
        for &table in tables {
            let begin = self.rows.len();
            if let Some(touched) = &mut touched[table] {
                touched.take(&mut self.rows);
            }
            self.lens.push((self.rows.len() - begin) as u64);
        }
        let world = replicas.world();
        self.tables.clear();
        self.tables.resize(world, tables.len());
        self.all_lens.resize(tables.len() * world, 0);
        replicas.all_gather_v::<u64>(&self.lens, &mut self.all_lens, &self.tables)?;
        self.counts.clear();
        let by_replica = self.all_lens.chunks_exact(tables.len());
        self.counts.extend(by_replica.map(|lens| lens.iter().sum::<u64>() as usize));
        self.all_rows.resize(self.counts.iter().sum(), 0);
        replicas.all_gather_v::<u64>(&self.rows, &mut self.all_rows, &self.counts)?;
        let mut rest = &self.all_rows[..];
        for (k, &n) in self.all_lens.iter().enumerate() {
            let (rows, after) = rest.split_at(n as usize);
            if let Some(touched) = &mut touched[tables[k % tables.len()]] {
                for &row in rows {
                    touched.insert(row);
                }
            }
            rest = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_ascending_and_once_and_only_once() {
        // One level to four.
        for (bound, some) in [
            (1, vec![0]),
            (64, vec![63, 0, 63]),
            (65, vec![64]),
            (200, vec![199, 3, 64, 3, 0, 63]),
            (10_000_000, vec![9_999_999, 0, 4096, 4095, 262_144, 9_999_999, 262_143]),
        ] {
            let mut touched = TouchedRows::new(bound);
            for _ in 0..2 {
                touched.add(&some);
                let mut rows = vec![7];
                touched.take(&mut rows);
                let mut expected: Vec<_> = some.iter().map(|&row| row as u64).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(rows[0], 7);
                assert_eq!(rows[1..], expected);
                touched.take(&mut rows);
                assert_eq!(rows.len(), 1 + expected.len());
            }
            assert!(touched.levels.iter().flatten().all(|word| *word == 0));
        }
    }
}
