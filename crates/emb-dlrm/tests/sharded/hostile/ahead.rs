//! Several batches under way at once, evaluations in between, syncs at any time.

use super::{Case, every_exchange, local, over_ranks};
use crate::equality::steps;
use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Outcome, Random, Upstream, bits, cpu, synced};
use crate::tiered::{Lives, Tiers};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, IdWire, Pooled, ShardedEmbeddings};
use emb_kernels::{Cpu, Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Exchange, ReplicaSync};

type Sharded = ShardedEmbeddings<Cpu, emb_comm::Local>;

/// The second half of a step.
fn backward(
    model: &Model,
    (sharded, cpu): (&mut Sharded, &mut Cpu),
    pooled: Pooled<Cpu>,
    (batches, me): (&[Jagged], usize),
    step: u64,
) -> Result<(Vec<f32>, Vec<Vec<f32>>), Error> {
    let total = batches.iter().map(Jagged::batch).sum();
    let first = batches[..me].iter().map(Jagged::batch).sum();
    let output = pooled.output().to_vec();
    let gradient = Upstream::Output.gradient(&output, model.width(), (step, first, total));
    let (mut rows, mut gradients) = (Vec::new(), Vec::new());
    for f in model.sequences() {
        let ids = |batch: &Jagged| batch.as_ref().feature_range(f).len();
        let first = batches[..me].iter().map(ids).sum();
        let got = pooled.sequence(f).to_vec();
        let place = (step, first, total);
        gradients.push(Upstream::Output.of_sequence(&got, (f, model.dim(f)), place));
        rows.push(got);
    }
    let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
    pooled.backward_all(sharded, cpu, &gradient, &gradients, 1.0, step)?;
    Ok((output, rows))
}

/// Ids of the next two batches are at their owners before this one is pooled; two evaluations run
/// between the two passes of a step, their memory given back in either order.
fn ahead(case: &Case, steps: &[Vec<Jagged>], ids: IdWire) -> Vec<Outcome> {
    let Case { name, model, plan } = case;
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_id_wire(ids);
        let me = world.rank();
        let mut under_way = std::collections::VecDeque::new();
        let (mut outputs, mut sequences) = (Vec::new(), Vec::new());
        for (number, batches) in steps.iter().enumerate() {
            while under_way.len() < 3 && number + under_way.len() < steps.len() {
                let batch = steps[number + under_way.len()][me].as_ref();
                under_way.push_back(sharded.route(batch)?.exchange(&mut sharded)?);
            }
            let exchanged = under_way.pop_front().expect("one at least");
            let pooled = exchanged.pool(&mut sharded, &mut cpu)?;
            let mut evaluate = || {
                let routed = sharded.route(batches[me].as_ref())?;
                let dropped = sharded.route(batches[me].as_ref())?;
                drop(dropped);
                routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)
            };
            let (one, two) = (evaluate()?, evaluate()?);
            assert_eq!(one.output(), pooled.output(), "{name}: rank {me}, batch {number}");
            if number % 2 == 0 {
                drop(one);
            }
            let embeddings = (&mut sharded, &mut cpu);
            let own = (&batches[..], me);
            let (output, rows) = backward(model, embeddings, pooled, own, number as u64 + 1)?;
            assert_eq!(output, two.output(), "{name}: rank {me}, batch {number}");
            outputs.push(output);
            sequences.push(rows);
        }
        let tables = synced(&mut sharded, &mut cpu, model)?;
        Ok::<_, Error>(Outcome { tables, outputs, sequences })
    });
    ranks.unwrap_or_else(|failure| panic!("{name}, {ids:?}: {failure}"))
}

fn assert_same_bits(a: &[Outcome], b: &[Outcome], name: &str) {
    for (rank, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a.outputs == b.outputs, "{name}: outputs of rank {rank}");
        assert!(a.sequences == b.sequences, "{name}: sequences of rank {rank}");
        assert!(a.tables.iter().map(bits).eq(b.tables.iter().map(bits)), "{name}: rank {rank}");
    }
}

