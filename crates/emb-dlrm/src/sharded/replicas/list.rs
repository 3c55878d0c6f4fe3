//! Rows with gradients of all tables, as a batch: [`RowList`].

/// Rows with gradients, table by table; a row may come more than once.
#[derive(Debug, Default)]
pub(super) struct RowList {
    /// `[tables + 1]`: where the rows of each table begin.
    pub(super) offsets: Vec<u64>,
    pub(super) rows: Vec<i64>,
    pub(super) sums: Vec<f32>,
    /// `[tables + 1]`: where the gradients of each table begin.
    pub(super) starts: Vec<usize>,
}

impl RowList {
    pub(super) fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.rows.clear();
        self.sums.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    /// Adds rows to the table at hand.
    pub(super) fn add(&mut self, rows: &[u64], sums: &[f32]) {
        self.rows.extend(rows.iter().map(|&row| row as i64));
        self.sums.extend_from_slice(sums);
    }

    /// Ends a table.
    pub(super) fn close(&mut self) {
        self.offsets.push(self.rows.len() as u64);
        self.starts.push(self.sums.len());
    }
}
