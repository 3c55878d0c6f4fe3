//! Rows updated since replicas were last equal: [`TouchedRows`].

use super::error::Result;
use emb_comm::Collective;

/// The rows of a stored part that this replica updated, a bit each.
#[derive(Debug)]
pub(super) struct TouchedRows {
    bits: Vec<u64>,
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
        Self { bits: vec![0; rows.div_ceil(64) as usize] }
    }

    /// Adds rows that exist.
    pub(super) fn add(&mut self, rows: &[i64]) {
        for &row in rows {
            self.insert(row as u64);
        }
    }

    fn insert(&mut self, row: u64) {
        self.bits[row as usize / 64] |= 1 << (row % 64);
    }

    /// Appends the rows, ascending.
    fn append_to(&self, rows: &mut Vec<u64>) {
        for (word, &bits) in (0_u64..).zip(&self.bits) {
            let mut bits = bits;
            while bits != 0 {
                rows.push(word * 64 + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
    }

    /// Appends the rows, ascending; none are left.
    pub(super) fn take(&mut self, rows: &mut Vec<u64>) {
        self.append_to(rows);
        self.bits.fill(0);
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
            if let Some(touched) = &touched[table] {
                touched.append_to(&mut self.rows);
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
                rows.iter().for_each(|&row| touched.insert(row));
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
        let mut touched = TouchedRows::new(200);
        touched.add(&[199, 3, 64, 3, 0, 63]);
        let mut rows = vec![7];
        touched.take(&mut rows);
        assert_eq!(rows, [7, 0, 3, 63, 64, 199]);
        touched.take(&mut rows);
        assert_eq!(rows.len(), 6);
    }
}
