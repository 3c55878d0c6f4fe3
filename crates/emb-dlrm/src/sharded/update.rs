//! One step of the rule for each touched row, over all ranks that have a part in it.
//!
//! Alone, an owner sums and updates in one call. It takes two where replicas add up their gradients
//! first, or where a row-wise rule needs the statistic of a row whose columns others hold.

use super::Class;
use super::error::Result;
use super::pool::{Staged, upload};
use emb_comm::Collective;
use emb_kernels::{Backend, Gradients, JaggedView, Mat, RowGradients};
use emb_optim::Rule;
use emb_shard::ReplicaSync;

impl<B: Backend, C: Collective> Class<B, C> {
    /// Updates the parts stored here from `[samples of the group, columns]` gradients.
    pub(super) fn update(
        &mut self,
        backend: &mut B,
        bags: &Staged<B>,
        gradient: &[f32],
        step: u64,
    ) -> Result<()> {
        for (f, feature) in self.map.features().iter().enumerate() {
            if let Some(touched) = &mut self.touched_since[feature.table] {
                touched.add(bags.ids(f));
            }
        }
        let (rows, cols) = (bags.total(), self.layout.own().width);
        let buffer = upload(backend, gradient)?;
        let pooled = Mat::new(B::view(&buffer, 0..gradient.len()), rows, cols);
        let gradients = Gradients { pooled, sequences: &[] };
        let Self { tables, map, rules, touched, .. } = self;
        if !self.sums_gradients && !self.shares_statistics {
            backend.scatter_update(tables, map, bags.view(), &gradients, rules, step)?;
            return Ok(());
        }
        backend.row_gradients(tables, map, bags.view(), &gradients, rules, touched)?;
        if self.sums_gradients {
            self.add_replicas(backend)?;
            std::mem::swap(&mut self.touched, &mut self.merged);
        }
        let totals = self.totals()?;
        let totals: Vec<&[f64]> = totals.iter().map(Vec::as_slice).collect();
        backend.apply(&mut self.tables, &self.touched, &totals, &self.rules, step)?;
        Ok(())
    }

    /// Adds up the gradients of the replicas, in their order, into `merged`.
    fn add_replicas(&mut self, backend: &mut B) -> Result<()> {
        let Self { layout, replicas, touched, syncs, .. } = self;
        let Some(replicas) = replicas else { return Ok(()) };
        let summed = |t: &usize| syncs[*t] == ReplicaSync::Gradients;
        let mine = (0..layout.stored.len()).filter(summed);
        let lens: Vec<u64> = mine.clone().map(|t| touched.rows(t).len() as u64).collect();
        let rows: Vec<u64> = mine.clone().flat_map(|t| touched.rows(t)).copied().collect();
        let sums: Vec<f32> = mine.flat_map(|t| touched.sums(t)).copied().collect();
        let world = replicas.world();
        let mut all_lens = vec![0; lens.len() * world];
        replicas.all_gather_v::<u64>(&lens, &mut all_lens, &vec![lens.len(); world])?;
        let row_counts: Vec<usize> = (0..world)
            .map(|m| all_lens[m * lens.len()..(m + 1) * lens.len()].iter().sum::<u64>() as usize)
            .collect();
        let dims: Vec<usize> = B::specs(&self.tables).iter().map(|spec| spec.dim).collect();
        let summed_dims: Vec<usize> = (0..dims.len()).filter(summed).map(|t| dims[t]).collect();
        let sum_counts: Vec<usize> = (0..world)
            .map(|m| {
                let lens = &all_lens[m * lens.len()..(m + 1) * lens.len()];
                lens.iter().zip(&summed_dims).map(|(&n, dim)| n as usize * dim).sum()
            })
            .collect();
        let mut all_rows = vec![0; row_counts.iter().sum()];
        replicas.all_gather_v::<u64>(&rows, &mut all_rows, &row_counts)?;
        let mut all_sums = vec![0.0; sum_counts.iter().sum()];
        replicas.all_gather_v::<f32>(&sums, &mut all_sums, &sum_counts)?;
        let gathered = Gathered {
            lens: all_lens,
            rows: all_rows,
            sums: all_sums,
            row_counts,
            sum_counts,
            tables: lens.len(),
        };
        let mut list = RowList::default();
        let mut number = 0;
        for (t, &dim) in dims.iter().enumerate() {
            if summed(&t) {
                gathered.append(number, &summed_dims, &mut list);
                number += 1;
            } else {
                list.add(touched.rows(t), touched.sums(t));
            }
            list.close(dim);
        }
        self.sum_list(backend, &list, &dims)
    }

