//! Embedding operations of a backend against the specification.

mod case;
mod cut;
mod foresight;
mod host;
mod parts;
mod phases;
mod routing;
mod rows;

use crate::reference::embedding as reference;
use crate::{Backend, Dtype, Gradients, Mat, Pooling, TableSpec};
pub use case::{Case, cases};
use emb_optim::{RowRule, RowState, Rule, RuleVisitor, Statistic, element_slots, row_slots};
pub use foresight::foresight_changes_no_bit;
pub use host::{DeviceBatch, DeviceGradients, MatOf, download};
pub use parts::parts_have_the_bits_of_the_whole;
pub use phases::{column_blocks_update_as_whole_rows, two_phases_are_one};
pub use routing::{bucketize, segment_sum, unique};
pub use rows::transfer_rows;

/// Everything that one case produces.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `[batch, width]` pooled output.
    pub pooled: Vec<f32>,
    /// Rows of every sequence feature.
    pub gathered: Vec<(usize, Vec<f32>)>,
    /// Gradient of every per-sample weight.
    pub weight_gradients: Vec<f32>,
    /// `[rows, dim]` weights of every table before the update.
    pub before: Vec<Vec<f32>>,
    /// The same after it.
    pub after: Vec<Vec<f32>>,
    /// State of every table, slot by slot, after the update.
    pub state: Vec<Vec<Vec<f32>>>,
}

/// What tables hold.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    /// `[rows, dim]` weights of every table.
    weights: Vec<Vec<f32>>,
    /// State of every table, slot by slot.
    state: Vec<Vec<Vec<f32>>>,
}

/// Runs the whole suite.
///
/// # Panics
/// When the backend differs from the specification.
pub fn all<B: Backend>(make: impl Fn() -> B) {
    agrees_with_the_reference(&make);
    equal_runs_have_equal_bits(&make, &make);
    equal_runs_have_equal_bits(&make, || make().another().expect("another stream"));
    parts_have_the_bits_of_the_whole(&make);
    two_phases_are_one(&make);
    column_blocks_update_as_whole_rows(&make);
    foresight_changes_no_bit(&make);
    transfer_rows(&make);
    bucketize(&make);
    unique(&make);
    segment_sum(&make);
}

/// Every case gives what the reference gives; rows that no bag names keep their bits.
///
/// # Panics
/// When they differ.
pub fn agrees_with_the_reference<B: Backend>(make: impl Fn() -> B) {
    for case in cases() {
        let outcome = run(&mut make(), &case);
        check(&case, &outcome);
    }
}

/// Two backends (or two runs of one) give the same bits.
///
/// # Panics
/// When they do not.
pub fn equal_runs_have_equal_bits<A: Backend, B: Backend>(a: impl Fn() -> A, b: impl Fn() -> B) {
    let (mut first, mut second) = (a(), b());
    for case in cases() {
        let (x, y) = (run(&mut first, &case), run(&mut second, &case));
        assert!(x == y, "case {}: {} and {} differ", case.seed, first.name(), second.name());
    }
}

