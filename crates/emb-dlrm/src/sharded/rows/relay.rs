//! What one rank of a node asks owners for in the name of all: [`Relay`].

use super::distinct::Distinct;
use super::exchange::ExchangeMemory;
use crate::sharded::error::Result;
use crate::sharded::layout::Layout;
use crate::sharded::links::Links;
use crate::sharded::wire::{Kind, Kinds, Lists};
use emb_comm::Collective;
use emb_kernels::Mat;
use emb_kernels::host::{add_rows, copy_rows};
use std::ops::Range;

/// The shards of the owners with this rank's index in their nodes, and memory.
#[derive(Debug)]
pub(super) struct Relay {
    /// Columns of each, by node, and its tier.
    widths: Vec<usize>,
    tiers: Vec<usize>,
    /// Which of them each node has.
    nodes: Vec<Range<usize>>,
    /// Rows, or gradients, of the node's lists.
    merged: Vec<f32>,
    /// The same of every rank's lists.
    apart: Vec<f32>,
    merged_counts: Vec<usize>,
    apart_counts: Vec<usize>,
    /// The same as rows.
    of_nodes: Kinds,
    of_ranks: Kinds,
    /// By shard, how many rows of the ranks' lists are done.
    taken: Vec<usize>,
}

/// The lists of the ranks of a node, and the list of the node: kept from the exchange of ids on.
#[derive(Debug, Default)]
pub(super) struct Relayed {
    /// By rank of the node and shard: how many rows.
    lens: Vec<usize>,
    /// By shard, all ranks' lists after each other: each row's place in the list of the node.
    row_of: Vec<Vec<u32>>,
    /// By shard, each row of any list once.
    united: Vec<Distinct>,
    /// By shard, where its rows begin.
    starts: Vec<usize>,
}

impl Relay {
    pub(super) fn new(
        layout: &Layout,
        wire: &[usize],
        peers: &[Range<usize>],
        part: usize,
    ) -> Self {
        let own = &wire[peers[layout.position % part].clone()];
        let widths = own.iter().map(|&shard| layout.shards[shard].width).collect();
        let tiers = own.iter().map(|&shard| layout.shards[shard].tier).collect();
        let mut nodes = Vec::new();
        let mut begin = 0;
        for node in 0..layout.owned.len() / part {
            let owner = node * part + layout.position % part;
            let end = begin + layout.owned[owner].len();
            nodes.push(begin..end);
            begin = end;
        }
        Self {
            widths,
            tiers,
            nodes,
            merged: Vec::new(),
            apart: Vec::new(),
            merged_counts: vec![0; layout.owned.len() / part],
            apart_counts: vec![0; part],
            of_nodes: Kinds::default(),
            of_ranks: Kinds::default(),
            taken: Vec::new(),
        }
    }

    /// Lists that every rank of the node sends here.
    pub(super) fn lists(&self) -> usize {
        self.widths.len()
    }

    /// Unites the lists that came from the ranks of the node, and makes what the owners are asked.
    pub(super) fn unite(&self, memory: &mut ExchangeMemory, relayed: &mut Relayed) {
        let shards = self.widths.len();
        let Relayed { lens, row_of, united, starts, .. } = relayed;
        lens.clear();
        row_of.resize_with(shards, Vec::new);
        united.resize_with(shards, Distinct::default);
        united.iter_mut().for_each(Distinct::clear);
        let mut rest = &memory.received[..];
        for &words in &memory.told {
            let (own, after) = rest.split_at(words);
            let (lengths, mut rows) = own.split_at(shards);
            for (&length, united) in lengths.iter().zip(&mut *united) {
                let (list, others) = rows.split_at(length as usize);
                united.extend(list);
                lens.push(list.len());
                rows = others;
            }
            rest = after;
        }
        for (united, row_of) in united.iter_mut().zip(&mut *row_of) {
            united.number(row_of);
        }
        let ExchangeMemory { words, counts, lists: in_lists, .. } = memory;
        words.clear();
        counts.clear();
        in_lists.clear();
        starts.clear();
        let mut start = 0;
        for node in &self.nodes {
            let begin = words.len();
            let lists = united[node.clone()].iter().map(Distinct::as_slice);
            words.extend(lists.clone().map(|list| list.len() as i64));
            for (list, width) in lists.zip(&self.widths[node.clone()]) {
                words.extend(list.iter().map(|&row| row as i64));
                starts.push(start);
                start += list.len() * width;
            }
            counts.push(words.len() - begin);
            in_lists.push(node.len());
        }
    }

