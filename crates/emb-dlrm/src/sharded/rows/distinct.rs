//! Rows without duplicates: [`Distinct`].

use emb_kernels::host;

/// Rows as they are looked up, and then each once.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    rows: Vec<u64>,
    memory: host::Distinct,
}

impl Distinct {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(super) fn push(&mut self, row: u64) {
        self.rows.push(row);
    }

    pub(super) fn extend(&mut self, rows: &[i64]) {
        self.rows.extend(rows.iter().map(|&row| row as u64));
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.rows
    }

    /// Leaves each row once, ascending; `number_of` becomes the place of every row that was pushed
    /// among them.
    pub(super) fn number(&mut self, number_of: &mut Vec<u32>) {
        self.memory.number(&mut self.rows, number_of);
    }
}
