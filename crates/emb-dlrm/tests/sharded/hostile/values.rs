//! Weights and gradients that are no ordinary numbers, and dtypes side by side.

use super::{Case, ROWS, batch, exact, local, over_ranks};
use crate::naive::OneProcess;
use crate::support::{Model, Outcome, Random, Upstream, bits, cpu, synced};
use crate::tiered::{Lives, POOLED, Tiers};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{IdWire, WholeTable};
use emb_kernels::{Dtype, Jagged, Pooling, Rounding};
use emb_optim::RuleKind;
use emb_shard::Exchange;

/// Every exchange of pooled features, and none.
fn pooled() -> impl Iterator<Item = Case> {
    exact().into_iter().filter(|case| case.model.sequences().is_empty())
}

/// Both are no number, or nearly the same.
fn alike(a: f32, b: f32) -> bool {
    a.is_nan() && b.is_nan() || a == b || (a - b).abs() <= 1e-5 * (1.0 + b.abs())
}

/// The batch with these per-sample weights, one after the other.
fn weighted(model: &Model, batch: &Jagged, weights: &[f32]) -> Jagged {
    let (samples, view) = (batch.batch(), batch.as_ref());
    let lengths: Vec<i64> =
        view.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as i64).collect();
    let weights = weights.iter().copied().cycle().take(view.values.len()).collect();
    let ids = view.values.to_vec();
    Jagged::from_lengths(&model.names(), samples, &lengths, ids, Some(weights)).expect("a batch")
}

#[test]
fn weights_of_any_kind_pool_and_train_as_in_one_process() {
    let all: [&[f32]; 5] = [
        &[0.0],
        &[-1.5, 2.0, 0.0, -0.25],
        // Bags of two weigh nothing.
        &[1.0, -1.0],
        &[f32::NAN, 1.0, 2.0, 0.5, 0.25, 3.0, 1.0],
        &[1.0, f32::INFINITY, 2.0, f32::NEG_INFINITY, 0.5, 0.0],
    ];
    for case in pooled() {
        for weights in all {
            let mut model = case.model.clone();
            for spec in &mut model.specs {
                spec.optimizer = crate::support::optimizer(RuleKind::Sgd);
            }
            let case = Case { model, plan: case.plan.clone(), name: case.name.clone() };
            // Rows of which sums are infinite differ in what they are made of: one step each.
            let finite = weights.iter().all(|weight| weight.is_finite());
            let mut random = Random::new(9);
            let steps: Vec<Vec<Jagged>> = (0..if finite { 3 } else { 1 })
                .map(|_| {
                    let bags = |samples| {
                        batch(&case.model, samples, |f, b| {
                            let ids = (0..2 + 2 * ((f + b) % 2)).map(|_| random.below(12) as i64);
                            ids.collect()
                        })
                    };
                    let batches: Vec<Jagged> = [2, 0, 1, 3].map(bags).into();
                    batches.iter().map(|batch| weighted(&case.model, batch, weights)).collect()
                })
                .collect();
            let one = OneProcess::new(&case.model, &steps, Upstream::Given).outcome;
            for ids in [IdWire::Plain, IdWire::Packed] {
                let ranks = over_ranks(&case, &steps, Upstream::Given, ids);
                let name = format!("{}, {ids:?}, weights {weights:?}", case.name);
                assert_alike(&ranks, &one, &name);
            }
        }
    }
}

fn assert_alike(ranks: &[Outcome], one: &Outcome, name: &str) {
    for (step, expected) in one.outputs.iter().enumerate() {
        let got: Vec<f32> = ranks.iter().flat_map(|rank| &rank.outputs[step]).copied().collect();
        let other = (0..got.len()).find(|&k| !alike(got[k], expected[k]));
        let place = other.map(|k| (step, k, got[k], expected[k]));
        assert_eq!(place, None, "{name}: step, output, got, expected");
    }
    for (rank, outcome) in ranks.iter().enumerate() {
        for (t, (got, expected)) in outcome.tables.iter().zip(&one.tables).enumerate() {
            let (got, expected) = (&got.weights, &expected.weights);
            let other = (0..got.len()).find(|&k| !alike(got[k], expected[k]));
            let place = other.map(|k| (t, k, got[k], expected[k]));
            assert_eq!(place, None, "{name}: rank {rank}: table, weight, got, expected");
        }
    }
}

