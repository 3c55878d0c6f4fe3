//! What the first phase of an update leaves for the second: [`RowGradients`].

use crate::shape::same as expect;
use crate::{Error, Result, TableSpec};

/// Touched rows of a step, their summed gradients, and what the columns held here add to the
/// statistics of the rows. Reused from step to step, it keeps its memory.
#[derive(Debug, Default)]
pub struct RowGradients {
    tables: Vec<TableGradients>,
}

/// The part of [`RowGradients`] of one table.
#[derive(Debug, Default)]
pub(crate) struct TableGradients {
    pub(crate) dim: usize,
    /// Distinct, ascending.
    pub(crate) rows: Vec<u64>,
    /// `[rows, dim]`.
    pub(crate) sums: Vec<f32>,
    /// `[rows]`.
    pub(crate) statistics: Vec<f64>,
    /// One row in `f32`, for backends that need room for it.
    pub(crate) buffer: Vec<f32>,
}

impl RowGradients {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Local rows of table `table` that the step touches, ascending.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn rows(&self, table: usize) -> &[u64] {
        &self.tables[table].rows
    }

    /// `[rows, dim]` sums of the gradients of those rows.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn sums(&self, table: usize) -> &[f32] {
        &self.tables[table].sums
    }

    /// `[rows]` statistics of the columns held here; all 0 for a rule that uses none.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn statistics(&self, table: usize) -> &[f64] {
        &self.tables[table].statistics
    }

    pub(crate) fn tables(&self) -> &[TableGradients] {
        &self.tables
    }

    /// The parts of `count` tables, to be filled anew.
    pub(crate) fn reset(&mut self, count: usize) -> &mut [TableGradients] {
        self.tables.resize_with(count, TableGradients::default);
        &mut self.tables
    }

    /// Refuses totals of another count than rows, and gradients of other tables than `specs`.
    pub(crate) fn check(
        &self,
        operation: &'static str,
        specs: &[TableSpec],
        totals: &[&[f64]],
    ) -> Result<()> {
        expect(operation, "tables of the gradients", specs.len(), self.tables.len())?;
        expect(operation, "totals, one slice a table", self.tables.len(), totals.len())?;
        for ((spec, part), totals) in specs.iter().zip(&self.tables).zip(totals) {
            expect(operation, "totals of a table", part.rows.len(), totals.len())?;
            if part.dim != spec.dim || part.rows.last().is_some_and(|&row| row >= spec.rows) {
                return Err(Error::BadTable {
                    table: spec.name.clone(),
                    what: "the row gradients are of another table".to_owned(),
                });
            }
        }
        Ok(())
    }
}
