//! Sums that are added up inside a node before they leave it: [`Nodes`].
//!
//! The samples of a rank with index `i` in its node meet, on every node that has owners, at that
//! node's rank `i`. There the sums of the node's owners are added up; what leaves the node goes
//! from rank to rank of one index (`HugeCTR`, `HierModelParallelEmbedding`). Gradients take the same
//! way back: each enters a node once, and is handed to the owners there.
//!
//! ```text
//!   owner (node n, any index)  --node-->  (n, i)  --rail-->  (m, i), whose sample it is
//! ```

use super::portions::Owned;
use crate::sharded::error::Result;
use crate::sharded::links::Links;
use crate::sharded::wire::{Parcel, Side};
use emb_comm::Collective;
use emb_kernels::host::add;

/// How sums of a node are made, and memory for it.
#[derive(Debug)]
pub(super) struct Nodes {
    /// By node, the columns that any of its owners has.
    pub(super) sources: Vec<Owned>,
    /// By index in this node, where the columns of the owner go.
    moves: Vec<Vec<Move>>,
    /// Columns of each owner of this node.
    widths: Vec<usize>,
    /// What they are.
    owners: Vec<Owned>,
    /// Ranks of a group on a node.
    part: usize,
    /// This rank's node, and its index there.
    node: usize,
    index: usize,
    /// On the way inside the node, by rank.
    packed: Vec<f32>,
    unpacked: Vec<f32>,
    /// On the way between nodes, by node.
    merged: Vec<f32>,
    send_counts: Vec<usize>,
    counts: Vec<usize>,
}

/// Columns of an owner in those of its node.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: usize,
    to: usize,
    width: usize,
    /// Whether no owner before had them.
    first: bool,
}

impl Nodes {
    /// Of owners by position, `part` on every node.
    pub(super) fn new(owned: &[Owned], position: usize, part: usize) -> Self {
        let (node, index) = (position / part, position % part);
        let mut sources = Vec::new();
        let mut own = Vec::new();
        for (number, owners) in owned.chunks(part).enumerate() {
            let (source, moves) = merge(owners);
            sources.push(source);
            if number == node {
                own = moves;
            }
        }
        let owners = &owned[node * part..(node + 1) * part];
        Self {
            sources,
            moves: own,
            widths: owners.iter().map(|owned| owned.width).collect(),
            owners: owners.to_vec(),
            part,
            node,
            index,
            packed: Vec::new(),
            unpacked: Vec::new(),
            merged: Vec::new(),
            send_counts: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// From `sums`, `[samples of the group, columns of this owner]`, to `[batch, columns]` of each
    /// node, for this rank's samples.
    pub(super) fn send_sums<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        sums: &[f32],
        batch: usize,
        samples: &[usize],
        received: &mut Vec<f32>,
    ) -> Result<()> {
        let (node, rail, carrier) = links.by_node()?;
        let width = self.widths[self.index];
        self.packed.clear();
        by_index(self.part, samples, width, |range| self.packed.extend_from_slice(&sums[range]));
        self.count_in_node(samples);
        self.unpacked.resize(self.counts.iter().sum(), 0.0);
        let Self { owners, packed, unpacked, send_counts, counts, index, .. } = self;
        let (to, from) = parcels_in_node(owners, *index, samples);
        let send = Side::new(packed, send_counts, to);
        let recv = Side::new(unpacked, counts, from);
        carrier.carry(node, carrier.forward, send, recv)?;
        self.add_up(samples);
        self.count_on_rail(batch, samples);
        received.resize(self.counts.iter().sum(), 0.0);
        let Self { sources, merged, send_counts, counts, part, node: number, index, .. } = self;
        let (to, from) = parcels_on_rail((sources, *number), (*part, *index), samples, batch);
        let send = Side::new(merged, send_counts, to);
        let recv = Side::new(received, counts, from);
        carrier.carry(rail, carrier.forward, send, recv)
    }

    /// From `[batch, columns]` of each node to `[samples of the group, columns of this owner]`.
    pub(super) fn send_gradients<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        parts: &mut [f32],
        batch: usize,
        samples: &[usize],
        received: &mut Vec<f32>,
    ) -> Result<()> {
        let (node, rail, carrier) = links.by_node()?;
        self.count_on_rail(batch, samples);
        self.merged.resize(self.send_counts.iter().sum(), 0.0);
        let Self { sources, merged, send_counts, counts, part, node: number, index, .. } = self;
        let (to, from) = parcels_on_rail((sources, *number), (*part, *index), samples, batch);
        let send = Side::new(parts, counts, from);
        let recv = Side::new(merged, send_counts, to);
        carrier.carry(rail, carrier.backward, send, recv)?;
        self.hand_out(samples);
        self.count_in_node(samples);
        self.packed.resize(self.send_counts.iter().sum(), 0.0);
        let Self { owners, packed, unpacked, send_counts, counts, index, .. } = self;
        let (to, from) = parcels_in_node(owners, *index, samples);
        let send = Side::new(unpacked, counts, from);
        let recv = Side::new(packed, send_counts, to);
        carrier.carry(node, carrier.backward, send, recv)?;
        let width = self.widths[self.index];
        received.resize(self.packed.len(), 0.0);
        let mut rest = &self.packed[..];
        by_index(self.part, samples, width, |range| {
            let (block, after) = rest.split_at(range.len());
            received[range].copy_from_slice(block);
            rest = after;
        });
        Ok(())
    }

