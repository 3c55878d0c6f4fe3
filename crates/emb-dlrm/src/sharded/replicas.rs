//! Gradients of touched rows, added up over the replicas before the rule runs.

use super::error::Result;
use super::memory::{Grown, ListMemory};
use super::stored::StoredShards;
use super::wire::{Format, Narrow};
use emb_comm::{Collective, Meter};
use emb_kernels::{Backend, FeatureMap, Gradients, JaggedView, Mat, RowGradients, TableSpec};
use emb_optim::Rule;
use emb_shard::ReplicaSync;

mod dense;
mod gather;
mod list;
mod packed;
mod scatter;
mod way;

use dense::Dense;
use gather::Gathered;
use list::RowList;
use scatter::Scatter;
use way::{Overlap, Part, Way};

/// Memory of the sum over replicas.
pub(super) struct SummedReplicas<B: Backend> {
    /// Columns of each stored part.
    dims: Vec<usize>,
    /// Names of the stored parts, for errors.
    names: Vec<String>,
    /// The stored parts that sum their gradients.
    parts: Vec<Part>,
    /// Rows of one part that each replica touched.
    counts: Vec<u64>,
    /// How gradients travel.
    narrow: Narrow,
    scatter: Scatter,
    gathered: Gathered,
    dense: Dense,
    list: RowList,
    offsets: Grown<B, u64>,
    ids: Grown<B, i64>,
    sums: Grown<B, f32>,
    sequences: ListMemory<(usize, Mat<B::View<'static, f32>>)>,
    rules: Vec<Rule>,
    merged: RowGradients,
    /// What sums have cost so far.
    pub(super) cost: Meter,
}

impl<B: Backend> SummedReplicas<B> {
    /// For stored parts of these syncs.
    pub(super) fn new(syncs: &[ReplicaSync], specs: &[TableSpec]) -> Self {
        let summed = syncs.iter().zip(specs).enumerate();
        let summed = summed.filter(|(_, (sync, _))| **sync == ReplicaSync::Gradients);
        let part = |(table, (_, spec)): (usize, (_, &TableSpec))| Part {
            table,
            rows: spec.rows as usize,
            dim: spec.dim,
            element_bytes: 4,
            way: Way::default(),
            touched: 0,
            overlap: Overlap::default(),
        };
        Self {
            dims: specs.iter().map(|spec| spec.dim).collect(),
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            parts: summed.map(part).collect(),
            counts: Vec::new(),
            narrow: Narrow::default(),
            scatter: Scatter::default(),
            gathered: Gathered::default(),
            dense: Dense::default(),
            list: RowList::default(),
            offsets: Grown::default(),
            ids: Grown::default(),
            sums: Grown::default(),
            sequences: ListMemory::default(),
            rules: Vec::new(),
            merged: RowGradients::new(),
            cost: Meter::default(),
        }
    }

    /// How gradients travel from now on.
    pub(super) fn set(&mut self, format: Format) {
        self.narrow.set(format);
        let bytes = if format.is_exact() { 4 } else { 2 };
        self.parts.iter_mut().for_each(|part| part.element_bytes = bytes);
    }

    /// Lists the rows that any replica touched with their gradients, table by table: two to eight
    /// collectives. `way` chooses for a part of which each replica touched so many rows.
    fn bring<C: Collective>(
        &mut self,
        replicas: &mut C,
        touched: &RowGradients,
        way: impl Fn(&Part, &[u64]) -> Way,
    ) -> Result<()> {
        let Self { parts, counts, narrow, scatter, gathered, dense, .. } = self;
        gathered.tell_counts(replicas, parts, touched)?;
        for p in 0..parts.len() {
            gathered.touched(p, parts.len(), counts);
            parts[p].way = way(&parts[p], counts);
            parts[p].touched = counts.iter().sum();
        }
        // Replicas chose the same ways.
        scatter.send(replicas, parts, touched, narrow)?;
        gathered.tell(replicas, parts, touched, scatter, narrow)?;
        dense.sum(replicas, parts, touched, narrow)?;
        self.arrange(touched);
        Ok(())
    }

