//! A case whose tables are cut into parts, and the parts put together again.

use super::{Case, Values};
use crate::{Feature, Jagged, Pooling, TableSpec, Window};
use emb_optim::Extent;
use std::collections::BTreeMap;

/// Some rows and columns of a table.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) window: Window,
    /// The global row of each local one, by other means than the window's.
    pub(super) rows: Vec<u64>,
    pub(super) dim: usize,
}

/// All rows, cut into blocks of columns of about these shares; a block without columns is left out.
pub(super) fn columns(spec: &TableSpec, shares: &[usize]) -> Vec<Part> {
    let whole: usize = shares.iter().sum();
    let (mut parts, mut share, mut first_column) = (Vec::new(), 0, 0);
    for &next in shares {
        share += next;
        let end = spec.dim * share / whole;
        if end > first_column {
            let window = Window { first_column, ..Window::whole(spec.dim) };
            parts.push(Part { window, rows: (0..spec.rows).collect(), dim: end - first_column });
        }
        first_column = end;
    }
    parts
}

/// The case with table `t` in the parts `parts[t]`, all in one group: each part is a table of
/// the same name, which has a copy of each feature with the lookups and gradients of that part.
pub(super) fn cut(case: &Case, parts: &[Vec<Part>]) -> Case {
    let batch = case.batch.as_ref();
    let (mut specs, mut first_of) = (Vec::new(), Vec::new());
    for (spec, parts) in case.specs.iter().zip(parts) {
        first_of.push(specs.len());
        specs.extend(parts.iter().map(|part| TableSpec {
            rows: part.rows.len() as u64,
            dim: part.dim,
            window: part.window.clone(),
            ..spec.clone()
        }));
    }
    let (mut features, mut lengths, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut weights, mut sequence_gradients) = (batch.weights.map(|_| Vec::new()), Vec::new());
    for (f, feature) in case.features.iter().enumerate() {
        let upstream = case.sequence_gradients.iter().find(|(of, _)| *of == f);
        for (p, part) in parts[feature.table].iter().enumerate() {
            let local = local_rows(part);
            let mut rows = Vec::new();
            for b in 0..batch.batch {
                let before = values.len();
                for k in batch.bag_range(f, b) {
                    let Some(&row) = local.get(&(batch.values[k] as u64)) else { continue };
                    values.push(row as i64);
                    if let (Some(to), Some(from)) = (&mut weights, batch.weights) {
                        to.push(from[k]);
                    }
                    rows.push(k - batch.feature_range(f).start);
                }
                lengths.push((values.len() - before) as i64);
            }
            if let Some((_, upstream)) = upstream {
                let upstream = rows.iter().flat_map(|&k| slice(case, f, upstream, k, part));
                sequence_gradients.push((features.len(), upstream.copied().collect()));
            }
            features.push(Feature {
                name: format!("{} {p}", feature.name),
                table: first_of[feature.table] + p,
                pooling: feature.pooling,
            });
        }
    }
    let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    let batch = Jagged::from_lengths(&names, batch.batch, &lengths, values, weights);
    let batch = batch.expect("consistent lengths");
    let pooled_gradient = Vec::new();
    let mut cut = Case { specs, features, batch, pooled_gradient, sequence_gradients, ..*case };
    cut.pooled_gradient = pooled_gradient_of(case, parts, &cut);
    cut
}

/// Local row of every global one that a part has.
fn local_rows(part: &Part) -> BTreeMap<u64, u64> {
    part.rows.iter().zip(0..).map(|(&global, local)| (global, local)).collect()
}

/// The columns of a part in upstream row `k` of a sequence feature.
fn slice<'a>(case: &Case, f: usize, upstream: &'a [f32], k: usize, part: &Part) -> &'a [f32] {
    let dim = case.specs[case.features[f].table].dim;
    &upstream[k * dim + part.window.first_column..][..part.dim]
}

fn pooled_gradient_of(case: &Case, parts: &[Vec<Part>], cut: &Case) -> Vec<f32> {
    let (map, cut_map) = (case.map(), cut.map());
    let mut gradient = vec![f32::NAN; cut.batch.batch() * cut_map.width()];
    let features = case.features.iter().enumerate();
    let pairs = features.flat_map(|(f, feature)| parts[feature.table].iter().map(move |p| (f, p)));
    for (to, (f, part)) in pairs.enumerate() {
        if case.features[f].pooling == Pooling::None {
            continue;
        }
        for b in 0..cut.batch.batch() {
            let from = b * map.width() + map.column(f) + part.window.first_column;
            let to = b * cut_map.width() + cut_map.column(to);
            gradient[to..to + part.dim]
                .copy_from_slice(&case.pooled_gradient[from..from + part.dim]);
        }
    }
    gradient
}

/// Weights and state of the whole tables of `case`, from those of its parts.
///
/// Panics where blocks of columns differ in what they say of a whole row.
pub(super) fn join(case: &Case, parts: &[Vec<Part>], of_parts: &Values) -> Values {
    let mut of_parts = of_parts.weights.iter().zip(&of_parts.state);
    let mut whole = Values { weights: Vec::new(), state: Vec::new() };
    for (spec, parts) in case.specs.iter().zip(parts) {
        let rows = spec.rows as usize;
        let width = |extent| if extent == Extent::Row { 1 } else { spec.dim };
        let slots = spec.optimizer.slots().iter();
        let mut weights = vec![f32::NAN; rows * spec.dim];
        let mut state: Vec<_> =
            slots.clone().map(|slot| vec![f32::NAN; rows * width(slot.extent)]).collect();
        for (part, (of_weights, of_state)) in parts.iter().zip(&mut of_parts) {
            join_elements(spec, part, of_weights, &mut weights);
            for ((slot, from), to) in slots.clone().zip(of_state).zip(&mut state) {
                match slot.extent {
                    Extent::Element => join_elements(spec, part, from, to),
                    Extent::Row => {
                        let what = format!("case {}, {}, {}", case.seed, spec.name, slot.name);
                        join_rows(&what, part, from, to);
                    }
                }
            }
        }
        whole.weights.push(weights);
        whole.state.push(state);
    }
    whole
}

fn join_elements(spec: &TableSpec, part: &Part, from: &[f32], to: &mut [f32]) {
    for (&row, from) in part.rows.iter().zip(from.chunks_exact(part.dim)) {
        to[row as usize * spec.dim + part.window.first_column..][..part.dim].copy_from_slice(from);
    }
}

fn join_rows(what: &str, part: &Part, from: &[f32], to: &mut [f32]) {
    for (&row, &from) in part.rows.iter().zip(from) {
        let known = std::mem::replace(&mut to[row as usize], from);
        let same = known.is_nan() || known.to_bits() == from.to_bits();
        assert!(same, "{what}, row {row}: {known} and {from} in two blocks");
    }
}
