//! One process over the bare operations of a backend, sequence features included, and how ranks
//! are compared with it.

use crate::support::{Model, Outcome, SEED, Upstream, concat, cpu};
use emb_dlrm::sharded::WholeTable;
use emb_kernels::{Backend, Cpu, FeatureMap, Gradients, Jagged, Mat};

/// What one process ends with, and what it is measured by.
pub(crate) struct OneProcess {
    pub(crate) outcome: Outcome,
    /// The tables before the first step.
    first: Vec<WholeTable>,
    /// By table, which rows any step looked up.
    touched: Vec<Vec<bool>>,
    /// By table, for weights and each slot, the norms of all its steps, added up: the size of a
    /// tensor of few values may be anything, as they pass through zero.
    travelled: Vec<Vec<f64>>,
}

/// Weights, then each slot.
fn tensors(table: &WholeTable) -> impl Iterator<Item = &[f32]> {
    std::iter::once(&table.weights).chain(&table.state).map(Vec::as_slice)
}

fn norm(of: impl Iterator<Item = f64>) -> f64 {
    of.map(|value| value * value).sum::<f64>().sqrt()
}

fn norm_of(tensor: &[f32]) -> f64 {
    norm(tensor.iter().map(|&value| f64::from(value)))
}

fn apart(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "tensors of one shape");
    norm(a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b)))
}

impl OneProcess {
    /// Trains on all ranks' samples as one batch.
    pub(crate) fn new(model: &Model, steps: &[Vec<Jagged>], upstream: Upstream) -> Self {
        let mut cpu = cpu();
        let mut tables = cpu.create_tables(&model.specs, SEED).expect("tables");
        let map = FeatureMap::new(model.features.clone(), &model.specs, 0).expect("features");
        let first = read(model, &mut cpu, &mut tables);
        let mut travelled: Vec<Vec<f64>> =
            first.iter().map(|table| vec![0.0; 1 + table.state.len()]).collect();
        let mut touched: Vec<Vec<bool>> =
            model.specs.iter().map(|spec| vec![false; spec.rows as usize]).collect();
        let (mut outputs, mut sequences) = (Vec::new(), Vec::new());
        let mut before = first.clone();
        for (number, batches) in steps.iter().enumerate() {
            let batch = concat(&model.names(), batches);
            for (f, feature) in model.features.iter().enumerate() {
                for &id in &batch.as_ref().values[batch.as_ref().feature_range(f)] {
                    touched[feature.table][id as usize] = true;
                }
            }
            let step = number as u64 + 1;
            let (output, rows) =
                one_step(model, &mut cpu, (&mut tables, &map), &batch, upstream, step);
            outputs.push(output);
            sequences.push(rows);
            let after = read(model, &mut cpu, &mut tables);
            for ((sums, before), after) in travelled.iter_mut().zip(&before).zip(&after) {
                for ((sum, before), after) in
                    sums.iter_mut().zip(tensors(before)).zip(tensors(after))
                {
                    *sum += apart(before, after);
                }
            }
            before = after;
        }
        let outcome = Outcome { tables: before, outputs, sequences };
        Self { outcome, first, touched, travelled }
    }

    /// The rows and outputs of all ranks are those of one process within `limit`, norm-wise by
    /// tensor, and how far tables are at most; or where they are not.
    pub(crate) fn check(
        &self,
        model: &Model,
        ranks: &[Outcome],
        limit: f64,
    ) -> Result<f64, String> {
        let most = self.check_tables(model, ranks, limit)?;
        self.check_rows(model, ranks)?;
        let by_rank: Vec<_> = ranks.iter().map(|rank| &rank.outputs).collect();
        check_steps("outputs", &self.outcome.outputs, limit, |step| {
            by_rank.iter().flat_map(|outputs| &outputs[step]).copied().collect()
        })?;
        for (position, feature) in model.sequences().into_iter().enumerate() {
            let expected: Vec<Vec<f32>> =
                self.outcome.sequences.iter().map(|rows| rows[position].clone()).collect();
            let what = format!("rows of feature {}", model.features[feature].name);
            check_steps(&what, &expected, limit, |step| {
                let rows = ranks.iter().flat_map(|rank| &rank.sequences[step][position]);
                rows.copied().collect()
            })?;
        }
        Ok(most)
    }

    fn check_tables(&self, model: &Model, ranks: &[Outcome], limit: f64) -> Result<f64, String> {
        let mut most: f64 = 0.0;
        for (rank, outcome) in ranks.iter().enumerate() {
            for (t, (got, expected)) in outcome.tables.iter().zip(&self.outcome.tables).enumerate()
            {
                let travelled = &self.travelled[t];
                for (k, (got, expected)) in tensors(got).zip(tensors(expected)).enumerate() {
                    let size = norm_of(expected).max(travelled[k]);
                    let apart = apart(got, expected);
                    most = most.max(if apart == 0.0 { 0.0 } else { apart / size });
                    if apart > limit * size {
                        let (name, apart) = (&model.specs[t].name, apart / size);
                        let what =
                            if k == 0 { "weights".into() } else { format!("slot {}", k - 1) };
                        return Err(format!("rank {rank}, table {name}: {what} {apart:e} apart"));
                    }
                }
            }
        }
        Ok(most)
    }