    /// Adds up the gradients of rows that are listed more than once, in the order of the list.
    fn merge(
        &mut self,
        backend: &mut B,
        (tables, rows_map): (&mut B::Tables, &FeatureMap),
        rules: &[Rule],
    ) -> Result<()> {
        let Self { dims, names, list, offsets, ids, sums, .. } = self;
        offsets.fill(backend, &list.offsets)?;
        ids.fill(backend, &list.rows)?;
        sums.fill(backend, &list.sums)?;
        let batch = JaggedView {
            names,
            batch: 1,
            len: list.rows.len(),
            offsets: offsets.view(0..list.offsets.len()),
            values: ids.view(0..list.rows.len()),
            weights: None,
        };
        let mut sequences = self.sequences.take();
        for (t, &dim) in dims.iter().enumerate() {
            let n = (list.offsets[t + 1] - list.offsets[t]) as usize;
            let part = sums.view(list.starts[t]..list.starts[t + 1]);
            sequences.push((t, Mat::new(part, n, dim)));
        }
        let pooled = Mat::new(sums.view(0..0), 1, 0);
        let gradients = Gradients { pooled, sequences: &sequences };
        // Bags were clamped when each replica summed them.
        self.rules.clear();
        self.rules.extend(rules.iter().copied().map(unclamped));
        let (rules, merged) = (&self.rules, &mut self.merged);
        backend.row_gradients(tables, rows_map, batch, &gradients, rules, merged)?;
        self.sequences.put(sequences);
        for part in &mut self.parts {
            let distinct = self.merged.rows(part.table).len();
            part.overlap = Overlap { touched: part.touched, distinct: distinct as u64 };
        }
        Ok(())
    }

    /// Lists the rows of all tables, those whose gradients are summed elsewhere as well.
    fn arrange(&mut self, touched: &RowGradients) {
        let Self { dims, parts, gathered, dense, list, .. } = self;
        list.clear();
        let (mut number, mut start) = (0, 0);
        for t in 0..dims.len() {
            match parts.get(number).filter(|part| part.table == t) {
                None => list.add(touched.rows(t), touched.sums(t)),
                Some(part) => {
                    match part.way {
                        Way::Gathered | Way::Scattered => gathered.list(number, parts, list),
                        Way::Dense => dense.list(part, &mut start, list),
                    }
                    number += 1;
                }
            }
            list.close();
        }
    }
}

impl<B: Backend, C: Collective> StoredShards<B, C> {
    /// Adds up the gradients of the replicas, in their order, into `touched`.
    pub(super) fn add_replicas(&mut self, backend: &mut B) -> Result<()> {
        let Self { replicas, touched, tables, rows_map, rules, summed, .. } = self;
        let Some(replicas) = replicas else { return Ok(()) };
        let before = replicas.meters().total();
        summed.bring(replicas, touched, Part::cheapest)?;
        summed.cost = [summed.cost, replicas.meters().total() - before].into_iter().sum();
        summed.merge(backend, (tables, rows_map), rules)?;
        std::mem::swap(touched, &mut summed.merged);
        Ok(())
    }
}

impl<B: Backend> std::fmt::Debug for SummedReplicas<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SummedReplicas").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// The same rule without a clamp of what is added up.
pub(super) fn unclamped(mut rule: Rule) -> Rule {
    match &mut rule {
        Rule::Sgd(rule) => rule.max_gradient = None,
        Rule::AdaGrad(rule) => rule.max_gradient = None,
        Rule::RowWiseAdaGrad(rule) => rule.max_gradient = None,
        Rule::Adam(rule) => rule.max_gradient = None,
        Rule::RowWiseAdam(rule) => rule.max_gradient = None,
    }
    rule
}

#[cfg(test)]
mod tests;