    /// Brings rows from their owners, `served` there, to the ranks that asked for them.
    pub(super) fn rows<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        served: Lists<'_>,
        relayed: &Relayed,
        received: Lists<'_>,
    ) -> Result<()> {
        let (node, rail, carrier) = links.by_node()?;
        self.count(relayed);
        let Self { merged, apart, widths, taken, .. } = self;
        let Self { merged_counts, apart_counts, of_nodes, of_ranks, .. } = self;
        merged.resize(merged_counts.iter().sum(), 0.0);
        let recv = Lists::of(merged, merged_counts, of_nodes);
        carrier.carry_lists(rail, carrier.forward, served, recv)?;
        apart.clear();
        for lens in relayed.lens.chunks_exact(widths.len().max(1)) {
            for (shard, &len) in lens.iter().enumerate() {
                let (start, width) = (relayed.starts[shard], widths[shard]);
                let numbers = &relayed.row_of[shard][taken[shard]..][..len];
                copy_rows(&merged[start..], width, numbers, apart);
                taken[shard] += len;
            }
        }
        let send = Lists::of(apart, apart_counts, of_ranks);
        carrier.carry_lists(node, carrier.forward, send, received)
    }

    /// Brings gradients from the ranks of the node, summed in their order, to the owners.
    pub(super) fn gradients<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        wanted: Lists<'_>,
        relayed: &Relayed,
        served: Lists<'_>,
    ) -> Result<()> {
        let (node, rail, carrier) = links.by_node()?;
        self.count(relayed);
        let Self { merged, apart, widths, taken, .. } = self;
        let Self { merged_counts, apart_counts, of_nodes, of_ranks, .. } = self;
        apart.resize(apart_counts.iter().sum(), 0.0);
        let recv = Lists::of(apart, apart_counts, of_ranks);
        carrier.carry_lists(node, carrier.backward, wanted, recv)?;
        merged.clear();
        merged.resize(merged_counts.iter().sum(), 0.0);
        let mut rest = &apart[..];
        for lens in relayed.lens.chunks_exact(widths.len().max(1)) {
            for (shard, &len) in lens.iter().enumerate() {
                let (start, width) = (relayed.starts[shard], widths[shard]);
                let (rows, after) = rest.split_at(len * width);
                let numbers = &relayed.row_of[shard][taken[shard]..][..len];
                add_rows(Mat::new(rows, len, width), numbers, &mut merged[start..]);
                taken[shard] += len;
                rest = after;
            }
        }
        let send = Lists::of(merged, merged_counts, of_nodes);
        carrier.carry_lists(rail, carrier.backward, send, served)
    }

    /// Elements of the lists of each node's owner, and of the lists of each rank of this node.
    fn count(&mut self, relayed: &Relayed) {
        let Self { widths, tiers, nodes, merged_counts, apart_counts, taken, .. } = self;
        let Self { of_nodes, of_ranks, .. } = self;
        for (count, node) in merged_counts.iter_mut().zip(&*nodes) {
            let lists = relayed.united[node.clone()].iter().zip(&widths[node.clone()]);
            *count = lists.map(|(list, width)| list.as_slice().len() * width).sum();
        }
        let by_rank = relayed.lens.chunks_exact(widths.len().max(1));
        for (count, lens) in apart_counts.iter_mut().zip(by_rank) {
            *count = lens.iter().zip(&*widths).map(|(len, width)| len * width).sum();
        }
        let kind = |shard: usize, rows| Kind { rows, dim: widths[shard], tier: tiers[shard] };
        of_nodes.clear();
        for node in nodes {
            node.clone().for_each(|n| of_nodes.push(kind(n, relayed.united[n].as_slice().len())));
            of_nodes.next_peer();
        }
        of_ranks.clear();
        for rank in 0..apart_counts.len() {
            let lens = relayed.lens.iter().skip(rank * widths.len()).take(widths.len());
            lens.enumerate().for_each(|(shard, &len)| of_ranks.push(kind(shard, len)));
            of_ranks.next_peer();
        }
        taken.clear();
        taken.resize(widths.len(), 0);
    }
}