    /// Every row that one process changed has changed, and every row that no step looked up is
    /// bitwise what it was.
    fn check_rows(&self, model: &Model, ranks: &[Outcome]) -> Result<(), String> {
        for (rank, outcome) in ranks.iter().enumerate() {
            for (t, touched) in self.touched.iter().enumerate() {
                let tables = (&outcome.tables[t], &self.first[t], &self.outcome.tables[t]);
                let (got, first, one) = tables;
                let rows = touched.len();
                for (row, &touched) in touched.iter().enumerate() {
                    let changed = row_bits(got, row, rows) != row_bits(first, row, rows);
                    let place = || format!("rank {rank}, table {}, row {row}", model.specs[t].name);
                    if changed && !touched {
                        return Err(format!("{}: changed, but never looked up", place()));
                    }
                    if !changed && touched && moved(one, first, row, rows) {
                        return Err(format!("{}: looked up, but as it was", place()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Weights and state of a row.
fn row_bits(table: &WholeTable, row: usize, rows: usize) -> Vec<u32> {
    let of_row = tensors(table).flat_map(|tensor| {
        let each = tensor.len() / rows;
        &tensor[row * each..(row + 1) * each]
    });
    of_row.map(|value| value.to_bits()).collect()
}

/// Whether the weights of a row moved by more than roundings.
fn moved(after: &WholeTable, before: &WholeTable, row: usize, rows: usize) -> bool {
    let each = after.weights.len() / rows;
    let row = row * each..(row + 1) * each;
    apart(&after.weights[row.clone()], &before.weights[row]) > 1e-5
}

/// What all ranks got in every step is what one process got. A step of few values, which may cancel
/// to nothing, is measured against the mean step.
fn check_steps(
    what: &str,
    expected: &[Vec<f32>],
    limit: f64,
    got: impl Fn(usize) -> Vec<f32>,
) -> Result<(), String> {
    let values: usize = expected.iter().map(Vec::len).sum();
    let mean = norm(expected.iter().map(|step| norm_of(step))) / (values.max(1) as f64).sqrt();
    for (step, expected) in expected.iter().enumerate() {
        let got = got(step);
        if got.len() != expected.len() {
            let (got, expected) = (got.len(), expected.len());
            return Err(format!("{what} of step {step}: {got} values, not {expected}"));
        }
        let size = norm_of(expected).max(mean * (expected.len() as f64).sqrt());
        let apart = apart(&got, expected);
        if apart > limit * size {
            return Err(format!("{what} of step {step}: {:e} apart", apart / size));
        }
    }
    Ok(())
}

fn one_step(
    model: &Model,
    cpu: &mut Cpu,
    (tables, map): (&mut <Cpu as Backend>::Tables, &FeatureMap),
    batch: &Jagged,
    upstream: Upstream,
    step: u64,
) -> (Vec<f32>, Vec<Vec<f32>>) {
    let (samples, width) = (batch.batch(), model.width());
    let view = batch.as_ref().view::<Cpu>();
    let mut output = vec![0.0; samples * width];
    cpu.pool(tables, map, view, Mat::new(&mut output[..], samples, width)).expect("pooled");
    let gradient = upstream.gradient(&output, width, (step, 0, samples));
    let (mut rows, mut gradients) = (Vec::new(), Vec::new());
    for f in model.sequences() {
        let (ids, dim) = (batch.as_ref().feature_range(f).len(), model.dim(f));
        let mut got = vec![0.0; ids * dim];
        cpu.gather(tables, map, f, view, Mat::new(&mut got[..], ids, dim)).expect("rows");
        gradients.push((f, upstream.of_sequence(&got, (f, dim), (step, 0, samples))));
        rows.push(got);
    }
    let matrices: Vec<(usize, Mat<&[f32]>)> = gradients
        .iter()
        .map(|(f, gradient)| {
            let dim = model.dim(*f);
            (*f, Mat::new(&gradient[..], gradient.len() / dim, dim))
        })
        .collect();
    let pooled = Mat::new(&gradient[..], samples, width);
    let gradients = Gradients { pooled, sequences: &matrices };
    let rules: Vec<_> =
        model.specs.iter().map(|spec| spec.optimizer.rule(model.rate, step)).collect();
    cpu.scatter_update(tables, map, view, &gradients, &rules, step).expect("an update");
    (output, rows)
}

fn read(model: &Model, cpu: &mut Cpu, tables: &mut <Cpu as Backend>::Tables) -> Vec<WholeTable> {
    let whole = |(t, spec): (usize, &emb_kernels::TableSpec)| {
        let mut weights = vec![0.0; spec.rows as usize * spec.dim];
        let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
        cpu.read_rows(tables, t, 0, &mut weights, &mut state).expect("rows");
        WholeTable { weights, state }
    };
    model.specs.iter().enumerate().map(whole).collect()
}
