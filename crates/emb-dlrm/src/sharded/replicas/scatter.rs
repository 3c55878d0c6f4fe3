//! Gradients at the replicas that sum them: [`Scatter`].

use super::super::error::Result;
use super::packed::{Packed, Place};
use super::way::{Part, Way};
use crate::sharded::wire::Narrow;
use emb_comm::Collective;
use emb_kernels::RowGradients;

/// Memory of gradients that were sent to the replicas that sum them.
#[derive(Debug, Default)]
pub(super) struct Scatter {
    /// `[replicas, scattered parts]`: how many rows are sent and received.
    sent: Vec<usize>,
    received: Vec<usize>,
    send: Packed,
    arrived: Packed,
    /// The next row of each replica.
    heads: Vec<Place>,
}

impl Scatter {
    /// Brings the gradients of scattered parts to the replicas that sum them: three collectives, if
    /// there are any.
    pub(super) fn send<C: Collective>(
        &mut self,
        replicas: &mut C,
        parts: &[Part],
        touched: &RowGradients,
        narrow: &mut Narrow,
    ) -> Result<()> {
        let Self { sent, received, send, arrived, heads } = self;
        let world = replicas.world();
        let scattered = parts.iter().filter(|part| part.way == Way::Scattered);
        let count = scattered.clone().count();
        if count == 0 {
            return Ok(());
        }
        sent.clear();
        sent.resize(world * count, 0);
        for (s, part) in scattered.enumerate() {
            for &row in touched.rows(part.table) {
                sent[owner(row, world) * count + s] += 1;
            }
        }
        received.resize(world * count, 0);
        replicas.exchange_counts(sent, received)?;
        place(send, parts, world, sent);
        fill(send, parts, world, touched, heads);
        place(arrived, parts, world, received);
        let Packed { rows, sums, row_counts, sum_counts, .. } = arrived;
        replicas.all_to_all_v::<u64>(&send.rows, &send.row_counts, rows, row_counts)?;
        let sent = (&mut send.sums[..], &send.sum_counts[..]);
        Ok(narrow.all_to_all(replicas, sent, (sums, sum_counts))?)
    }

    /// Appends the rows of part `number` that are summed here, ascending, and their sums; returns
    /// how many there are.
    pub(super) fn sum_rows(
        &mut self,
        number: usize,
        parts: &[Part],
        rows: &mut Vec<u64>,
        sums: &mut Vec<f32>,
    ) -> usize {
        let Self { arrived, heads, .. } = self;
        let (dim, begin) = (parts[number].dim, rows.len());
        heads.clear();
        heads.extend(arrived.of_part(number, parts.len()));
        let next = |head: &Place| (head.rows > 0).then(|| arrived.rows[head.row]);
        while let Some(row) = heads.iter().filter_map(next).min() {
            rows.push(row);
            let at = sums.len();
            for head in heads.iter_mut().filter(|head| next(head) == Some(row)) {
                add(sums, at, &arrived.sums[head.sum..][..dim]);
                *head = Place { row: head.row + 1, sum: head.sum + dim, rows: head.rows - 1 };
            }
        }
        rows.len() - begin
    }
}

/// Makes room where `counts` are the rows of scattered parts by replica.
fn place(packed: &mut Packed, parts: &[Part], world: usize, counts: &[usize]) {
    let mut counts = counts.iter();
    packed.place(parts, world, |_, p| match parts[p].way {
        Way::Scattered => *counts.next().expect("invariant: one for each replica and part"),
        Way::Gathered | Way::Dense => 0,
    });
}

/// Writes the gradients of this replica to their places. `heads` is memory.
fn fill(
    send: &mut Packed,
    parts: &[Part],
    world: usize,
    touched: &RowGradients,
    heads: &mut Vec<Place>,
) {
    for (p, part) in parts.iter().enumerate().filter(|(_, part)| part.way == Way::Scattered) {
        heads.clear();
        heads.extend(send.of_part(p, parts.len()));
        let gradients = touched.sums(part.table).chunks_exact(part.dim);
        for (&row, gradient) in touched.rows(part.table).iter().zip(gradients) {
            let head = &mut heads[owner(row, world)];
            send.rows[head.row] = row;
            send.sums[head.sum..][..part.dim].copy_from_slice(gradient);
            head.row += 1;
            head.sum += part.dim;
        }
    }
}

/// The replica that sums a row. Neighbours go to different ones, so that hot rows that stand
/// together are spread.
fn owner(row: u64, replicas: usize) -> usize {
    (row % replicas as u64) as usize
}

/// Adds `values` to the elements from `at` on, which they become if there are none.
fn add(sums: &mut Vec<f32>, at: usize, values: &[f32]) {
    if sums.len() == at {
        sums.extend_from_slice(values);
    } else {
        sums[at..].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
}
