//! Sums, sequences and updated weights of one step against a reference in `f64`, within what the
//! format allows.

use super::{both, over_ranks};
use crate::random_plans::Shape;
use crate::support::{Model, Outcome, Random, Upstream, assert_replicas_equal, one_process, seeds};
use emb_comm::Wire;
use emb_dlrm::sharded::Wires;
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::Plan;

/// Encodings on the way of a value at most: in the node, and between nodes.
const HOPS: f64 = 2.0;

/// What `f32` sums of a few dozen terms err by.
const ROUNDINGS: f64 = 1e-5;

/// Errors below the smallest that formats have, of at most so many parts of a sum.
const TINY: f64 = 3e-7;

/// The largest error of a sum whose terms have these magnitudes together, however it is cut into parts:
/// the bounds of all formats grow no faster than magnitudes do.
fn allowed(wire: Wire, magnitude: f64) -> f64 {
    let row = [-magnitude as f32, magnitude as f32];
    let once = wire.max_error(&row);
    // What is encoded the second time has the error of the first.
    let twice = wire.max_error(&[-(magnitude + once) as f32, (magnitude + once) as f32]);
    let sent = if wire == Wire::F32 { 0.0 } else { (HOPS - 1.0) * once + twice + TINY };
    sent + ROUNDINGS * magnitude + 1e-9
}

/// A step in `f64`: what everything is, and how large its terms are together.
struct Reference {
    /// `[samples, width]` of all ranks.
    outputs: Vec<Term>,
    /// By sequence feature.
    sequences: Vec<Vec<Term>>,
    /// By table, weights after the step; terms of gradients alone, times the rate.
    tables: Vec<Vec<Term>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Term {
    value: f64,
    /// Of the whole row: the largest of any column.
    magnitude: f64,
}

impl Reference {
    fn new(model: &Model, batches: &[Jagged], upstream: Upstream) -> Self {
        let before = one_process(model, &[], upstream);
        let total: usize = batches.iter().map(Jagged::batch).sum();
        let width = model.width();
        let mut outputs = vec![Term::default(); total * width];
        let mut sequences = vec![Vec::new(); model.sequences().len()];
        let mut tables: Vec<Vec<Term>> = (before.tables.iter())
            .map(|table| table.weights.iter().map(|&w| Term { value: w.into(), magnitude: 0.0 }))
            .map(Iterator::collect)
            .collect();
        let given = upstream.gradient(&vec![0.0; total * width], width, (1, 0, total));
        let (mut column, mut sequence) = (0, 0);
        for (f, feature) in model.features.iter().enumerate() {
            let dim = model.dim(f);
            let weights = &before.tables[feature.table].weights;
            let rows = &mut tables[feature.table];
            if feature.pooling == Pooling::None {
                let ids: Vec<i64> = (batches.iter())
                    .flat_map(|batch| {
                        batch.as_ref().values[batch.as_ref().feature_range(f)].to_vec()
                    })
                    .collect();
                let key = (f, dim);
                let zeros = vec![0.0; ids.len() * dim];
                let given = upstream.of_sequence(&zeros, key, (1, 0, total));
                for (&id, given) in ids.iter().zip(given.chunks(dim)) {
                    let row = &weights[id as usize * dim..][..dim];
                    sequences[sequence].extend(terms(row, 1.0));
                    subtract(&mut rows[id as usize * dim..][..dim], given, model.rate);
                }
                sequence += 1;
                continue;
            }
            let mut first = 0;
            for batch in batches {
                for b in 0..batch.batch() {
                    let bag = batch.as_ref().bag_range(f, b);
                    let factor = |k: usize| batch.as_ref().weights.map_or(1.0, |w| f64::from(w[k]));
                    let divisor = match feature.pooling {
                        Pooling::Mean => bag.clone().map(factor).sum::<f64>(),
                        _ => 1.0,
                    };
                    let sample = first + b;
                    for k in bag {
                        let id = batch.as_ref().values[k] as usize;
                        let factor = factor(k) / divisor;
                        let out = &mut outputs[sample * width + column..][..dim];
                        for (out, term) in
                            out.iter_mut().zip(terms(&weights[id * dim..][..dim], factor))
                        {
                            out.value += term.value;
                            out.magnitude += term.magnitude;
                        }
                        let given = &given[sample * width + column..][..dim];
                        subtract(&mut rows[id * dim..][..dim], given, model.rate * factor);
                    }
                }
                first += batch.batch();
            }
            column += dim;
        }
        Self { outputs, sequences, tables }
    }