#[test]
fn batches_exchanged_ahead_and_evaluations_change_no_bit() {
    let mut all = every_exchange();
    all.push(local(Pooling::Mean, ReplicaSync::Gradients));
    all.push(local(Pooling::None, touched_rows(2)));
    for case in all {
        let steps = steps(&case.model, &mut Random::new(5), 4, 7, true);
        for ids in [IdWire::Plain, IdWire::Packed] {
            let expected = over_ranks(&case, &steps, Upstream::Output, ids);
            assert_same_bits(&ahead(&case, &steps, ids), &expected, &case.name);
        }
    }
}

/// A hot tier synced as said, under exchanges of other tiers.
fn hot(exchange: Exchange, sync: ReplicaSync) -> Case {
    let model = Model::new(&[(12, 5, 2), (12, 2, 1)], RuleKind::AdaGrad, Pooling::Sum);
    let lives = Lives { sync, ..Lives::new(2, exchange) };
    let mut tiers = Tiers::of_four(lives).with_hot(4);
    tiers.node_ranks = 1;
    let plan = tiers.plan(&model);
    Case { name: format!("{exchange}, {sync}"), model, plan }
}

/// What the ranks end with where they sync by hand after some steps, more than once after others,
/// and between the passes of a step.
fn synced_by_hand(case: &Case, steps: &[Vec<Jagged>], after: &[u64]) -> Vec<Outcome> {
    let Case { name, model, plan } = case;
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        let me = world.rank();
        let (mut outputs, mut sequences) = (Vec::new(), Vec::new());
        for (step, batches) in (1..).zip(steps) {
            let routed = sharded.route(batches[me].as_ref())?.exchange(&mut sharded)?;
            if after.contains(&(step - 1)) {
                // The ids of the next step are at their owners already.
                sharded.sync(&mut cpu)?;
                assert_eq!(sharded.unsynced_steps(), 0);
                let calls = sharded.collectives();
                sharded.sync(&mut cpu)?;
                assert_eq!(sharded.collectives(), calls, "{name}: nothing is left to sync");
                sharded.check_replicas(&mut cpu)?;
            }
            let pooled = routed.pool(&mut sharded, &mut cpu)?;
            let embeddings = (&mut sharded, &mut cpu);
            let (output, rows) = backward(model, embeddings, pooled, (&batches[..], me), step)?;
            outputs.push(output);
            sequences.push(rows);
        }
        sharded.sync(&mut cpu)?;
        sharded.check_replicas(&mut cpu)?;
        let tables = (0..model.specs.len()).map(|t| sharded.gather_table(&mut cpu, t));
        let tables = tables.collect::<Result<_, _>>()?;
        Ok::<_, Error>(Outcome { tables, outputs, sequences })
    });
    ranks.unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

#[test]
fn syncs_by_hand_are_the_syncs_of_a_period() {
    for exchange in crate::tiered::POOLED {
        let due = |sync| hot(exchange, sync);
        let steps = steps(&due(touched_rows(1)).model, &mut Random::new(6), 4, 9, false);
        for (every, after) in [(1, vec![1, 2, 3, 4, 5, 6, 7, 8]), (2, vec![2, 4, 6, 8])] {
            let expected =
                over_ranks(&due(weights(every)), &steps, Upstream::Output, IdWire::Plain);
            for sync in [weights(100), touched_rows(100)] {
                let case = due(sync);
                let got = synced_by_hand(&case, &steps, &after);
                assert_same_bits(&got, &expected, &case.name);
            }
        }
        // Syncs in between disturb none that are due, whatever the way.
        let by_hand = [touched_rows(3), weights(3)]
            .map(|sync| synced_by_hand(&due(sync), &steps, &[1, 4, 5, 6]));
        assert_same_bits(&by_hand[0], &by_hand[1], &exchange.to_string());
    }
}
