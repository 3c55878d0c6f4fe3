//! The same training on any plan: 50 steps, every tensor and every metric.

use crate::support::{Folder, assert_near, criteo, feature, options, outcome, table, trained};
use emb_dlrm::config::{
    FeatureOptions, IdWireKind, ModelKind, OptimizerKind, Options, PlacementKind, PoolingKind,
    SyncKind,
};

const LIMIT: f64 = 1e-5;
const OPTIMIZERS: [OptimizerKind; 4] = [
    OptimizerKind::Sgd,
    OptimizerKind::RowWiseAdaGrad,
    OptimizerKind::AdaGrad,
    OptimizerKind::Adam,
];
const MODELS: [ModelKind; 2] = [ModelKind::Dlrm, ModelKind::DlrmDcn];

/// 50 steps over some epochs of a file whose last batch is short, and an evaluation.
fn fifty(folder: &Folder, model: ModelKind, rule: OptimizerKind) -> Options {
    let data = folder.file("train.txt", &criteo(500, 1));
    let eval = folder.file("eval.txt", &criteo(203, 2));
    let accumulates = matches!(rule, OptimizerKind::RowWiseAdaGrad | OptimizerKind::AdaGrad);
    Options {
        eval: vec![eval],
        steps: Some(50),
        optimizer: Some(rule),
        lr: Some(if rule == OptimizerKind::Adam { 0.01 } else { 0.05 }),
        dense_lr: Some(0.02),
        initial_accumulator: Some(0.1).filter(|_| accumulates || rule == OptimizerKind::Sgd),
        dense_optimizer: None,
        ..options(&data, model)
    }
}

fn over(options: &Options, world: u32, plan: &str) -> Options {
    Options { world: Some(world), plan: Some(plan.into()), ..options.clone() }
}

#[test]
fn any_placement_equals_one_process() {
    let folder = Folder::new();
    for model in MODELS {
        for rule in OPTIMIZERS {
            let alone = fifty(&folder, model, rule);
            let one = outcome(alone.clone());
            let usual = rule == OptimizerKind::RowWiseAdaGrad;
            for world in if usual { vec![2, 3, 4, 8] } else { vec![3, 8] } {
                for plan in ["table-wise", "row-wise", "column-wise", "data-parallel", "auto"] {
                    let got = outcome(over(&alone, world, plan));
                    let case = format!("{model}, {rule}, {plan} over {world}");
                    assert_near(&got, &one, LIMIT, &case);
                }
            }
        }
    }
}

#[test]
fn planners_and_packed_ids_equal_one_process() {
    let folder = Folder::new();
    for rule in OPTIMIZERS {
        let alone = fifty(&folder, ModelKind::Dlrm, rule);
        let one = outcome(alone.clone());
        for planner in ["embark", "lattice", "table-row-wise"] {
            let [plain, packed] = [IdWireKind::Plain, IdWireKind::Packed].map(|ids| {
                outcome(Options {
                    world: Some(4),
                    nodes: Some(2),
                    planner: Some(planner.into()),
                    sync: Some(SyncKind::Gradients),
                    id_wire: Some(ids),
                    ..alone.clone()
                })
            });
            assert_near(&plain, &one, LIMIT, &format!("{rule}, {planner}"));
            assert_near(&packed, &plain, 0.0, &format!("{rule}, {planner}, packed ids"));
        }
    }
}

#[test]
fn summed_gradients_of_replicas_equal_one_process() {
    let folder = Folder::new();
    for model in MODELS {
        for rule in OPTIMIZERS {
            let alone = fifty(&folder, model, rule);
            let one = outcome(alone.clone());
            let usual = rule == OptimizerKind::RowWiseAdaGrad;
            let all = [(4, 2), (8, 4), (2, 2), (6, 2), (4, 4)];
            for &(world, replicas) in if usual { &all[..] } else { &all[..2] } {
                for plan in ["table-wise", "row-wise", "column-wise"] {
                    let options = Options {
                        replicas: Some(replicas),
                        sync: Some(SyncKind::Gradients),
                        ..over(&alone, world, plan)
                    };
                    let case = format!("{model}, {rule}, {plan} over {world} / {replicas}");
                    assert_near(&outcome(options), &one, LIMIT, &case);
                }
            }
        }
    }
}

#[test]
fn averaged_weights_of_plain_sgd_equal_one_process() {
    let folder = Folder::new();
    let alone = fifty(&folder, ModelKind::Dlrm, OptimizerKind::Sgd);
    let one = outcome(alone.clone());
    for (world, replicas) in [(2, 2), (4, 2), (8, 4), (3, 3)] {
        for plan in ["table-wise", "row-wise", "data-parallel"] {
            let replicas = (plan != "data-parallel").then_some(replicas);
            let sync = Some(SyncKind::Weights);
            let options = Options { replicas, sync, ..over(&alone, world, plan) };
            let case = format!("{plan} over {world} / {replicas:?}");
            assert_near(&outcome(options), &one, LIMIT, &case);
        }
    }
}

