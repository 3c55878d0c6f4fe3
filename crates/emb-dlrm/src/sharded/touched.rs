//! Rows updated since replicas were last equal: [`TouchedRows`].

use super::error::Result;
use emb_comm::Collective;

/// The rows of a stored part that this replica updated, a bit each.
#[derive(Debug)]
pub(super) struct TouchedRows {
    bits: Vec<u64>,
}

impl TouchedRows {
    /// None of `rows` rows.
    pub(super) fn new(rows: u64) -> Self {
        Self { bits: vec![0; rows.div_ceil(64) as usize] }
    }

    /// Adds rows that exist.
    pub(super) fn add(&mut self, rows: &[i64]) {
        for &row in rows {
            self.bits[row as usize / 64] |= 1 << (row % 64);
        }
    }

    /// The rows, ascending; none are left.
    pub(super) fn take(&mut self) -> Vec<u64> {
        let mut rows = Vec::new();
        for (word, bits) in (0_u64..).zip(&mut self.bits) {
            while *bits != 0 {
                rows.push(word * 64 + u64::from(bits.trailing_zeros()));
                *bits &= *bits - 1;
            }
        }
        rows
    }
}

/// For each table the rows that any replica lists, ascending: two collectives.
pub(super) fn union<C: Collective>(replicas: &mut C, mine: &[Vec<u64>]) -> Result<Vec<Vec<u64>>> {
    let (world, tables) = (replicas.world(), mine.len());
    let lens: Vec<u64> = mine.iter().map(|rows| rows.len() as u64).collect();
    let mut all_lens = vec![0; tables * world];
    replicas.all_gather_v::<u64>(&lens, &mut all_lens, &vec![tables; world])?;
    let counts: Vec<usize> = (0..world)
        .map(|m| all_lens[m * tables..(m + 1) * tables].iter().sum::<u64>() as usize)
        .collect();
    let mut all = vec![0; counts.iter().sum()];
    replicas.all_gather_v::<u64>(&mine.concat(), &mut all, &counts)?;
    let mut union = vec![Vec::new(); tables];
    let mut rest = &all[..];
    for (k, &n) in all_lens.iter().enumerate() {
        let (rows, after) = rest.split_at(n as usize);
        union[k % tables].extend_from_slice(rows);
        rest = after;
    }
    for rows in &mut union {
        rows.sort_unstable();
        rows.dedup();
    }
    Ok(union)
}

/// Consecutive rows of an ascending list, as (first, count).
pub(super) fn runs(rows: &[u64]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let runs = rows.chunk_by(|before, after| before + 1 == *after);
    runs.map(|run| (run[0] as usize, run.len()))
}
