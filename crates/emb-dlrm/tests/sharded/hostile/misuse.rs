//! Calls that nobody should make: a named error on the rank that makes them, and on all others.

use super::{Case, ROWS, batch, every_exchange, local};
use crate::replicas::weights;
use crate::support::{Model, Random, cpu};
use crate::tiered::{Lives, POOLED, Tiers, UNIQUE};
use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::sharded::{Error, IdWire, ShardedEmbeddings};
use emb_kernels::{Cpu, Jagged, Pooling};
use emb_optim::{OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{Plan, PlanSpec, ReplicaSync, RowOrder};
use std::sync::Mutex;
use std::time::Duration;

type Sharded = ShardedEmbeddings<Cpu, Local>;

/// Never reached.
fn options() -> Options {
    Options::default().with_timeout(Duration::from_secs(25))
}

/// The calls of one rank in a step: what differs at the one that does it wrong.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    OtherFeatures,
    IdBeyond,
    ShortGradient,
    StepZero,
    NoSequences,
    OtherSequences,
}

fn step(
    model: &Model,
    sharded: &mut Sharded,
    cpu: &mut Cpu,
    batch: &Jagged,
    wrong: Option<Wrong>,
) -> Result<(), Error> {
    let other = Jagged::from_lengths(&["other"], 1, &[1], vec![0], None)?;
    let beyond = super::batch(model, 1, |_, _| vec![0, ROWS as i64]);
    let batch = match wrong {
        Some(Wrong::OtherFeatures) => &other,
        Some(Wrong::IdBeyond) => &beyond,
        _ => batch,
    };
    let pooled = sharded.route(batch.as_ref())?.exchange(sharded)?.pool(sharded, cpu)?;
    let mut gradient = vec![1.0; pooled.output().len()];
    let sequences = model.sequences();
    let mut sequences: Vec<Vec<f32>> =
        sequences.into_iter().map(|f| vec![1.0; pooled.sequence(f).len()]).collect();
    let mut number = 1;
    match wrong {
        Some(Wrong::ShortGradient) => gradient.push(1.0),
        Some(Wrong::StepZero) => number = 0,
        Some(Wrong::NoSequences) => sequences.push(Vec::new()),
        Some(Wrong::OtherSequences) => sequences.iter_mut().for_each(|rows| rows.push(1.0)),
        _ => {}
    }
    let sequences: Vec<&[f32]> = sequences.iter().map(Vec::as_slice).collect();
    pooled.backward_all(sharded, cpu, &gradient, &sequences, 1.0, number)
}

#[test]
fn a_wrong_call_of_one_rank_is_told_to_all_whatever_the_exchange() {
    let mut all = every_exchange();
    all.push(local(Pooling::Mean, ReplicaSync::Gradients));
    for (number, case) in all.iter().enumerate() {
        let Case { name, model, plan } = case;
        for (wrong, words) in [
            (Wrong::OtherFeatures, "the batch has [\"other\"]"),
            (Wrong::IdBeyond, "position 1 in the bag: id 12 is outside 0..=11"),
            (Wrong::ShortGradient, "gradients for"),
            (Wrong::StepZero, "steps count from 1"),
            (Wrong::NoSequences, "sequences for"),
            (Wrong::OtherSequences, "values of feature"),
        ] {
            let sequence = !model.sequences().is_empty();
            if matches!(wrong, Wrong::OtherSequences) && !sequence {
                continue;
            }
            let culprit = number % 4;
            let errors = Mutex::new(Vec::new());
            let failure = run(4, &options(), |world| {
                let (mut cpu, me) = (cpu(), world.rank());
                let mut sharded = model.shard(world, &mut cpu, plan)?;
                let batch = batch(model, 2, |_, b| vec![b as i64, 7, 11]);
                let wrong = (me == culprit).then_some(wrong);
                let done = step(model, &mut sharded, &mut cpu, &batch, wrong)
                    .and_then(|()| Ok(world.barrier()?));
                let text = done.as_ref().err().map(ToString::to_string);
                errors.lock().expect("no panic").push((me, text));
                done
            });
            let text = failure.expect_err(name).to_string();
            assert!(text.contains(words), "{name}, {wrong:?}: {text}");
            for (rank, error) in errors.into_inner().expect("no panic") {
                let error = error.unwrap_or_else(|| panic!("{name}, {wrong:?}: rank {rank}"));
                let named = rank == culprit || error.contains(&format!("rank {culprit} "));
                assert!(named && error.contains(words), "{name}, {wrong:?}: {rank}: {error}");
            }
        }
    }
}

/// Ranks of which one differs: the error names it, the operation and the step.
fn differs(name: &str, words: &[&str], work: impl Fn(&mut Local) -> Result<(), Error> + Sync) {
    let text = run(4, &options(), work).map(|_| ()).expect_err(name).to_string();
    for words in words {
        assert!(text.contains(words), "{name}: {words:?} is missing from: {text}");
    }
}

