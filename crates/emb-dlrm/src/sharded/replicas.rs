//! Gradients of touched rows, added up over the replicas before the rule runs.

use super::error::Result;
use super::memory::{Grown, ListMemory};
use super::stored::StoredShards;
use emb_comm::Collective;
use emb_kernels::{Backend, Gradients, JaggedView, Mat, RowGradients, TableSpec};
use emb_optim::Rule;
use emb_shard::ReplicaSync;

/// Memory of the sum over replicas.
pub(super) struct SummedReplicas<B: Backend> {
    /// Columns of each stored part.
    dims: Vec<usize>,
    /// Names of the stored parts, for errors.
    names: Vec<String>,
    /// Which stored parts sum their gradients.
    tables: Vec<usize>,
    mine: Parts,
    all: Parts,
    /// By replica: tables, rows, elements.
    counts: [Vec<usize>; 3],
    list: RowList,
    offsets: Grown<B, u64>,
    ids: Grown<B, i64>,
    sums: Grown<B, f32>,
    sequences: ListMemory<(usize, Mat<B::View<'static, f32>>)>,
    rules: Vec<Rule>,
    merged: RowGradients,
}

/// Touched rows and their gradients, table after table, for one replica after the other.
#[derive(Debug, Default)]
struct Parts {
    /// `[replicas, tables]`.
    lens: Vec<u64>,
    rows: Vec<u64>,
    sums: Vec<f32>,
}

/// Rows with gradients, table by table; a row may come more than once.
#[derive(Debug, Default)]
struct RowList {
    offsets: Vec<u64>,
    rows: Vec<i64>,
    sums: Vec<f32>,
    /// Where the gradients of each table begin.
    starts: Vec<usize>,
}

impl<B: Backend> SummedReplicas<B> {
    /// For stored parts of these syncs.
    pub(super) fn new(syncs: &[ReplicaSync], specs: &[TableSpec]) -> Self {
        let summed = |&t: &usize| syncs[t] == ReplicaSync::Gradients;
        Self {
            dims: specs.iter().map(|spec| spec.dim).collect(),
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            tables: (0..specs.len()).filter(summed).collect(),
            mine: Parts::default(),
            all: Parts::default(),
            counts: [Vec::new(), Vec::new(), Vec::new()],
            list: RowList::default(),
            offsets: Grown::default(),
            ids: Grown::default(),
            sums: Grown::default(),
            sequences: ListMemory::default(),
            rules: Vec::new(),
            merged: RowGradients::new(),
        }
    }

    /// Brings the rows and gradients of every replica here.
    fn gather<C: Collective>(&mut self, replicas: &mut C, touched: &RowGradients) -> Result<()> {
        let Self { dims, tables, mine, all, counts, .. } = self;
        mine.lens.clear();
        mine.rows.clear();
        mine.sums.clear();
        for &t in &*tables {
            mine.lens.push(touched.rows(t).len() as u64);
            mine.rows.extend_from_slice(touched.rows(t));
            mine.sums.extend_from_slice(touched.sums(t));
        }
        let world = replicas.world();
        let [lens, rows, sums] = counts;
        lens.clear();
        lens.resize(world, tables.len());
        all.lens.resize(tables.len() * world, 0);
        replicas.all_gather_v::<u64>(&mine.lens, &mut all.lens, lens)?;
        rows.clear();
        sums.clear();
        for m in 0..world {
            let lens = &all.lens[m * tables.len()..(m + 1) * tables.len()];
            rows.push(lens.iter().map(|&n| n as usize).sum());
            sums.push(lens.iter().zip(&*tables).map(|(&n, &t)| n as usize * dims[t]).sum());
        }
        all.rows.resize(rows.iter().sum(), 0);
        replicas.all_gather_v::<u64>(&mine.rows, &mut all.rows, rows)?;
        all.sums.resize(sums.iter().sum(), 0.0);
        Ok(replicas.all_gather_v::<f32>(&mine.sums, &mut all.sums, sums)?)
    }

    /// Lists rows table by table, those of the replicas in their order.
    fn arrange(&mut self, touched: &RowGradients) {
        let Self { dims, tables, all, counts, list, .. } = self;
        list.clear();
        let mut number = 0;
        for (t, &dim) in dims.iter().enumerate() {
            if tables.get(number) != Some(&t) {
                list.add(touched.rows(t), touched.sums(t));
                list.close();
                continue;
            }
            let (mut row_base, mut sum_base) = (0, 0);
            for (lens, (rows, sums)) in
                all.lens.chunks_exact(tables.len()).zip(counts[1].iter().zip(&counts[2]))
            {
                let n = lens[number] as usize;
                let before = lens[..number].iter().map(|&n| n as usize);
                let row = row_base + before.clone().sum::<usize>();
                let sum = sum_base + before.zip(&*tables).map(|(n, &t)| n * dims[t]).sum::<usize>();
                list.add(&all.rows[row..row + n], &all.sums[sum..sum + n * dim]);
                row_base += rows;
                sum_base += sums;
            }
            list.close();
            number += 1;
        }
    }
}

impl<B: Backend, C: Collective> StoredShards<B, C> {
    /// Adds up the gradients of the replicas, in their order, into `touched`.
    pub(super) fn add_replicas(&mut self, backend: &mut B) -> Result<()> {
        let Self { replicas, touched, tables, rows_map, rules, summed, .. } = self;
        let Some(replicas) = replicas else { return Ok(()) };
        summed.gather(replicas, touched)?;
        summed.arrange(touched);
        let SummedReplicas { dims, names, list, offsets, ids, sums, .. } = summed;
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
        let mut sequences = summed.sequences.take();
        for (t, &dim) in dims.iter().enumerate() {
            let n = (list.offsets[t + 1] - list.offsets[t]) as usize;
            let part = sums.view(list.starts[t]..list.starts[t + 1]);
            sequences.push((t, Mat::new(part, n, dim)));
        }
        let pooled = Mat::new(sums.view(0..0), 1, 0);
        let gradients = Gradients { pooled, sequences: &sequences };
        // Bags were clamped when each replica summed them.
        summed.rules.clear();
        summed.rules.extend(rules.iter().copied().map(unclamped));
        let (rules, merged) = (&summed.rules, &mut summed.merged);
        backend.row_gradients(tables, rows_map, batch, &gradients, rules, merged)?;
        summed.sequences.put(sequences);
        std::mem::swap(touched, &mut summed.merged);
        Ok(())
    }
}

impl RowList {
    fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.rows.clear();
        self.sums.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    fn add(&mut self, rows: &[u64], sums: &[f32]) {
        self.rows.extend(rows.iter().map(|&row| row as i64));
        self.sums.extend_from_slice(sums);
    }

    /// Ends a table.
    fn close(&mut self) {
        self.offsets.push(self.rows.len() as u64);
        self.starts.push(self.sums.len());
    }
}

impl<B: Backend> std::fmt::Debug for SummedReplicas<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SummedReplicas").field("tables", &self.tables).finish_non_exhaustive()
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
