//! Syncs of touched rows against syncs of all.

use crate::equality::steps;
use crate::laws::Law;
use crate::replicas::{touched_rows, weights};
use crate::support::{
    Model, Random, Upstream, assert_replicas_equal, bits, cases, cpu, one_step, over_ranks,
};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Dtype, Jagged, Pooling};
use emb_optim::{ReplicaRule, ReplicaScaling, RuleKind};
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut};

fn plan(model: &Model, mesh: Mesh, sync: ReplicaSync, placement: Placement) -> Plan {
    let options = PlaceOptions { sync: Some(sync), ..placement.into() };
    PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan")
}

/// Every rule with every scaling for so many replicas that it can have.
fn models(replicas: u32) -> Vec<(String, Model)> {
    let mut models = Vec::new();
    for kind in RuleKind::ALL {
        // With rule `exact` gradients are summed instead.
        for rule in ReplicaRule::ALL.into_iter().filter(|rule| *rule != ReplicaRule::Exact) {
            let mut model = Model::new(&[(1000, 10, 2), (1000, 3, 1)], kind, Pooling::Mean);
            model.specs[1].dtype = Dtype::Bf16;
            let mut optimizers = model.specs.iter().map(|spec| {
                let mut config = *spec.optimizer.config();
                config.replica = ReplicaScaling::new(rule, replicas);
                config.build().ok()
            });
            let Some(Some(optimizer)) = optimizers.next() else { continue };
            drop(optimizers);
            model.specs.iter_mut().for_each(|spec| spec.optimizer = optimizer);
            models.push((format!("{kind}, {}, {replicas} replicas", rule.name()), model));
        }
    }
    models
}

#[test]
fn touched_rows_give_the_bits_of_whole_tables_for_every_optimizer_and_replica_rule() {
    for replicas in [2, 3, 4, 8] {
        let models = models(replicas);
        assert!(models.iter().any(|(name, _)| name.contains("history")));
        for (k, (name, model)) in models.iter().enumerate() {
            let group = if replicas < 4 { 2 } else { 1 };
            let layout = [Layout::Strided, Layout::Contiguous][k % 2];
            let mesh = Mesh::new(group * replicas, group, layout).expect("a mesh");
            let placement = if group == 1 {
                Placement::DataParallel
            } else {
                Placement::RowWise { cut: RowCut::Even }
            };
            let mut random = Random::new(k as u64);
            let steps = steps(model, &mut random, mesh.world() as usize, 7, k % 2 == 0);
            let run = |sync| {
                over_ranks(model, &plan(model, mesh, sync, placement), &steps, Upstream::Output)
            };
            let (touched, whole) = (run(touched_rows(2)), run(weights(2)));
            assert_replicas_equal(&touched, name);
            for (touched, whole) in touched.iter().zip(&whole) {
                for (touched, whole) in touched.tables.iter().zip(&whole.tables) {
                    assert!(bits(touched) == bits(whole), "{name}");
                }
            }
        }
    }
}

/// Bytes that all replicas receive in one step that ends with a sync, the first where ids are drawn
/// by `law`, `lookups` by all replicas together.
fn synced(replicas: usize, sync: ReplicaSync, law: &Law, lookups: usize, rows: u64) -> u64 {
    let mut model = Model::new(&[(rows, 64, 1)], RuleKind::RowWiseAdaGrad, Pooling::Sum);
    model.specs[0].dtype = Dtype::F32;
    let mesh = Mesh::new(replicas as u32, 1, Layout::Strided).expect("a mesh");
    let plan = plan(&model, mesh, sync, Placement::DataParallel);
    let ranks = run(replicas, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, &plan)?;
        let me = world.rank();
        let mut random = Random::new(me as u64);
        let mut batches = vec![Jagged::empty(&model.names()); replicas];
        let each = lookups / replicas;
        let ids = (0..each).map(|_| law.id(&mut random)).collect();
        batches[me] = Jagged::from_lengths(&model.names(), 1, &[each as i64], ids, None)?;
        one_step(&model, &mut sharded, &mut cpu, (&batches, me), Upstream::Given, 1)?;
        Ok::<_, Error>(sharded.meters().map(|meters| meters.total().bytes()).sum::<u64>())
    });
    ranks.expect("a step").iter().sum()
}

#[test]
fn touched_rows_of_a_zipf_law_are_a_hundredth_or_a_twelfth_of_the_bytes_of_all_rows() {
    let rows = 1_000_000;
    let law = Law::zipf(rows, 1.05).anywhere(&mut Random::new(1));
    // All rows take as many bytes for each, so that a part of them tells.
    let part = if cases(1) > 1 { 1 } else { 50 };
    for replicas in [2, 4] {
        let few = Law::zipf(rows / part, 1.05);
        let whole = part * synced(replicas, weights(1), &few, replicas, rows / part);
        for (lookups, most) in [(16_384, 0.01), (262_144, 0.08)] {
            let touched = synced(replicas, touched_rows(1), &law, lookups, rows);
            let ratio = touched as f64 / whole as f64;
            eprintln!(
                "{replicas} replicas, {lookups} look-ups: {touched} of {whole} bytes, {:.3} %",
                100.0 * ratio
            );
            assert!(ratio <= most, "{replicas} replicas, {lookups} look-ups: {ratio}");
        }
    }
}