/// Lookup, gradients and one update of a case.
///
/// # Panics
/// When the backend refuses the case.
pub fn run<B: Backend>(backend: &mut B, case: &Case) -> Outcome {
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("tables");
    let map = case.map();
    let batch = DeviceBatch::new(backend, &case.batch);
    let before = values_of(backend, &mut tables).weights;

    let samples = case.batch.batch();
    let mut out = backend.zeros::<f32>(samples * map.width()).expect("memory");
    let whole = B::view_mut(&mut out, 0..samples * map.width());
    let matrix = Mat::new(whole, samples, map.width());
    backend.pool(&mut tables, &map, batch.view(), matrix).expect("lookup");
    let pooled = download(backend, &out);

    let mut gathered = Vec::new();
    for (f, rows, dim) in case.sequences() {
        let mut out = backend.zeros::<f32>(rows * dim).expect("memory");
        let matrix = Mat::new(B::view_mut(&mut out, 0..rows * dim), rows, dim);
        backend.gather(&mut tables, &map, f, batch.view(), matrix).expect("lookup");
        gathered.push((f, download(backend, &out)));
    }
    let one_by_one: Vec<f32> = gathered.iter().flat_map(|(_, rows)| rows.clone()).collect();
    let mut out = backend.zeros::<f32>(one_by_one.len()).expect("memory");
    let whole = B::view_mut(&mut out, 0..one_by_one.len());
    backend.gather_all(&mut tables, &map, batch.view(), whole).expect("lookup");
    assert_eq!(download(backend, &out), one_by_one, "all sequences at once");

    let gradients = DeviceGradients::new(backend, case);
    let (pooled_gradient, sequences) = gradients.views();
    let values = case.batch.as_ref().values.len();
    let mut out = backend.zeros::<f32>(values).expect("memory");
    let whole = B::view_mut(&mut out, 0..values);
    backend
        .weight_gradients(&mut tables, &map, batch.view(), pooled_gradient, whole)
        .expect("gradients of weights");
    let weight_gradients = download(backend, &out);

    let gradients = Gradients { pooled: pooled_gradient, sequences: &sequences };
    backend
        .scatter_update(&mut tables, &map, batch.view(), &gradients, &case.rules(), case.step)
        .expect("update");
    let Values { weights: after, state } = values_of(backend, &mut tables);
    Outcome { pooled, gathered, weight_gradients, before, after, state }
}

fn values_of<B: Backend>(backend: &mut B, tables: &mut B::Tables) -> Values {
    let specs = B::specs(tables).to_vec();
    let mut all = Values { weights: Vec::new(), state: Vec::new() };
    for (t, spec) in specs.iter().enumerate() {
        let mut weights = vec![0.0; spec.rows as usize * spec.dim];
        let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
        backend.read_rows(tables, t, 0, &mut weights, &mut state).expect("rows");
        all.weights.push(weights);
        all.state.push(state);
    }
    all
}

/// Compares an outcome with the reference.
///
/// # Panics
/// When they differ.
pub fn check(case: &Case, outcome: &Outcome) {
    let map = case.map();
    let batch = case.batch.as_ref();
    let tables: Vec<reference::Table> = case
        .specs
        .iter()
        .zip(&outcome.before)
        .map(|(spec, weights)| reference::Table { dim: spec.dim, weights: wide(weights) })
        .collect();
    let seed = case.seed;
    close(
        &format!("case {seed}: pooled"),
        &outcome.pooled,
        &reference::pool(&tables, &map, batch),
        1e-5,
    );
    for (f, rows) in &outcome.gathered {
        let expected = reference::gather(&tables, &map, batch, *f);
        close(&format!("case {seed}: sequence {f}"), rows, &expected, 0.0);
    }
    let gradient = wide(&case.pooled_gradient);
    let expected = reference::weight_gradients(&tables, &map, batch, &gradient);
    close(
        &format!("case {seed}: gradients of weights"),
        &outcome.weight_gradients,
        &expected,
        1e-5,
    );
    check_update(case, &outcome.before, &outcome.after, &outcome.state);
}

/// Compares weights and state after an update with the reference.
fn check_update(case: &Case, before: &[Vec<f32>], after: &[Vec<f32>], state: &[Vec<Vec<f32>>]) {
    let rules = case.rules();
    let sums = case.sums();
    for (t, spec) in case.specs.iter().enumerate() {
        for row in 0..spec.rows {
            let range = row as usize * spec.dim..(row as usize + 1) * spec.dim;
            let (before, after) = (&before[t][range.clone()], &after[t][range]);
            let mut expected = before.to_vec();
            let mut expected_state = initial_state(spec);
            let what = format!("case {}, table {t}, row {row}", case.seed);
            let Some(sum) = sums[t].get(&row) else {
                assert!(before == after, "{what} was not touched");
                continue;
            };
            let sum: Vec<f32> = sum.iter().map(|&g| g as f32).collect();
            rules[t].visit(Step { row: &mut expected, state: &mut expected_state, gradient: &sum });
            close(&what, after, &wide(&expected), tolerance(spec.dtype));
            check_state(&what, spec, row as usize, &state[t], &expected_state);
        }
    }
}

