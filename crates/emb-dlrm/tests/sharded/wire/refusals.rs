//! What can't travel, and ranks that disagree: refused by name, on every rank.

use super::both;
use crate::support::{Model, Random, cpu};
use crate::tiered::{Lives, POOLED, Tiers};
use emb_comm::{Collective, Local, Options, Wire, run};
use emb_dlrm::sharded::{Error, Wires};
use emb_kernels::Pooling;
use emb_optim::RuleKind;
use emb_shard::Plan;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[test]
fn a_gradient_that_is_no_number_is_refused_by_table_on_every_rank() {
    let model = Model::new(&[(12, 5, 2), (12, 2, 1)], RuleKind::Sgd, Pooling::Sum);
    for exchange in POOLED {
        let plan = Tiers::of_four(Lives::new(4, exchange)).plan(&model);
        for wire in [Wire::Int8Rowwise, Wire::Fp8E4m3, Wire::Int4] {
            let (errors, begun) = (Mutex::new(Vec::new()), Instant::now());
            let options = Options::default().with_timeout(Duration::from_secs(20));
            let failure = run(4, &options, |world| {
                let me = world.rank();
                // Rank 2 may refuse while others are still on their way to the gradients.
                let done = step_of(&model, &plan, wire, world);
                if let Err(error) = &done {
                    errors.lock().expect("no panic").push((me, error.to_string()));
                }
                done
            });
            let case = format!("{exchange}, {wire}");
            assert!(failure.is_err(), "{case}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{case}: nobody was told");
            let errors = errors.into_inner().expect("no panic");
            assert_eq!(errors.len(), 4, "{case}: {errors:?}");
            for (rank, error) in errors {
                let words = ["table \"t1\"", "NaN cannot travel as", wire.name()];
                let missing = words.iter().find(|word| !error.contains(**word));
                assert_eq!(missing, None, "{case}, rank {rank}: {error}");
                assert!(rank == 2 || error.contains("rank 2"), "{case}, rank {rank}: {error}");
            }
        }
    }
}

/// A step in which rank 2 has gradients that are no numbers for the last table.
fn step_of(model: &Model, plan: &Plan, wire: Wire, world: &mut Local) -> Result<(), Error> {
    let (mut cpu, me) = (cpu(), world.rank());
    let mut sharded = model.shard(world, &mut cpu, plan)?;
    sharded.set_wires(both(wire))?;
    let batch = model.batches(&mut Random::new(7 + me as u64), &[3], false).remove(0);
    let routed = sharded.route(batch.as_ref())?;
    let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
    let mut gradient = vec![0.25; pooled.output().len()];
    if me == 2 {
        // The last table's columns.
        gradient.iter_mut().skip(10).step_by(12).for_each(|value| *value = f32::NAN);
    }
    pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, 1)
}

#[test]
fn ranks_with_other_formats_are_named_before_the_first_step() {
    let model = Model::new(&[(12, 5, 1)], RuleKind::Sgd, Pooling::Sum);
    let plan = Tiers::of_four(Lives::new(4, POOLED[0])).plan(&model);
    let failure = run(4, &Options::default(), |world| {
        let (mut cpu, me) = (cpu(), world.rank());
        let mut sharded = model.shard(world, &mut cpu, &plan)?;
        // As many bytes: nothing else would notice.
        sharded.set_wires(both(if me == 3 { Wire::Bf16 } else { Wire::F16 }))
    });
    let text = failure.expect_err("formats differ").to_string();
    assert!(text.contains("ranks 0 and 3 were given different wire formats"), "{text}");
}

#[test]
fn formats_that_sums_of_all_ranks_cannot_have_are_refused_by_name() {
    let model = Model::new(&[(12, 5, 1)], RuleKind::Sgd, Pooling::Sum);
    let plan = Tiers::of_four(Lives::new(2, POOLED[0])).plan(&model);
    for (what, wires) in [
        ("sync=int8", Wires { sync: Wire::Int8Rowwise, ..Wires::default() }),
        ("dense=int4", Wires { dense: Wire::Int4, ..Wires::default() }),
    ] {
        let failure = run(4, &Options::default(), |world| {
            let mut sharded = model.shard(world, &mut cpu(), &plan)?;
            sharded.set_wires(wires)?;
            Ok::<_, Error>(())
        });
        let text = failure.expect_err("no such format").to_string();
        assert!(text.contains(what) && text.contains("one of f32, f16, bf16"), "{text}");
    }
}
