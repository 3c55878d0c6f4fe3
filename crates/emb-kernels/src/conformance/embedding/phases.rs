//! An update in two phases: sums and statistics, then the rules.

use super::cut::{Part, columns, cut, join};
use super::host::{DeviceBatch, DeviceGradients};
use super::{Case, Values, cases, check_update, close, run, values_of};
use crate::{Backend, Error, FeatureMap, Gradients, Jagged, Result, RowGradients, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RowRule, Rule, RuleKind, RuleVisitor};

/// Largest relative error of a summed gradient: `f32` additions of some hundred duplicates.
const SUMS: f64 = 2e-5;

/// The first phase gives the sums of the reference and the statistics of its own sums, and changes
/// no bit of a table; the second then gives the bits of
/// [`scatter_update`](Backend::scatter_update).
///
/// # Panics
/// When they differ.
pub fn two_phases_are_one<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    for case in cases() {
        let one = run(&mut backend, &case);
        let two = Update::run(&mut backend, &case);
        let seed = case.seed;
        assert!(two.before.weights == one.before, "case {seed}: initial weights");
        assert!(two.after.weights == one.after, "case {seed}: updated weights");
        assert!(two.after.state == one.state, "case {seed}: updated state");
        check_sums(&case, &two.before, &two.gradients);
    }
    refusals(&mut backend);
}

/// Tables cut into blocks of columns, whose statistics are added in column order, are updated as
/// the reference updates whole rows.
///
/// # Panics
/// When they differ.
pub fn column_blocks_update_as_whole_rows<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    for case in cases() {
        let shares = [&[1, 1][..], &[1, 4, 3], &[7, 0, 1]][(case.seed / 5) as usize % 3];
        let parts: Vec<Vec<Part>> = case.specs.iter().map(|spec| columns(spec, shares)).collect();
        let cut = cut(&case, &parts);
        let update = Update::run(&mut backend, &cut);
        check_sums(&cut, &update.before, &update.gradients);
        let before = join(&case, &parts, &update.before);
        let after = join(&case, &parts, &update.after);
        check_update(&case, &before.weights, &after.weights, &after.state);
    }
}

/// What an update in two phases has made of tables.
struct Update {
    before: Values,
    after: Values,
    gradients: RowGradients,
}

impl Update {
    fn run<B: Backend>(backend: &mut B, case: &Case) -> Self {
        let mut group = Group::new(backend, case);
        let before = values_of(backend, &mut group.tables);
        let mut gradients = RowGradients::new();
        let rules = case.rules();
        group.row_gradients(backend, &rules, &mut gradients).expect("phase one");
        let same = values_of(backend, &mut group.tables) == before;
        assert!(same, "case {}: phase one changed a table", case.seed);
        let totals = totals(&case.specs, &gradients);
        let totals: Vec<&[f64]> = totals.iter().map(Vec::as_slice).collect();
        backend
            .apply(&mut group.tables, &gradients, &totals, &rules, case.step)
            .expect("phase two");
        let after = values_of(backend, &mut group.tables);
        Self { before, after, gradients }
    }
}

/// The tables and operands of a case in a backend's memory.
struct Group<B: Backend> {
    tables: B::Tables,
    map: FeatureMap,
    batch: DeviceBatch<B>,
    gradients: DeviceGradients<B>,
}

impl<B: Backend> Group<B> {
    fn new(backend: &mut B, case: &Case) -> Self {
        Self {
            tables: backend.create_tables(&case.specs, case.seed).expect("tables"),
            map: case.map(),
            batch: DeviceBatch::new(backend, &case.batch),
            gradients: DeviceGradients::new(backend, case),
        }
    }

    fn row_gradients(
        &mut self,
        backend: &mut B,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()> {
        let (pooled, sequences) = self.gradients.views();
        let gradients = Gradients { pooled, sequences: &sequences };
        let (map, batch) = (&self.map, self.batch.view());
        backend.row_gradients(&mut self.tables, map, batch, &gradients, rules, out)
    }
}

/// Statistics of the whole rows of every table: those of the tables of its name, in column order.
fn totals(specs: &[TableSpec], gradients: &RowGradients) -> Vec<Vec<f64>> {
    let total = |(t, spec): (usize, &TableSpec)| {
        let rows = gradients.rows(t);
        let mut total = vec![0.0; rows.len()];
        for (u, part) in specs.iter().enumerate().filter(|(_, part)| part.name == spec.name) {
            assert_eq!(gradients.rows(u), rows, "blocks {t} and {u} of {}", part.name);
            total.iter_mut().zip(gradients.statistics(u)).for_each(|(sum, part)| *sum += part);
        }
        total
    };
    specs.iter().enumerate().map(total).collect()
}

/// Rows, sums and statistics of the first phase.
fn check_sums(case: &Case, before: &Values, gradients: &RowGradients) {
    let rules = case.rules();
    for (t, (spec, expected)) in case.specs.iter().zip(case.sums()).enumerate() {
        let what = format!("case {}, table {t}", case.seed);
        let rows: Vec<u64> = expected.keys().copied().collect();
        assert_eq!(gradients.rows(t), rows, "{what}: touched rows, ascending");
        let expected: Vec<f64> = expected.into_values().flatten().collect();
        close(&format!("{what}: sums"), gradients.sums(t), &expected, SUMS);
        assert_eq!(gradients.statistics(t).len(), rows.len(), "{what}: statistics");
        let sums = gradients.sums(t).chunks_exact(spec.dim);
        for ((&row, sum), &got) in rows.iter().zip(sums).zip(gradients.statistics(t)) {
            let row = &before.weights[t][row as usize * spec.dim..][..spec.dim];
            let expected = rules[t].visit(Measure { row, sum });
            let error = (got - expected).abs();
            assert!(error <= 1e-9 * expected.abs(), "{what}: statistic {got}, not {expected}");
        }
    }
}

struct Measure<'a> {
    row: &'a [f32],
    sum: &'a [f32],
}