#[test]
fn tables_placed_one_by_one_equal_one_process() {
    use PlacementKind::{ColumnWise, DataParallel, RowWise, TableWise};
    let folder = Folder::new();
    for model in MODELS {
        for rule in [OptimizerKind::RowWiseAdaGrad, OptimizerKind::Adam] {
            let alone = fifty(&folder, model, rule);
            let one = outcome(alone.clone());
            for placements in [
                [RowWise, TableWise, DataParallel],
                [DataParallel, ColumnWise, RowWise],
                [TableWise, DataParallel, TableWise],
            ] {
                for (world, replicas) in [(2, None), (4, Some(2)), (8, Some(4))] {
                    let mut options = Options { world: Some(world), ..alone.clone() };
                    for (table, placement) in options.table.iter_mut().zip(placements) {
                        table.placement = Some(placement);
                    }
                    // Some tables in groups, others over the world.
                    for table in &mut options.table[..2] {
                        if table.placement != Some(DataParallel) {
                            table.replicas = replicas;
                        }
                    }
                    if replicas.is_some() {
                        options.sync = Some(SyncKind::Gradients);
                    }
                    let case = format!("{model}, {rule}, {placements:?} over {world}");
                    assert_near(&outcome(options), &one, LIMIT, &case);
                }
            }
        }
    }
}

#[test]
fn uneven_batches_equal_one_process() {
    let folder = Folder::new();
    for (rows, batch) in [(60, 3), (61, 7), (50, 1), (9, 16), (5, 5), (17, 4)] {
        let data = folder.file(&format!("{rows}.txt"), &criteo(rows, 3));
        let eval = folder.file(&format!("{rows}-eval.txt"), &criteo(rows.min(6), 4));
        let alone = Options {
            eval: vec![eval],
            steps: Some(50),
            batch_size: Some(batch),
            initial_accumulator: Some(0.1),
            lr: Some(0.05),
            ..options(&data, ModelKind::Dlrm)
        };
        let one = outcome(alone.clone());
        for world in [2, 3, 4, 8] {
            for plan in ["table-wise", "row-wise", "column-wise", "data-parallel"] {
                let case = format!("{rows} rows, batch {batch}, {plan} over {world}");
                assert_near(&outcome(over(&alone, world, plan)), &one, LIMIT, &case);
            }
        }
    }
}

#[test]
fn empty_long_weighted_and_mean_bags_equal_one_process() {
    for weighted in [false, true] {
        let features = [("a", "a", PoolingKind::Sum), ("b", "b", PoolingKind::Mean)];
        let features = features.into_iter().chain([("c", "a", PoolingKind::Mean)]);
        let features: Vec<FeatureOptions> = features
            .map(|(name, table, pooling)| FeatureOptions {
                bag: Some(3.5),
                weighted: (weighted && name != "b").then_some(true),
                ..feature(name, table, pooling)
            })
            .collect();
        let alone = Options {
            table: vec![table("a", 60, 4), table("b", 90, 4)],
            feature: features,
            steps: Some(50),
            batch_size: Some(5),
            initial_accumulator: Some(0.1),
            ..options("synthetic".as_ref(), ModelKind::Dlrm)
        };
        let one = trained(alone.clone());
        for (world, plan) in [
            (2, "table-wise"),
            (3, "row-wise"),
            (4, "column-wise"),
            (8, "row-wise"),
            (4, "data-parallel"),
        ] {
            let case = format!("weighted {weighted}, {plan} over {world}");
            assert_near(&trained(over(&alone, world, plan)), &one, LIMIT, &case);
        }
        // And the whole way, with the evaluation of synthetic data.
        let (one, three) = (outcome(alone.clone()), outcome(over(&alone, 3, "row-wise")));
        assert_near(&three, &one, LIMIT, "row-wise over 3");
        assert_eq!(three.report.teacher_auc, one.report.teacher_auc);
    }
}

#[test]
fn a_repeated_run_has_the_same_bits() {
    let folder = Folder::new();
    for (plan, replicas) in [("auto", None), ("column-wise", None), ("row-wise", Some(2))] {
        let alone = fifty(&folder, ModelKind::DlrmDcn, OptimizerKind::RowWiseAdaGrad);
        let options = Options { replicas, ..over(&alone, 4, plan) };
        let (first, again) = (outcome(options.clone()), outcome(options));
        assert!(first.bytes == again.bytes, "{plan}");
        assert_eq!(first.report.eval, again.report.eval);
        assert_eq!(first.report.loss.map(f64::to_bits), again.report.loss.map(f64::to_bits));
    }
}
