//! The same result as one process, whatever the plan.

use crate::support::{Model, Random, Upstream, assert_near, bits, cases, one_process, over_ranks};
use emb_kernels::{Dtype, Jagged, Pooling};
use emb_optim::{Decay, RuleKind};
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut};

/// Uneven samples a rank, some ranks without any, never the whole world.
pub(crate) fn sizes(random: &mut Random, world: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..world).map(|_| random.below(4)).collect();
    let some = random.below(world);
    sizes[some] += 1;
    sizes
}

pub(crate) fn steps(
    model: &Model,
    random: &mut Random,
    world: usize,
    count: usize,
    weighted: bool,
) -> Vec<Vec<Jagged>> {
    let one = |_| {
        let sizes = sizes(random, world);
        model.batches(random, &sizes, weighted)
    };
    (0..count).map(one).collect()
}

fn placements() -> [Placement; 6] {
    [
        Placement::TableWise { owner: None },
        Placement::RowWise { cut: RowCut::Ceil },
        Placement::RowWise { cut: RowCut::Even },
        Placement::RowWise { cut: RowCut::Modulo },
        Placement::ColumnWise { parts: None },
        Placement::DataParallel,
    ]
}

fn random_model(random: &mut Random) -> Model {
    let dims = [1, 3, 10, 64];
    let tables = 1 + random.below(5);
    let shapes: Vec<_> = (0..tables)
        .map(|_| {
            // Not so few weights that all pass through zero: their norm is what errors are
            // measured by.
            let dim = random.pick(&dims);
            let fewest = if dim < 10 { 3 } else { 0 };
            let rows = [1, 2, 5, 17, 60, 200][fewest..].to_vec();
            (random.pick(&rows), dim, 1 + random.below(2))
        })
        .collect();
    let mut model = Model::new(&shapes, RuleKind::Sgd, Pooling::Sum);
    for spec in &mut model.specs {
        let kind = random.pick(&RuleKind::ALL);
        let mut config = *crate::support::optimizer(kind).config();
        if random.below(3) == 0 {
            config.max_gradient = Some(0.02);
        }
        if random.below(3) == 0 {
            config.weight_decay = Some(0.01);
            config.decay = Some(Decay::L2);
        }
        spec.optimizer = config.build().expect("valid");
    }
    for feature in &mut model.features {
        feature.pooling = random.pick(&[Pooling::Sum, Pooling::Mean]);
    }
    model
}

#[test]
fn every_plan_of_one_group_equals_one_process_over_fifty_steps() {
    for seed in 0..cases(25) {
        let mut random = Random::new(seed);
        let model = random_model(&mut random);
        let world = 1 + random.below(8);
        let mesh = Mesh::new(world as u32, world as u32, Layout::Strided).expect("a mesh");
        let mut builder = PlanBuilder::new(mesh);
        for spec in &model.specs {
            builder = builder.table(spec.name.clone(), random.pick(&placements()));
        }
        let plan = builder.build(&model.tables()).expect("a plan");
        let weighted = random.below(2) == 0;
        let steps = steps(&model, &mut random, world, 50, weighted);
        let one = one_process(&model, &steps, Upstream::Output);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
        assert_near(&model, &ranks, &one, 1e-5, &format!("seed {seed}\n{plan}"));
    }
}

#[test]
fn each_placement_and_rule_equals_one_process() {
    for (p, placement) in placements().into_iter().enumerate() {
        for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
            let pooling = [Pooling::Sum, Pooling::Mean][(p + k) % 2];
            let model = Model::new(&[(37, 10, 2), (3, 3, 1), (50, 64, 1)], kind, pooling);
            let world = [2, 3, 4, 7][(p + k) % 4];
            let mesh = Mesh::new(world, world, Layout::Strided).expect("a mesh");
            let plan =
                PlanBuilder::new(mesh).all(placement).build(&model.tables()).expect("a plan");
            let mut random = Random::new((p * 10 + k) as u64);
            let steps = steps(&model, &mut random, world as usize, 50, k % 2 == 0);
            let one = one_process(&model, &steps, Upstream::Output);
            let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
            assert_near(&model, &ranks, &one, 1e-5, &format!("{placement:?}, {kind}"));
        }
    }
}

#[test]
fn wide_rows_equal_one_process() {
    for placement in placements() {
        let model = Model::new(&[(40, 1280, 1)], RuleKind::RowWiseAdaGrad, Pooling::Mean);
        let mesh = Mesh::new(3, 3, Layout::Strided).expect("a mesh");
        let plan = PlanBuilder::new(mesh).all(placement).build(&model.tables()).expect("a plan");
        let steps = steps(&model, &mut Random::new(5), 3, 50, false);
        let one = one_process(&model, &steps, Upstream::Output);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
        assert_near(&model, &ranks, &one, 1e-5, &format!("{placement:?}"));
    }
}