    /// Every number of every rank is within the bound; says how far any is from exact, at most, as a
    /// part of its bound.
    fn check(&self, ranks: &[Outcome], wires: Wires, rate: f64) -> Result<f64, String> {
        let mut most = 0.0_f64;
        let mut near = |what: &str, got: f32, term: &Term, allowed: f64| {
            let apart = (f64::from(got) - term.value).abs();
            most = most.max(apart / allowed);
            if apart <= allowed {
                return Ok(());
            }
            Err(format!("{what}: {got}, not {}: {apart:e} of {allowed:e}", term.value))
        };
        let outputs = ranks.iter().flat_map(|rank| &rank.outputs[0]);
        assert_eq!(outputs.clone().count(), self.outputs.len());
        for (got, term) in outputs.zip(&self.outputs) {
            near("output", *got, term, allowed(wires.forward, term.magnitude))?;
        }
        for (position, expected) in self.sequences.iter().enumerate() {
            let rows = ranks.iter().flat_map(|rank| &rank.sequences[0][position]);
            for (got, term) in rows.zip(expected) {
                near("sequence", *got, term, allowed(wires.forward, term.magnitude))?;
            }
        }
        for (t, expected) in self.tables.iter().enumerate() {
            for (got, term) in ranks[0].tables[t].weights.iter().zip(expected) {
                // Gradients travel before they are multiplied by the rate.
                let of_gradient = rate * allowed(wires.backward, term.magnitude / rate);
                let allowed = of_gradient + 1e-6 * term.value.abs() + 1e-9;
                near(&format!("table {t}"), *got, term, allowed)?;
            }
        }
        Ok(most)
    }
}

/// A row times a factor; the magnitude is that of its largest column.
fn terms(row: &[f32], factor: f64) -> impl Iterator<Item = Term> + '_ {
    let most = row.iter().fold(0.0_f64, |most, &x| most.max(f64::from(x).abs())) * factor.abs();
    row.iter().map(move |&x| Term { value: f64::from(x) * factor, magnitude: most })
}

fn subtract(row: &mut [Term], gradient: &[f32], factor: f64) {
    for (to, term) in row.iter_mut().zip(terms(gradient, factor)) {
        to.value -= term.value;
        to.magnitude += term.magnitude;
    }
}

/// Tables of any shape, with the rule whose steps are linear in gradients.
fn model(random: &mut Random) -> Model {
    let mut poolings = Vec::new();
    let shapes: Vec<_> = (0..=random.below(3))
        .map(|_| {
            let sequence = random.below(4) == 0;
            poolings.push(if sequence {
                &[Pooling::None][..]
            } else {
                &[Pooling::Sum, Pooling::Mean]
            });
            (1 + random.below(60) as u64, random.pick(&[1, 2, 7, 16, 33, 70]), 1 + random.below(2))
        })
        .collect();
    let mut model = Model::new(&shapes, RuleKind::Sgd, Pooling::Sum);
    for feature in &mut model.features {
        feature.pooling = random.pick(poolings[feature.table]);
    }
    model
}

#[test]
fn one_step_in_any_format_over_any_plan_is_within_the_bounds() {
    let mut used = 0;
    for seed in seeds(21) {
        let mut random = Random::new(seed);
        let model = model(&mut random);
        let shape = Shape::new(&mut random);
        let plan = Plan::new(&model.tables(), shape.plan(&mut random, &model)).expect("a plan");
        let sizes: Vec<usize> = (0..shape.world).map(|_| random.below(4)).collect();
        if sizes.iter().all(|&samples| samples == 0) {
            continue;
        }
        let batches = model.batches(&mut random, &sizes, seed % 2 == 0);
        let upstream = Upstream::Given;
        let reference = Reference::new(&model, &batches, upstream);
        let backward = random.pick(&Wire::ALL);
        let wires = Wires { backward, ..both(Wire::ALL[(seed % 7) as usize]) };
        let ranks = over_ranks(&model, &plan, &[batches], upstream, wires);
        let case = format!("seed {seed}, {wires:?}\n{plan}");
        let most = reference.check(&ranks, wires, model.rate);
        let most = most.unwrap_or_else(|fault| panic!("{fault}: {case}"));
        assert_replicas_equal(&ranks, &case);
        used += usize::from(most > 0.1);
    }
    // Most plans exchange something, and errors come near the bounds.
    eprintln!("{used} cases err by more than a tenth of what they may");
    assert!(used > 5 || std::env::var_os("EMB_SEED").is_some());
}
