//! What all replicas tell each other: [`Gathered`].

use super::super::error::Result;
use super::list::RowList;
use super::packed::Packed;
use super::scatter::Scatter;
use super::way::{Part, Way};
use crate::sharded::wire::Narrow;
use emb_comm::Collective;
use emb_kernels::RowGradients;

/// Memory of what all replicas tell each other.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Counts of this replica, and of how many from each.
    own: Vec<u64>,
    counts: Vec<usize>,
    /// `[replicas, parts]`: rows that each replica touched.
    touched: Vec<u64>,
    /// `[replicas, scattered parts]`: rows that each replica summed.
    summed: Vec<u64>,
    rows: Vec<u64>,
    sums: Vec<f32>,
    all: Packed,
}

impl Gathered {
    /// Tells how many rows of each part this replica touched: one collective.
    pub(super) fn tell_counts<C: Collective>(
        &mut self,
        replicas: &mut C,
        parts: &[Part],
        touched: &RowGradients,
    ) -> Result<()> {
        self.own.clear();
        self.own.extend(parts.iter().map(|part| touched.rows(part.table).len() as u64));
        gather_counts(replicas, &self.own, &mut self.counts, &mut self.touched)
    }

    /// Fills `counts` with the rows of part `number` of `parts` that each replica touched.
    pub(super) fn touched(&self, number: usize, parts: usize, counts: &mut Vec<u64>) {
        counts.clear();
        counts.extend(self.touched.iter().skip(number).step_by(parts));
    }

    /// Tells the rows that this replica touched, or summed for all: two collectives, and one more
    /// where nobody else knows how many rows it summed; none where all parts are summed whole.
    pub(super) fn tell<C: Collective>(
        &mut self,
        replicas: &mut C,
        parts: &[Part],
        touched: &RowGradients,
        scatter: &mut Scatter,
        narrow: &mut Narrow,
    ) -> Result<()> {
        if !parts.is_empty() && parts.iter().all(|part| part.way == Way::Dense) {
            return Ok(());
        }
        let Self { own, rows, sums, all, summed, .. } = self;
        own.clear();
        rows.clear();
        sums.clear();
        for (p, part) in parts.iter().enumerate() {
            match part.way {
                Way::Gathered => {
                    rows.extend_from_slice(touched.rows(part.table));
                    sums.extend_from_slice(touched.sums(part.table));
                }
                Way::Scattered => own.push(scatter.sum_rows(p, parts, rows, sums) as u64),
                Way::Dense => {}
            }
        }
        if !own.is_empty() {
            gather_counts(replicas, own, &mut self.counts, summed)?;
        }
        let (world, mut summed) = (replicas.world(), summed.iter());
        all.place(parts, world, |m, p| match parts[p].way {
            Way::Gathered => self.touched[m * parts.len() + p] as usize,
            Way::Scattered => *summed.next().expect("invariant: each replica told it") as usize,
            Way::Dense => 0,
        });
        replicas.all_gather_v::<u64>(rows, &mut all.rows, &all.row_counts)?;
        Ok(narrow.all_gather(replicas, sums, (&mut all.sums, &all.sum_counts))?)
    }

    /// Appends the rows of part `number` and their gradients to a list, those of the replicas in
    /// their order.
    pub(super) fn list(&self, number: usize, parts: &[Part], list: &mut RowList) {
        for place in self.all.of_part(number, parts.len()) {
            list.add(self.all.rows_at(place), self.all.sums_at(place, parts[number].dim));
        }
    }
}

/// Gathers as many counts from every replica as this one has.
fn gather_counts<C: Collective>(
    replicas: &mut C,
    own: &[u64],
    counts: &mut Vec<usize>,
    all: &mut Vec<u64>,
) -> Result<()> {
    counts.clear();
    counts.resize(replicas.world(), own.len());
    all.resize(own.len() * replicas.world(), 0);
    Ok(replicas.all_gather_v::<u64>(own, all, counts)?)
}