impl RuleVisitor for Measure<'_> {
    type Output = f64;

    fn visit<R: RowRule>(self, rule: R) -> f64 {
        rule.statistic(self.row, self.sum)
    }
}

/// What does not fit is refused by both phases, and nothing has been written.
fn refusals<B: Backend>(backend: &mut B) {
    let touched = |case: &Case| case.specs.len() > 1 && !case.batch.as_ref().values.is_empty();
    let case = cases().find(touched).expect("a case of two tables");
    let mut group = Group::new(backend, &case);
    let before = values_of(backend, &mut group.tables);
    let (rules, mut gradients) = (case.rules(), RowGradients::new());
    group.row_gradients(backend, &rules, &mut gradients).expect("phase one");
    let made = format!("{gradients:?}");

    let beyond = beyond(&case);
    group.batch = DeviceBatch::new(backend, &beyond.batch);
    let refused = group.row_gradients(backend, &rules, &mut gradients).expect_err("an id");
    assert!(matches!(refused, Error::IdOutOfRange { .. }), "{refused}");
    group.batch = DeviceBatch::new(backend, &case.batch);
    let few = &rules[1..];
    group.row_gradients(backend, few, &mut gradients).expect_err("too few rules");
    let others = other_rules(&case);
    group.row_gradients(backend, &others, &mut gradients).expect_err("rules of other state");
    assert_eq!(format!("{gradients:?}"), made, "a refused first phase wrote");

    let totals = totals(&case.specs, &gradients);
    let totals: Vec<&[f64]> = totals.iter().map(Vec::as_slice).collect();
    let mut short = totals.clone();
    let longest = short.iter_mut().max_by_key(|totals| totals.len()).expect("tables");
    *longest = &longest[1..];
    let empty = RowGradients::new();
    let all_rules = &rules[..];
    for (gradients, totals, rules, what) in [
        (&gradients, &totals[1..], all_rules, "totals of too few tables"),
        (&gradients, &short, all_rules, "totals of too few rows"),
        (&gradients, &totals, few, "too few rules"),
        (&gradients, &totals, &others, "rules of other state"),
        (&empty, &totals, all_rules, "gradients of other tables"),
    ] {
        let refused = backend.apply(&mut group.tables, gradients, totals, rules, case.step);
        refused.expect_err(what);
    }
    assert!(values_of(backend, &mut group.tables) == before, "a refused phase wrote");
    refuses_cut_rows(backend, &case);
}

/// The case with an id outside its table at the end.
fn beyond(case: &Case) -> Case {
    let batch = case.batch.as_ref();
    let mut values = batch.values.to_vec();
    *values.last_mut().expect("a value") = i64::MAX;
    let names: Vec<&str> = batch.names.iter().map(String::as_str).collect();
    let lengths: Vec<i64> =
        batch.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i64).collect();
    let weights = batch.weights.map(<[f32]>::to_vec);
    let batch = Jagged::from_lengths(&names, batch.batch, &lengths, values, weights);
    Case { batch: batch.expect("consistent lengths"), ..case.clone() }
}

/// Rules that keep other state than those of the case.
fn other_rules(case: &Case) -> Vec<Rule> {
    let slots = case.specs[0].optimizer.slots();
    let mut kinds = RuleKind::ALL.into_iter().map(Optimizer::new);
    let other = kinds.find(|other| other.slots() != slots).expect("rules of other state");
    vec![other.rule(0.05, case.step); case.specs.len()]
}

/// A rule that needs all columns of a row at once is refused where they are not here, in one phase
/// or two.
fn refuses_cut_rows<B: Backend>(backend: &mut B, case: &Case) {
    let kind = case.specs[0].optimizer.kind();
    let config = OptimizerConfig { max_norm: Some(1.0), ..OptimizerConfig::new(kind) };
    let optimizer = config.build().expect("an option that every rule takes");
    let mut case = case.clone();
    case.specs.iter_mut().for_each(|spec| spec.optimizer = optimizer);
    let parts: Vec<Vec<Part>> = case.specs.iter().map(|spec| columns(spec, &[1, 1])).collect();
    let cut = cut(&case, &parts);
    let mut group = Group::new(backend, &cut);
    let refused = group.row_gradients(backend, &cut.rules(), &mut RowGradients::new());
    assert!(matches!(refused, Err(Error::BadTable { .. })), "{refused:?}");
    let (pooled, sequences) = group.gradients.views();
    let gradients = Gradients { pooled, sequences: &sequences };
    let (map, batch, rules) = (&group.map, group.batch.view(), cut.rules());
    let refused =
        backend.scatter_update(&mut group.tables, map, batch, &gradients, &rules, case.step);
    assert!(matches!(refused, Err(Error::BadTable { .. })), "{refused:?}");
}