/// Tables after one step in which the gradients of one sample of rank 1 are `value`.
fn spoiled(case: &Case, ids: IdWire, batches: &[Jagged], value: f32) -> Vec<Vec<WholeTable>> {
    let Case { name, model, plan } = case;
    let ranks = run(4, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_id_wire(ids);
        let me = world.rank();
        let routed = sharded.route(batches[me].as_ref())?;
        let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
        let mut gradient = vec![0.25; pooled.output().len()];
        if me == 1 {
            gradient[..model.width()].fill(value);
        }
        pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, 1)?;
        synced(&mut sharded, &mut cpu, model)
    });
    ranks.unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

#[test]
fn a_gradient_that_is_no_number_spoils_the_rows_of_its_sample_alone() {
    let mut all: Vec<Case> = pooled().collect();
    for sync in [crate::replicas::weights(1), crate::replicas::touched_rows(1)] {
        all.push(local(Pooling::Mean, sync));
    }
    for (number, case) in all.iter().enumerate() {
        // Sample 0 of rank 1 has rows 2, 5 and 11 in all features, others have none of these.
        let bag = |rank: usize| {
            move |_, b| {
                if (rank, b) == (1, 0) { vec![5, 2, 11, 5] } else { vec![0, 3, 7 + b as i64] }
            }
        };
        let batches = [1, 2, 0, 2].into_iter().enumerate();
        let batches: Vec<Jagged> =
            batches.map(|(rank, samples)| batch(&case.model, samples, bag(rank))).collect();
        let ids = [IdWire::Plain, IdWire::Packed][number % 2];
        let fine = spoiled(case, ids, &batches, 0.25);
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let ranks = spoiled(case, ids, &batches, value);
            for (rank, (tables, fine)) in ranks.iter().zip(&fine).enumerate() {
                for (t, (table, fine)) in tables.iter().zip(fine).enumerate() {
                    let dim = case.model.specs[t].dim;
                    let rows = table.weights.chunks(dim).zip(fine.weights.chunks(dim));
                    for (row, (got, fine)) in rows.enumerate() {
                        let finite = got.iter().all(|weight| weight.is_finite());
                        let place = format!("{}, {value}: rank {rank}, {t}, row {row}", case.name);
                        if [2, 5, 11].contains(&row) {
                            assert!(!finite, "{place}: {got:?}");
                        } else {
                            assert_eq!(got, fine, "{place}");
                        }
                    }
                }
            }
        }
    }
}

/// `f32`, `f16` and `bf16` with stochastic rounding, in one plan: sums of multiples of 1/64 are the
/// same in any order, so that all plans round the same numbers, with the same random bits.
#[test]
fn stochastic_rounding_does_not_depend_on_the_plan() {
    let mut model =
        Model::new(&[(ROWS, 5, 2), (ROWS, 16, 1), (ROWS, 3, 1)], RuleKind::Sgd, Pooling::Sum);
    for (spec, dtype) in model.specs.iter_mut().zip([Dtype::Bf16, Dtype::F16, Dtype::F32]) {
        (spec.dtype, spec.rounding) = (dtype, Rounding::Stochastic);
    }
    let mut random = Random::new(10);
    let steps: Vec<_> = (0..6).map(|_| model.batches(&mut random, &[2, 0, 3, 1], false)).collect();
    let one = OneProcess::new(&model, &steps, Upstream::Exact).outcome;
    for exchange in POOLED.into_iter().chain([Exchange::Local]) {
        for hot in [0, 3] {
            let group = if exchange == Exchange::Local { 1 } else { 4 };
            let lives = Lives { blocks: 2, ..Lives::new(group, exchange) };
            let mut tiers = Tiers::of_four(lives).with_hot(hot);
            tiers.order = Some((0..ROWS).map(|row| (row * 5 + 1) % ROWS).collect());
            let name = format!("{exchange}, {hot} hot");
            let case = Case { name, plan: tiers.plan(&model), model: model.clone() };
            for outcome in over_ranks(&case, &steps, Upstream::Exact, IdWire::Packed) {
                for (t, (got, expected)) in outcome.tables.iter().zip(&one.tables).enumerate() {
                    assert!(bits(got) == bits(expected), "{}: table {t}", case.name);
                }
            }
        }
    }
}