    /// Sums the rows of a list into `merged`.
    fn sum_list(&mut self, backend: &mut B, list: &RowList, dims: &[usize]) -> Result<()> {
        let names: Vec<String> =
            self.rows_map.features().iter().map(|feature| feature.name.clone()).collect();
        let offsets = upload(backend, &list.offsets)?;
        let ids = upload(backend, &list.rows)?;
        let sums = upload(backend, &list.sums)?;
        let batch = JaggedView {
            names: &names,
            batch: 1,
            len: list.rows.len(),
            offsets: B::view(&offsets, 0..list.offsets.len()),
            values: B::view(&ids, 0..list.rows.len()),
            weights: None,
        };
        let mut sequences = Vec::with_capacity(dims.len());
        for (t, &dim) in dims.iter().enumerate() {
            let n = (list.offsets[t + 1] - list.offsets[t]) as usize;
            let part = list.starts[t]..list.starts[t + 1];
            sequences.push((t, Mat::new(B::view(&sums, part), n, dim)));
        }
        let pooled = Mat::new(B::view(&sums, 0..0), 1, 0);
        let gradients = Gradients { pooled, sequences: &sequences };
        // Bags were clamped when each replica summed them.
        let rules: Vec<Rule> = self.rules.iter().copied().map(unclamped).collect();
        let (tables, map, out) = (&mut self.tables, &self.rows_map, &mut self.merged);
        Ok(backend.row_gradients(tables, map, batch, &gradients, &rules, out)?)
    }

    /// The statistics of whole rows, from the owners of all their columns in column order.
    fn totals(&mut self) -> Result<Vec<Vec<f64>>> {
        let touched: &RowGradients = &self.touched;
        let mut totals: Vec<Vec<f64>> =
            (0..self.layout.stored.len()).map(|t| touched.statistics(t).to_vec()).collect();
        let Some(group) = self.group.as_mut().filter(|_| self.shares_statistics) else {
            return Ok(totals);
        };
        let shared = &self.layout.shared;
        let (mut send, mut counts) = (Vec::new(), Vec::with_capacity(shared.len()));
        for with_peer in shared {
            let begin = send.len();
            for &(t, _) in with_peer {
                send.extend_from_slice(touched.statistics(t));
            }
            counts.push(send.len() - begin);
        }
        // Owners of the columns of a row are sent the same ids, so they touch the same rows.
        let mut received = vec![0.0; send.len()];
        group.all_to_all_v::<f64>(&send, &counts, &mut received, &counts)?;
        let mut parts: Vec<Vec<(usize, &[f64])>> = (0..totals.len())
            .map(|t| vec![(self.layout.stored[t].block, touched.statistics(t))])
            .collect();
        let mut rest = &received[..];
        for &(t, block) in shared.iter().flatten() {
            let (part, after) = rest.split_at(totals[t].len());
            parts[t].push((block, part));
            rest = after;
        }
        for (totals, mut parts) in totals.iter_mut().zip(parts) {
            parts.sort_unstable_by_key(|&(block, _)| block);
            for (k, total) in totals.iter_mut().enumerate() {
                *total = parts.iter().map(|(_, part)| part[k]).sum();
            }
        }
        Ok(totals)
    }
}

/// Touched rows and gradients of all replicas, replica by replica.
struct Gathered {
    /// `[replicas, tables]`.
    lens: Vec<u64>,
    rows: Vec<u64>,
    sums: Vec<f32>,
    row_counts: Vec<usize>,
    sum_counts: Vec<usize>,
    tables: usize,
}

impl Gathered {
    /// Appends the entries of the `number`-th table, replica by replica.
    fn append(&self, number: usize, dims: &[usize], list: &mut RowList) {
        let (mut row_base, mut sum_base) = (0, 0);
        for m in 0..self.row_counts.len() {
            let lens = &self.lens[m * self.tables..(m + 1) * self.tables];
            let n = lens[number] as usize;
            let row = row_base + lens[..number].iter().sum::<u64>() as usize;
            let before = lens[..number].iter().zip(dims);
            let sum = sum_base + before.map(|(&n, dim)| n as usize * dim).sum::<usize>();
            list.add(&self.rows[row..row + n], &self.sums[sum..sum + n * dims[number]]);
            row_base += self.row_counts[m];
            sum_base += self.sum_counts[m];
        }
    }
}

/// Rows with gradients, table by table; a row may come more than once.
struct RowList {
    offsets: Vec<u64>,
    rows: Vec<i64>,
    sums: Vec<f32>,
    /// Where the gradients of each table begin.
    starts: Vec<usize>,
}

impl Default for RowList {
    fn default() -> Self {
        Self { offsets: vec![0], rows: Vec::new(), sums: Vec::new(), starts: vec![0] }
    }
}

impl RowList {
    fn add(&mut self, rows: &[u64], sums: &[f32]) {
        self.rows.extend(rows.iter().map(|&row| row as i64));
        self.sums.extend_from_slice(sums);
    }

    /// Ends a table of `dim` columns.
    fn close(&mut self, dim: usize) {
        debug_assert_eq!(
            self.rows.len() - self.offsets[self.offsets.len() - 1] as usize,
            (self.sums.len() - self.starts[self.starts.len() - 1]) / dim
        );
        self.offsets.push(self.rows.len() as u64);
        self.starts.push(self.sums.len());
    }
}

/// The same rule without a clamp of what is added up.
fn unclamped(mut rule: Rule) -> Rule {
    match &mut rule {
        Rule::Sgd(rule) => rule.max_gradient = None,
        Rule::AdaGrad(rule) => rule.max_gradient = None,
        Rule::RowWiseAdaGrad(rule) => rule.max_gradient = None,
        Rule::Adam(rule) => rule.max_gradient = None,
        Rule::RowWiseAdam(rule) => rule.max_gradient = None,
    }
    rule
}
