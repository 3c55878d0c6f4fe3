//! Several batches under way at once, and batches that end without a backward pass.

use crate::equality::steps;
use crate::lattice::Case;
use crate::support::{
    Model, Outcome, Random, Upstream, bits, cpu, finish_step, over_ranks, seeds, synced,
};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, ShardedBags};
use emb_dlrm::{DeviceBatch, Embeddings as _};
use emb_kernels::{Jagged, Mat, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut};

/// Every batch is routed while the one before is still pooled, and pooled once more in between, as
/// an evaluation does; the result is that of one batch after the other.
fn check(model: &Model, plan: &Plan, steps: &[Vec<Jagged>], case: &str) {
    let expected = over_ranks(model, plan, steps, Upstream::Output);
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        let me = world.rank();
        let (mut outputs, mut sequences) = (Vec::new(), Vec::new());
        let mut next = Some(sharded.route(steps[0][me].as_ref())?);
        for (number, batches) in steps.iter().enumerate() {
            let step = number as u64 + 1;
            let Some(routed) = next.take() else { break };
            let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
            if let Some(batches) = steps.get(number + 1) {
                next = Some(sharded.route(batches[me].as_ref())?);
                let again = sharded.route(batches[me].as_ref())?;
                let again = again.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                assert_eq!(again.batch(), batches[me].batch());
            }
            let ends = (&mut sharded, &mut cpu);
            let upstream = Upstream::Output;
            let (output, rows) = finish_step(model, ends, pooled, (batches, me), upstream, step)?;
            outputs.push(output);
            sequences.push(rows);
        }
        let tables = synced(&mut sharded, &mut cpu, model)?;
        Ok::<_, Error>(Outcome { tables, outputs, sequences })
    });
    let ranks = ranks.unwrap_or_else(|failure| panic!("{case}: {failure}"));
    for (got, expected) in ranks.iter().zip(&expected) {
        assert!(got.outputs == expected.outputs, "{case}: outputs");
        assert!(got.sequences == expected.sequences, "{case}: sequences");
        assert!(got.tables.iter().map(bits).eq(expected.tables.iter().map(bits)), "{case}: tables");
    }
}

#[test]
fn batches_under_way_at_once_keep_what_is_theirs() {
    let model = Model::new(&[(37, 10, 2), (3, 3, 1)], RuleKind::RowWiseAdaGrad, Pooling::Mean);
    let mesh = Mesh::new(4, 2, Layout::Strided).expect("a mesh");
    for placement in [
        Placement::TableWise { owner: None },
        Placement::RowWise { cut: RowCut::Modulo },
        Placement::ColumnWise { parts: None },
        Placement::DataParallel,
    ] {
        let options = PlaceOptions { sync: Some(ReplicaSync::Gradients), ..placement.into() };
        let plan = PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
        let steps = steps(&model, &mut Random::new(5), 4, 8, true);
        check(&model, &plan, &steps, &format!("{placement:?}"));
    }
}

#[test]
fn batches_under_way_at_once_keep_what_is_theirs_in_any_plan() {
    for seed in seeds(15) {
        let Case { model, plan, steps, .. } = Case::new(seed);
        check(&model, &plan, &steps, &format!("seed {seed}\n{plan}"));
    }
}

/// A layer that prepared one batch looks up no other, and prepares no second one before.
#[test]
fn what_was_prepared_is_what_is_looked_up() {
    let model = Model::new(&[(37, 10, 2)], RuleKind::Sgd, Pooling::Sum);
    let mesh = Mesh::new(2, 2, Layout::Strided).expect("a mesh");
    let placement = Placement::RowWise { cut: RowCut::Modulo };
    let plan = PlanBuilder::new(mesh).all(placement).build(&model.tables()).expect("a plan");
    let steps = steps(&model, &mut Random::new(6), 2, 9, false);
    run(2, &Options::default(), |world| {
        let mut cpu = cpu();
        let me = world.rank();
        let mut layer = ShardedBags::new(model.shard(world, &mut cpu, &plan)?);
        let [first, second] = [&steps[0][me], &steps[1][me]];
        let mut batch = DeviceBatch::new(&mut cpu, 0).expect("memory");
        batch.upload(&mut cpu, &[], &[], second.as_ref()).expect("a batch");
        let width = layer.tables().map().width();
        let mut out = vec![0.0; batch.rows() * width];
        layer.prepare(&mut cpu, first.as_ref()).expect("good ids");
        let twice = layer.prepare(&mut cpu, second.as_ref()).expect_err("one is prepared");
        assert!(twice.to_string().contains("not looked up"), "{twice}");
        let out = Mat::new(&mut out[..], batch.rows(), width);
        let other = layer.forward(&mut cpu, &batch, out).expect_err("another batch");
        assert!(other.to_string().contains("was prepared"), "{other}");
        Ok::<_, Error>(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
}