#[test]
fn table_wise_plans_give_the_bits_of_one_process() {
    for seed in 0..cases(8) {
        let mut random = Random::new(seed);
        let mut model = random_model(&mut random);
        for spec in &mut model.specs {
            spec.dtype = random.pick(&[Dtype::F32, Dtype::F16, Dtype::Bf16]);
        }
        let world = 1 + random.below(8) as u32;
        let mesh = Mesh::new(world, world, Layout::Strided).expect("a mesh");
        let plan = Plan::table_wise(&model.tables(), mesh).expect("a plan");
        let steps = steps(&model, &mut random, world as usize, 20, seed % 2 == 0);
        let one = one_process(&model, &steps, Upstream::Given);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Given);
        for rank in &ranks {
            for (t, (got, expected)) in rank.tables.iter().zip(&one.tables).enumerate() {
                assert!(bits(got) == bits(expected), "seed {seed}, table {t}");
            }
        }
        for step in 0..steps.len() {
            let outputs: Vec<f32> =
                ranks.iter().flat_map(|rank| &rank.outputs[step]).copied().collect();
            assert_eq!(outputs, one.outputs[step], "seed {seed}, step {step}");
        }
    }
}

#[test]
fn column_cuts_of_element_wise_rules_give_the_bits_of_one_process() {
    for (k, kind) in [RuleKind::Sgd, RuleKind::AdaGrad, RuleKind::Adam].into_iter().enumerate() {
        let model = Model::new(&[(37, 10, 2), (9, 64, 1)], kind, Pooling::Mean);
        let mesh = Mesh::new(3, 3, Layout::Strided).expect("a mesh");
        let plan = Plan::column_wise(&model.tables(), mesh, None).expect("a plan");
        let steps = steps(&model, &mut Random::new(k as u64), 3, 20, true);
        let one = one_process(&model, &steps, Upstream::Given);
        for rank in over_ranks(&model, &plan, &steps, Upstream::Given) {
            for (got, expected) in rank.tables.iter().zip(&one.tables) {
                assert!(bits(got) == bits(expected), "{kind}");
            }
        }
    }
}

#[test]
fn summed_gradients_of_replicas_equal_one_process() {
    for seed in 0..cases(10) {
        let mut random = Random::new(1000 + seed);
        let model = random_model(&mut random);
        let (group, replicas) = (1 + random.below(4) as u32, 2 + random.below(3) as u32);
        let layout = random.pick(&[Layout::Strided, Layout::Contiguous]);
        let mesh = Mesh::new(group * replicas, group, layout).expect("a mesh");
        let mut builder = PlanBuilder::new(mesh);
        for spec in &model.specs {
            let placement = random.pick(&placements());
            let sync = Some(ReplicaSync::Gradients);
            builder = builder
                .table(spec.name.clone(), PlaceOptions { sync, ..PlaceOptions::from(placement) });
        }
        let plan = builder.build(&model.tables()).expect("a plan");
        let steps = steps(&model, &mut random, plan.world() as usize, 50, seed % 2 == 0);
        let one = one_process(&model, &steps, Upstream::Output);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
        assert_near(&model, &ranks, &one, 1e-5, &format!("seed {seed}\n{plan}"));
        crate::support::assert_replicas_equal(&ranks, &format!("seed {seed}"));
    }
}

#[test]
fn ranks_without_per_sample_weights_count_as_weights_of_one() {
    for placement in placements() {
        let model = Model::new(&[(37, 10, 2), (3, 3, 1)], RuleKind::AdaGrad, Pooling::Mean);
        let mesh = Mesh::new(3, 3, Layout::Strided).expect("a mesh");
        let plan = PlanBuilder::new(mesh).all(placement).build(&model.tables()).expect("a plan");
        let mut random = Random::new(2);
        let mut step = |_| {
            let weighted = model.batches(&mut random, &[3], true);
            [weighted, model.batches(&mut random, &[0, 4], false)].concat()
        };
        let steps: Vec<_> = (0..10).map(&mut step).collect();
        let one = one_process(&model, &steps, Upstream::Output);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
        assert_near(&model, &ranks, &one, 1e-5, &format!("{placement:?}"));
    }
}

#[test]
fn rows_over_a_node_and_grids_equal_one_process() {
    let cut = RowCut::Even;
    for (k, kind) in RuleKind::ALL.into_iter().enumerate() {
        let model = Model::new(&[(37, 10, 2), (3, 3, 1), (50, 64, 1)], kind, Pooling::Mean);
        for (group, layout) in [(8, Layout::Strided), (4, Layout::Contiguous)] {
            let sync = (group == 4).then_some(ReplicaSync::Gradients);
            let mesh = Mesh::new(8, group, layout).expect("a mesh");
            let mut builder = PlanBuilder::new(mesh).node_ranks(2);
            let placements = [
                Placement::TableRowWise { cut, node: None },
                Placement::Grid { cut: RowCut::Modulo, parts: Some(2) },
                Placement::Grid { cut, parts: None },
            ];
            for (spec, placement) in model.specs.iter().zip(placements) {
                let options = PlaceOptions { sync, ..placement.into() };
                builder = builder.table(spec.name.clone(), options);
            }
            let plan = builder.build(&model.tables()).expect("a plan");
            let steps = steps(&model, &mut Random::new(k as u64), 8, 50, k % 2 == 0);
            let one = one_process(&model, &steps, Upstream::Output);
            let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
            assert_near(&model, &ranks, &one, 1e-5, &format!("{kind}\n{plan}"));
        }
    }
}
