//! Rows and gradients of several parts for or from several replicas: [`Packed`].

use super::way::Part;

/// Rows and their gradients, replica after replica, part after part.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) rows: Vec<u64>,
    pub(super) sums: Vec<f32>,
    /// Rows, and elements of their gradients, by replica.
    pub(super) row_counts: Vec<usize>,
    pub(super) sum_counts: Vec<usize>,
    /// `[replicas, parts]`.
    places: Vec<Place>,
}

/// Where the rows of one part and replica are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The first of them.
    pub(super) row: usize,
    /// The first element of their gradients.
    pub(super) sum: usize,
    /// How many rows there are.
    pub(super) rows: usize,
}

impl Packed {
    /// Makes room for as many rows as `rows_of` a replica and part there are.
    pub(super) fn place(
        &mut self,
        parts: &[Part],
        replicas: usize,
        mut rows_of: impl FnMut(usize, usize) -> usize,
    ) {
        self.places.clear();
        self.row_counts.clear();
        self.sum_counts.clear();
        let (mut row, mut sum) = (0, 0);
        for m in 0..replicas {
            let before = (row, sum);
            for (p, part) in parts.iter().enumerate() {
                let rows = rows_of(m, p);
                self.places.push(Place { row, sum, rows });
                row += rows;
                sum += rows * part.dim;
            }
            self.row_counts.push(row - before.0);
            self.sum_counts.push(sum - before.1);
        }
        // All of it is written before it is read.
        self.rows.resize(row, 0);
        self.sums.resize(sum, 0.0);
    }

    /// The places of part `number` of `parts`, by replica.
    pub(super) fn of_part(&self, number: usize, parts: usize) -> impl Iterator<Item = Place> + '_ {
        self.places.iter().skip(number).step_by(parts).copied()
    }

    /// The numbers of rows at a place.
    pub(super) fn rows_at(&self, place: Place) -> &[u64] {
        &self.rows[place.row..place.row + place.rows]
    }

    /// `[rows, dim]` gradients at a place.
    pub(super) fn sums_at(&self, place: Place, dim: usize) -> &[f32] {
        &self.sums[place.sum..place.sum + place.rows * dim]
    }
}