    /// Elements for, and from, every rank of the node on the way to samples.
    fn count_in_node(&mut self, samples: &[usize]) {
        let (part, own) = (self.part, self.widths[self.index]);
        let of_index = |index: usize| samples.iter().skip(index).step_by(part).sum::<usize>();
        self.send_counts.clear();
        self.send_counts.extend((0..part).map(|index| of_index(index) * own));
        self.counts.clear();
        let mine = of_index(self.index);
        self.counts.extend(self.widths.iter().map(|width| mine * width));
    }

    /// Elements for, and from, every node on the way to samples.
    fn count_on_rail(&mut self, batch: usize, samples: &[usize]) {
        let width = self.sources[self.node].width;
        let rail = samples.iter().skip(self.index).step_by(self.part);
        self.send_counts.clear();
        self.send_counts.extend(rail.map(|samples| samples * width));
        self.counts.clear();
        self.counts.extend(self.sources.iter().map(|source| batch * source.width));
    }

    /// The sums of the node's owners, in their order, for the samples of this rail.
    fn add_up(&mut self, samples: &[usize]) {
        let width = self.sources[self.node].width;
        let count: usize = samples.iter().skip(self.index).step_by(self.part).sum();
        // Every column has a first owner, who writes it.
        self.merged.resize(count * width, 0.0);
        let mut rest = &self.unpacked[..];
        for (moves, &own) in self.moves.iter().zip(&self.widths) {
            let (rows, after) = rest.split_at(count * own);
            rest = after;
            if own == 0 {
                continue;
            }
            for (row, merged) in rows.chunks_exact(own).zip(self.merged.chunks_exact_mut(width)) {
                for of in moves {
                    let from = &row[of.from..][..of.width];
                    let to = &mut merged[of.to..][..of.width];
                    if of.first {
                        to.copy_from_slice(from);
                    } else {
                        add(to, from);
                    }
                }
            }
        }
    }

    /// To every owner of the node its columns of the gradients that came in.
    fn hand_out(&mut self, samples: &[usize]) {
        let width = self.sources[self.node].width;
        let count: usize = samples.iter().skip(self.index).step_by(self.part).sum();
        self.unpacked.clear();
        for moves in &self.moves {
            for merged in self.merged.chunks_exact(width.max(1)).take(count) {
                for of in moves {
                    self.unpacked.extend_from_slice(&merged[of.to..][..of.width]);
                }
            }
        }
    }
}

/// What a rank of a node sends to its ranks on the way to samples, and what it gets from them.
fn parcels_in_node<'a>(
    owners: &'a [Owned],
    index: usize,
    samples: &'a [usize],
) -> (impl Iterator<Item = Parcel<'a>> + Clone, impl Iterator<Item = Parcel<'a>> + Clone) {
    let part = owners.len();
    let of = move |index: usize| samples.iter().skip(index).step_by(part).sum::<usize>();
    let to = (0..part).map(move |other| owners[index].parcel(of(other)));
    (to, owners.iter().map(move |owned| owned.parcel(of(index))))
}

/// What the rank of a node sends to those of its rail on the way to samples, and what it gets.
fn parcels_on_rail<'a>(
    (sources, node): (&'a [Owned], usize),
    (part, index): (usize, usize),
    samples: &'a [usize],
    batch: usize,
) -> (impl Iterator<Item = Parcel<'a>> + Clone, impl Iterator<Item = Parcel<'a>> + Clone) {
    let rail = samples.iter().skip(index).step_by(part);
    let to = rail.map(move |&samples| sources[node].parcel(samples));
    (to, sources.iter().map(move |source| source.parcel(batch)))
}

/// Tells `each` the elements of the samples of the group, of `width` each, by index in the node and
/// then by node.
fn by_index(
    part: usize,
    samples: &[usize],
    width: usize,
    mut each: impl FnMut(std::ops::Range<usize>),
) {
    for index in 0..part {
        let mut start = 0;
        for (position, samples) in samples.iter().enumerate() {
            let end = start + samples * width;
            if position % part == index {
                each(start..end);
            }
            start = end;
        }
    }
}

/// The columns that any of a node's owners has, and how those of each come into them.
fn merge(owners: &[Owned]) -> (Owned, Vec<Vec<Move>>) {
    let mut all = Owned::default();
    let mut moves = Vec::with_capacity(owners.len());
    for owner in owners {
        let mut own: Vec<Move> = Vec::new();
        for portion in &owner.portions {
            // Parts of one column block of one tier differ in their rows alone.
            let same = all
                .portions
                .iter()
                .position(|other| (other.feature, other.block) == (portion.feature, portion.block));
            let first = same.is_none();
            let at = same.unwrap_or(all.portions.len());
            if first {
                let mut portion = portion.clone();
                portion.column = all.width;
                all.width += portion.width;
                all.portions.push(portion);
            }
            let to = all.portions[at].column;
            let (from, width) = (portion.column, portion.width);
            match own.last_mut() {
                Some(Move { from: begin, to: begin_to, width: run, first: last })
                    if (*begin + *run, *begin_to + *run, *last) == (from, to, first) =>
                {
                    *run += width;
                }
                _ => own.push(Move { from, to, width, first }),
            }
        }
        moves.push(own);
    }
    all.find_runs();
    (all, moves)
}
