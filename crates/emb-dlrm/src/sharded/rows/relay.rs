//! What one rank of a node asks owners for in the name of all: [`Relay`].

use super::distinct::Distinct;
use super::exchange::ExchangeMemory;
use crate::sharded::error::Result;
use crate::sharded::layout::Layout;
use crate::sharded::links::Links;
use emb_comm::Collective;
use emb_kernels::Mat;
use emb_kernels::host::{add_rows, copy_rows};
use std::ops::Range;

/// The shards of the owners with this rank's index in their nodes, and memory.
#[derive(Debug)]
pub(super) struct Relay {
    /// Columns of each, by node.
    widths: Vec<usize>,
    /// Which of them each node has.
    nodes: Vec<Range<usize>>,
    /// Rows, or gradients, of the node's lists.
    merged: Vec<f32>,
    /// The same of every rank's lists.
    apart: Vec<f32>,
    merged_counts: Vec<usize>,
    apart_counts: Vec<usize>,
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
            nodes,
            merged: Vec::new(),
            apart: Vec::new(),
            merged_counts: vec![0; layout.owned.len() / part],
            apart_counts: vec![0; part],
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
        served: &[f32],
        relayed: &Relayed,
        received: &mut [f32],
        (served_counts, wanted_counts): (&[usize], &[usize]),
    ) -> Result<()> {
        let (node, rail) = links.by_node()?;
        self.count(relayed);
        let Self { merged, apart, merged_counts, apart_counts, widths, taken, .. } = self;
        merged.resize(merged_counts.iter().sum(), 0.0);
        rail.all_to_all_v::<f32>(served, served_counts, merged, merged_counts)?;
        apart.clear();
        for lens in relayed.lens.chunks_exact(widths.len().max(1)) {
            for (shard, &len) in lens.iter().enumerate() {
                let (start, width) = (relayed.starts[shard], widths[shard]);
                let numbers = &relayed.row_of[shard][taken[shard]..][..len];
                copy_rows(&merged[start..], width, numbers, apart);
                taken[shard] += len;
            }
        }
        Ok(node.all_to_all_v::<f32>(apart, apart_counts, received, wanted_counts)?)
    }

    /// Brings gradients from the ranks of the node, summed in their order, to the owners.
    pub(super) fn gradients<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        wanted: &[f32],
        relayed: &Relayed,
        served: &mut [f32],
        (served_counts, wanted_counts): (&[usize], &[usize]),
    ) -> Result<()> {
        let (node, rail) = links.by_node()?;
        self.count(relayed);
        let Self { merged, apart, merged_counts, apart_counts, widths, taken, .. } = self;
        apart.resize(apart_counts.iter().sum(), 0.0);
        node.all_to_all_v::<f32>(wanted, wanted_counts, apart, apart_counts)?;
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
        Ok(rail.all_to_all_v::<f32>(merged, merged_counts, served, served_counts)?)
    }

    /// Elements of the lists of each node's owner, and of the lists of each rank of this node.
    fn count(&mut self, relayed: &Relayed) {
        let Self { widths, nodes, merged_counts, apart_counts, taken, .. } = self;
        for (count, node) in merged_counts.iter_mut().zip(nodes) {
            let lists = relayed.united[node.clone()].iter().zip(&widths[node.clone()]);
            *count = lists.map(|(list, width)| list.as_slice().len() * width).sum();
        }
        let by_rank = relayed.lens.chunks_exact(widths.len().max(1));
        for (count, lens) in apart_counts.iter_mut().zip(by_rank) {
            *count = lens.iter().zip(&*widths).map(|(len, width)| len * width).sum();
        }
        taken.clear();
        taken.resize(widths.len(), 0);
    }
}