#[test]
fn a_rank_with_another_wire_of_ids_is_named() {
    for case in every_exchange() {
        let Case { name, model, plan } = &case;
        for odd in [IdWire::Plain, IdWire::Packed] {
            differs(name, &["rank 2", "in step 3"], |world| {
                let (mut cpu, me) = (cpu(), world.rank());
                let mut sharded = model.shard(world, &mut cpu, plan)?;
                let other = [IdWire::Plain, IdWire::Packed][usize::from(odd == IdWire::Plain)];
                sharded.set_id_wire(if me == 2 { odd } else { other });
                world.set_step(3);
                let batch = model.batches(&mut Random::new(me as u64), &[3], false).remove(0);
                step(model, &mut sharded, &mut cpu, &batch, None)?;
                Ok(world.barrier()?)
            });
        }
    }
}

#[test]
fn a_rank_a_step_behind_is_named() {
    for case in every_exchange() {
        let Case { name, model, plan } = &case;
        differs(name, &["rank 1", "in step 4", "in step 5"], |world| {
            let (mut cpu, me) = (cpu(), world.rank());
            let mut sharded = model.shard(world, &mut cpu, plan)?;
            world.set_step(if me == 1 { 4 } else { 5 });
            let batch = model.batches(&mut Random::new(me as u64), &[3], false).remove(0);
            step(model, &mut sharded, &mut cpu, &batch, None)
        });
    }
}

/// Plans that exchange lists of the same lengths: nothing else would notice.
#[test]
fn ranks_of_other_plans_or_tables_of_the_same_shape_are_named() {
    for case in every_exchange() {
        let Case { name, model, plan } = &case;
        let words = ["ranks 0 and 3 were given different plans"];
        let mut spec =
            PlanSpec { world: 4, node_ranks: 2, tables: plan.placed().as_slice().into() };
        for table in &mut spec.tables {
            let rows = (0..ROWS).map(|row| (row * 5 + 2) % ROWS).collect();
            table.order = Some(RowOrder::new(rows).expect("an order"));
        }
        let other = Plan::new(&model.tables(), spec).expect("a plan");
        differs(name, &words, |world| {
            let plan = if world.rank() == 3 { &other } else { plan };
            model.shard(world, &mut cpu(), plan).map(|_| ())
        });
        let mut spoiled = model.clone();
        spoiled.rate *= 2.0;
        differs(name, &words, |world| {
            let model = if world.rank() == 3 { &spoiled } else { model };
            model.shard(world, &mut cpu(), plan).map(|_| ())
        });
    }
}

/// The first tier whole, the second cut by columns.
#[test]
fn max_norm_is_refused_where_any_tier_cuts_columns() {
    for exchange in POOLED {
        let mut model = Model::new(&[(ROWS, 4, 1)], RuleKind::Sgd, Pooling::Sum);
        let config = OptimizerConfig { max_norm: Some(1.0), ..OptimizerConfig::new(RuleKind::Sgd) };
        model.specs[0].optimizer = config.build().expect("valid");
        let lives = Lives { blocks: 2, ..Lives::new(4, exchange) };
        let plan = Tiers::of_four(lives).with_hot(3).plan(&model);
        let made = run(4, &options(), |world| model.shard(world, &mut cpu(), &plan).map(|_| ()));
        let text = made.expect_err("refused").to_string();
        assert!(text.contains("table \"t0\": max_norm needs whole rows"), "{text}");
    }
}

/// Weights of rank 0 after some steps.
fn trained(model: &Model, plan: &Plan) -> Vec<f32> {
    let ranks = run(4, &options(), |world| {
        let (mut cpu, me) = (cpu(), world.rank());
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        for number in 1..=6 {
            // Two rows in every sample, one of them hot: all ranks look up the same.
            let batch = batch(model, 2, |_, b| vec![1, 6 + ((me + b) % 2) as i64]);
            let pooled = sharded.route(batch.as_ref())?.exchange(&mut sharded)?;
            let pooled = pooled.pool(&mut sharded, &mut cpu)?;
            let gradient = vec![0.125; pooled.output().len()];
            pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, number)?;
        }
        sharded.sync(&mut cpu)?;
        sharded.check_replicas(&mut cpu)?;
        Ok::<_, Error>(sharded.gather_table(&mut cpu, 0)?.weights)
    });
    ranks.unwrap_or_else(|failure| panic!("{failure}\n{plan}")).swap_remove(0)
}

/// Every tier of a table has its own number of replicas: a tier of `M` replicas trains as the whole
/// table does over `M`.
#[test]
fn tiers_of_other_replica_counts_train_as_tables_of_theirs() {
    for rule in [ReplicaRule::Moment, ReplicaRule::History] {
        let model = |replicas| {
            let mut model = Model::new(&[(ROWS, 4, 1)], RuleKind::AdaGrad, Pooling::Sum);
            let mut config = *model.specs[0].optimizer.config();
            config.replica = ReplicaScaling::new(rule, replicas);
            model.specs[0].optimizer = config.build().expect("valid");
            model
        };
        // Four replicas of the first three rows, two of the others.
        let sync = weights(1);
        let of = |group| Tiers::of_four(Lives { sync, ..Lives::new(group, UNIQUE) });
        let both = of(2).with_hot(3).plan(&model(4));
        let whole = [1, 2].map(|group| {
            let model = model(4 / group);
            trained(&model, &of(group).plan(&model))
        });
        let got = trained(&model(4), &both);
        assert_eq!(got[..3 * 4], whole[0][..3 * 4], "{rule}: four replicas");
        assert_eq!(got[3 * 4..], whole[1][3 * 4..], "{rule}: two replicas");
        assert_ne!(whole[0], whole[1], "{rule}: replicas matter");
    }
}
