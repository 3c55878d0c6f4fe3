//! Which part of a global table a table in memory is: [`Window`].

use std::fmt;
use std::sync::Arc;

/// Which part of a global table the rows and columns of a [`TableSpec`](crate::TableSpec) are.
///
/// Local `(row, column)` is global `(rows(first_row + row * row_step), first_column + column)`,
/// where [`rows`](Self::rows) is left out when it is `None`; initial weights and stochastic
/// rounding are keyed by global positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Place of local row 0: its global row, or what `rows` turns into its global row.
    pub first_row: u64,
    /// Places between two local rows: 1 for a range, the number of owners for modulo.
    pub row_step: u64,
    /// Global row of every place, where the places are not the rows: a permuted table (the
    /// same function for each of its parts), or any selection of rows.
    pub rows: Option<RowNumbers>,
    /// Global column of local column 0.
    pub first_column: usize,
    /// Columns of the whole table, for row-wise statistics; equal to `dim` without column cuts.
    pub table_dim: usize,
}

impl Window {
    /// The whole table of `dim` columns.
    pub fn whole(dim: usize) -> Self {
        Self { first_row: 0, row_step: 1, rows: None, first_column: 0, table_dim: dim }
    }

    /// Global row of local `row`.
    #[inline(always)]
    pub fn global_row(&self, row: u64) -> u64 {
        let place = self.first_row + row * self.row_step;
        match &self.rows {
            None => place,
            Some(rows) => rows.row(place),
        }
    }
}

/// The global row of every place of a table, as a function.
///
/// It is a function and not a list because a list of a billion rows is 8 GB, while the permutation
/// behind it is usually a few numbers; a backend whose device cannot call it lists the rows
/// that it needs, when it needs them. It is asked for rows that are initialised and, with
/// stochastic rounding, for each row of an update, by several threads at once.
///
/// It must give equal answers to equal questions, and different rows for different places: rows
/// that share a number share their initial weights and their random bits.
///
/// Two are equal when they are clones of one another: functions themselves cannot be compared.
#[derive(Clone)]
pub struct RowNumbers(Arc<dyn Fn(u64) -> u64 + Send + Sync>);

impl RowNumbers {
    /// From the function.
    pub fn new(rows: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(rows))
    }

    /// Global row of place `place`.
    #[inline]
    pub fn row(&self, place: u64) -> u64 {
        (self.0)(place)
    }
}

impl fmt::Debug for RowNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowNumbers").finish_non_exhaustive()
    }
}

impl PartialEq for RowNumbers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RowNumbers {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_numbered_by_its_place() {
        let stride = Window { first_row: 5, row_step: 3, ..Window::whole(8) };
        assert_eq!([0, 1, 4].map(|row| stride.global_row(row)), [5, 8, 17]);
        let numbered = Window { rows: Some(RowNumbers::new(|place| 100 - place)), ..stride };
        assert_eq!([0, 1, 4].map(|row| numbered.global_row(row)), [95, 92, 83]);
    }

    #[test]
    fn only_clones_are_equal() {
        let numbers = || Some(RowNumbers::new(|place| place));
        let window = Window { rows: numbers(), ..Window::whole(8) };
        assert_eq!(window, window.clone());
        assert_ne!(window, Window { rows: numbers(), ..Window::whole(8) });
        assert_ne!(window, Window::whole(8));
    }
}