/// Largest relative error of an updated weight: rounding of sums, and of storage.
fn tolerance(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => 2e-5,
        Dtype::F16 => 1.2e-3,
        Dtype::Bf16 => 9e-3,
    }
}

/// Row slots, then element slots, at their initial values.
fn initial_state(spec: &TableSpec) -> (Vec<f32>, Vec<f32>) {
    let slots = spec.optimizer.slots();
    let mut state = (Vec::new(), Vec::new());
    for &slot in slots {
        let value = spec.optimizer.initial_state(slot);
        match slot.extent {
            emb_optim::Extent::Row => state.0.push(value),
            emb_optim::Extent::Element => state.1.extend(vec![value; spec.dim]),
        }
    }
    assert_eq!(state.0.len(), row_slots(slots));
    assert_eq!(state.1.len(), element_slots(slots) * spec.dim);
    state
}

fn check_state(
    what: &str,
    spec: &TableSpec,
    row: usize,
    slots: &[Vec<f32>],
    expected: &(Vec<f32>, Vec<f32>),
) {
    let (mut rows, mut elements) = (expected.0.iter(), expected.1.chunks(spec.dim));
    for (slot, values) in spec.optimizer.slots().iter().zip(slots) {
        let what = format!("{what}, {}", slot.name);
        match slot.extent {
            emb_optim::Extent::Row => {
                let expected = f64::from(*rows.next().expect("a row slot"));
                close(&what, &values[row..=row], &[expected], 2e-5);
            }
            emb_optim::Extent::Element => {
                let expected = wide(elements.next().expect("an element slot"));
                close(&what, &values[row * spec.dim..(row + 1) * spec.dim], &expected, 2e-5);
            }
        }
    }
}

struct Step<'a> {
    row: &'a mut [f32],
    state: &'a mut (Vec<f32>, Vec<f32>),
    gradient: &'a [f32],
}

impl RuleVisitor for Step<'_> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let statistic =
            Statistic { total: rule.statistic(self.row, self.gradient), dim: self.row.len() };
        let state = RowState { row: &mut self.state.0, element: &mut self.state.1 };
        rule.step(self.row, state, self.gradient, statistic);
    }
}

impl Case {
    /// Summed gradients of every touched row of every table, by the reference.
    fn sums(&self) -> Vec<reference::RowGradients> {
        let (map, pooled) = (self.map(), wide(&self.pooled_gradient));
        let dims: Vec<usize> = self.specs.iter().map(|spec| spec.dim).collect();
        let sequences: Vec<(usize, Vec<f64>)> =
            self.sequence_gradients.iter().map(|(f, g)| (*f, wide(g))).collect();
        let sequence = |f: usize, k: usize| {
            let (_, rows) = sequences.iter().find(|(at, _)| *at == f).expect("a sequence");
            &rows[k * map.dim(f)..(k + 1) * map.dim(f)]
        };
        let clamp = self.specs[0].optimizer.config().max_gradient.unwrap_or(f64::INFINITY);
        reference::row_gradients(&dims, &map, self.batch.as_ref(), &pooled, sequence, clamp)
    }

    /// The rule of every table.
    pub fn rules(&self) -> Vec<Rule> {
        self.specs.iter().map(|spec| spec.optimizer.rule(0.05, self.step)).collect()
    }

    /// `(feature, rows, dim)` of every sequence feature.
    pub fn sequences(&self) -> Vec<(usize, usize, usize)> {
        let map = self.map();
        let features = map.features().iter().enumerate();
        features
            .filter(|(_, feature)| feature.pooling == Pooling::None)
            .map(|(f, _)| (f, self.batch.as_ref().feature_range(f).len(), map.dim(f)))
            .collect()
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Asserts that values differ by at most `tolerance * max(1, |expected|)`.
#[track_caller]
fn close(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (k, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let error = (f64::from(got) - expected).abs();
        let bound = tolerance * expected.abs().max(1.0);
        assert!(error <= bound, "{what}, element {k}: {got} instead of {expected}");
    }
}
