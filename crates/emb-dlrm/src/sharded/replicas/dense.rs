//! Gradients of all rows of a part, summed whatever was touched: [`Dense`].

use super::super::error::Result;
use super::list::RowList;
use super::way::{Part, Way};
use crate::sharded::wire::Narrow;
use emb_comm::Collective;
use emb_kernels::RowGradients;

/// What stands for the gradient of a row that a replica did not touch, in every column.
///
/// It is the neutral element of addition (IEEE 754: `-0 + x` is `x`, bit by bit, and `-0 + -0` is
/// `-0`), and the sum of a touched row is none: that begins with 0. So rows that nobody touched are
/// told by it, and need no bit of their own. Formats of 16 bits have it too; a row of negative
/// gradients that are all too small for one counts as not touched.
const UNTOUCHED: f32 = -0.0;

/// Memory of sums of all rows.
#[derive(Debug, Default)]
pub(super) struct Dense {
    /// `[rows, dim]` of each part, one after the other.
    sums: Vec<f32>,
}

impl Dense {
    /// Sums the gradients of parts that are summed whole: one collective, if there are any.
    pub(super) fn sum<C: Collective>(
        &mut self,
        replicas: &mut C,
        parts: &[Part],
        touched: &RowGradients,
        narrow: &mut Narrow,
    ) -> Result<()> {
        let parts = parts.iter().filter(|part| part.way == Way::Dense);
        self.sums.clear();
        self.sums.resize(parts.clone().map(|part| part.rows * part.dim).sum(), UNTOUCHED);
        if self.sums.is_empty() {
            return Ok(());
        }
        let mut rest = &mut self.sums[..];
        for part in parts {
            let (sums, after) = rest.split_at_mut(part.rows * part.dim);
            rest = after;
            let gradients = touched.sums(part.table).chunks_exact(part.dim);
            for (&row, gradient) in touched.rows(part.table).iter().zip(gradients) {
                let sum = &mut sums[row as usize * part.dim..][..part.dim];
                // Adding 0 makes -0 0.
                sum.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum = gradient + 0.0);
            }
        }
        Ok(narrow.all_reduce(replicas, &mut self.sums)?)
    }

    /// Appends the touched rows of a part and their sums to a list; the sums of the part begin at
    /// `start`, which becomes their end.
    pub(super) fn list(&self, part: &Part, start: &mut usize, list: &mut RowList) {
        let sums = &self.sums[*start..*start + part.rows * part.dim];
        *start += sums.len();
        for (row, sum) in (0..).zip(sums.chunks_exact(part.dim)) {
            if sum.iter().any(|sum| sum.to_bits() != UNTOUCHED.to_bits()) {
                list.add(&[row], sum);
            }
        }
    }
}
