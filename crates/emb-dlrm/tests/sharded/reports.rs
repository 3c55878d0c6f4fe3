//! Reports from the field, each with its id.

use crate::replicas::weights;
use crate::support::{
    Model, Outcome, Random, Upstream, assert_near, bits, cpu, one_process, over_ranks,
};
use emb_comm::{Collective, Local, Options, run};
use emb_dlrm::sharded::{Error, ShardedEmbeddings, WholeTable};
use emb_kernels::{Cpu, Init, Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, Rank, RowCut, TableId};

const ROW_WISE: Placement = Placement::RowWise { cut: RowCut::Ceil };
const PLACEMENTS: [Placement; 5] = [
    Placement::TableWise { owner: None },
    ROW_WISE,
    Placement::RowWise { cut: RowCut::Modulo },
    Placement::ColumnWise { parts: None },
    Placement::DataParallel,
];

fn plan(model: &Model, world: u32, group: u32, options: impl Into<PlaceOptions>) -> Plan {
    let mesh = Mesh::new(world, group, Layout::Strided).expect("a mesh");
    PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan")
}

/// One step with the gradient `g` everywhere; returns the output.
fn step(
    sharded: &mut ShardedEmbeddings<Cpu, Local>,
    cpu: &mut Cpu,
    bags: &[&[i64]],
    (gradient, number): (f32, u64),
) -> Result<Vec<f32>, Error> {
    let lengths: Vec<i64> = bags.iter().map(|bag| bag.len() as i64).collect();
    let names: Vec<String> =
        sharded.map().features().iter().map(|feature| feature.name.clone()).collect();
    let batch = Jagged::from_lengths(&names, bags.len(), &lengths, bags.concat(), None)?;
    let routed = sharded.route(batch.as_ref())?;
    let pooled = routed.exchange(sharded)?.pool(sharded, cpu)?;
    let output = pooled.output().to_vec();
    pooled.backward(sharded, cpu, &vec![gradient; output.len()], 1.0, number)?;
    Ok(output)
}

#[test]
fn u02_ranks_without_samples_or_without_ids() {
    let mut model = Model::new(&[(9, 4, 1)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    let rows = |dropped: &[usize]| WholeTable {
        weights: (0..36)
            .map(|k| k / 4)
            .map(|row| row as f32 - if dropped.contains(&row) { 1.0 } else { 0.0 })
            .collect(),
        state: Vec::new(),
    };
    let two_dimensions = PlaceOptions { sync: Some(weights(1)), ..ROW_WISE.into() };
    let mut plans: Vec<Plan> =
        PLACEMENTS.into_iter().map(|placement| plan(&model, 3, 3, placement)).collect();
    plans.push(plan(&model, 4, 2, two_dimensions));
    for plan in plans {
        // Who has ids, nothing at all, empty bags: the one with nothing is every rank in turn.
        for turn in 0..plan.world() as usize {
            let results = run(plan.world() as usize, &Options::default(), |world| {
                let mut cpu = cpu();
                let mut sharded = model.shard(world, &mut cpu, &plan)?;
                sharded.load_table(&mut cpu, 0, &rows(&[]))?;
                let bags: &[&[i64]] = match (world.rank() + turn) % world.world() {
                    0 => &[&[0], &[8, 4]],
                    2 => &[&[], &[]],
                    _ => &[],
                };
                let output = step(&mut sharded, &mut cpu, bags, (1.0, 1))?;
                let expected: &[f32] = match (world.rank() + turn) % world.world() {
                    0 => &[0.0, 0.0, 0.0, 0.0, 12.0, 12.0, 12.0, 12.0],
                    2 => &[0.0; 8],
                    _ => &[],
                };
                assert_eq!(output, expected, "turn {turn}\n{plan}");
                assert_eq!(sharded.gather_table(&mut cpu, 0)?, rows(&[0, 4, 8]), "{plan}");
                Ok::<_, Error>(())
            });
            results.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
        }
    }
}

#[test]
fn u09_rows_that_do_not_divide_and_more_ranks_than_rows() {
    for (rows, world) in [(4091_u64, 2_u32), (3, 4), (3, 8), (1, 4), (1, 8), (100, 8)] {
        for placement in PLACEMENTS {
            let model = Model::new(&[(rows, 5, 1)], RuleKind::Adam, Pooling::Sum);
            let plan = plan(&model, world, world, placement);
            let stored: u64 = (0..world)
                .flat_map(|rank| plan.shards_of(Rank::new(rank)).expect("a rank"))
                .map(|shard| shard.rows * shard.columns.columns() as u64)
                .sum();
            let copies = if placement == Placement::DataParallel { u64::from(world) } else { 1 };
            assert_eq!(stored, rows * 5 * copies);
            let tables = run(world as usize, &Options::default(), |world| {
                let mut cpu = cpu();
                let mut sharded = model.shard(world, &mut cpu, &plan)?;
                let before = sharded.gather_table(&mut cpu, 0)?;
                assert_eq!(before.weights.len(), rows as usize * 5);
                let ids: Vec<i64> = (0..rows.min(3) as i64).collect();
                let output = step(&mut sharded, &mut cpu, &[&ids], (0.5, 1))?;
                for (c, &got) in output.iter().enumerate() {
                    let sum: f32 = ids.iter().map(|&id| before.weights[id as usize * 5 + c]).sum();
                    assert!((got - sum).abs() <= 1e-6, "column {c}: {got}, not {sum}");
                }
                // Saved, loaded into another, saved again: the same bytes.
                let saved = sharded.gather_table(&mut cpu, 0)?;
                assert_ne!(saved, before);
                let mut other = model.shard(world, &mut cpu, &plan)?;
                other.load_table(&mut cpu, 0, &saved)?;
                assert_eq!(bits(&other.gather_table(&mut cpu, 0)?), bits(&saved));
                Ok::<_, Error>(saved)
            });
            let tables = tables.unwrap_or_else(|failure| panic!("{failure}\n{plan}"));
            assert!(tables.iter().all(|table| bits(table) == bits(&tables[0])));
        }
    }
}

#[test]
fn u10_columns_that_do_not_divide() {
    for (dim, world, expected) in
        [(10, 3, vec![4, 3, 3]), (2, 4, vec![1, 1]), (10, 4, vec![3, 3, 2, 2])]
    {
        let model = Model::new(&[(30, dim, 1)], RuleKind::Adam, Pooling::Sum);
        let plan = plan(&model, world, world, Placement::ColumnWise { parts: None });
        let blocks = &plan.tier(TableId::new(0), 0).expect("a tier").blocks;
        let widths: Vec<usize> = blocks.iter().map(|block| block.columns.columns()).collect();
        assert_eq!(widths, expected);
        for rank in 0..world {
            assert!(plan.shards_of(Rank::new(rank)).expect("a rank").count() <= 1);
        }
        let sizes = vec![2; world as usize];
        let steps: Vec<_> =
            (0..5).map(|k| model.batches(&mut Random::new(k), &sizes, false)).collect();
        let one = one_process(&model, &steps, Upstream::Given);
        let ranks = over_ranks(&model, &plan, &steps, Upstream::Given);
        assert!(ranks.iter().all(|rank| bits(&rank.tables[0]) == bits(&one.tables[0])));
        for (number, expected) in one.outputs.iter().enumerate() {
            let got: Vec<f32> =
                ranks.iter().flat_map(|rank: &Outcome| &rank.outputs[number]).copied().collect();
            assert_eq!(&got, expected);
        }
    }
}

#[test]
fn u13_row_wise_gradients_are_not_divided_by_the_world() {
    let mut model = Model::new(&[(8, 3, 1)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    model.specs[0].init = Init::Constant(0.0);
    for world in [1, 2, 4] {
        for placement in PLACEMENTS {
            let plan = plan(&model, world, world, placement);
            let tables = run(world as usize, &Options::default(), |ranks| {
                let mut cpu = cpu();
                let mut sharded = model.shard(ranks, &mut cpu, &plan)?;
                let each = 4 / i64::from(world);
                let first = ranks.rank() as i64 * each;
                let ids: Vec<i64> = (first..first + each).collect();
                step(&mut sharded, &mut cpu, &[&ids], (0.5, 1))?;
                sharded.gather_table(&mut cpu, 0)
            });
            for table in tables.expect("a step") {
                let expected: Vec<f32> = (0..24).map(|k| if k < 12 { -0.5 } else { 0.0 }).collect();
                assert_eq!(table.weights, expected, "{plan}");
            }
        }
    }
}

#[test]
fn u13_fifty_steps_over_ranks_equal_one_process() {
    for kind in [RuleKind::Sgd, RuleKind::RowWiseAdaGrad] {
        let model = Model::new(&[(50, 8, 1), (7, 3, 2)], kind, Pooling::Mean);
        for world in [1, 2, 4] {
            for placement in PLACEMENTS {
                let plan = plan(&model, world, world, placement);
                let sizes = vec![64 / world as usize; world as usize];
                let steps: Vec<_> =
                    (0..50).map(|k| model.batches(&mut Random::new(k), &sizes, false)).collect();
                let one = one_process(&model, &steps, Upstream::Output);
                let ranks = over_ranks(&model, &plan, &steps, Upstream::Output);
                assert_near(&model, &ranks, &one, 1e-5, &format!("{kind}\n{plan}"));
            }
        }
    }
}

#[test]
fn u45_replicas_are_equal_after_every_third_step_and_when_told() {
    let mut model = Model::new(&[(5, 2, 1)], RuleKind::Sgd, Pooling::Sum);
    model.rate = 1.0;
    model.specs[0].init = Init::Constant(0.0);
    let plan = plan(
        &model,
        2,
        1,
        PlaceOptions { sync: Some(weights(3)), ..Placement::DataParallel.into() },
    );
    let seen = run(2, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, &plan)?;
        let gradient = [0.5, 1.5][world.rank()];
        let mut row = Vec::new();
        for number in 1..=7 {
            step(&mut sharded, &mut cpu, &[&[3]], (gradient, number))?;
            row.push(sharded.gather_table(&mut cpu, 0)?.weights[6]);
            assert_eq!(sharded.unsynced_steps(), number % 3);
        }
        sharded.sync(&mut cpu)?;
        let calls = sharded.collectives();
        sharded.sync(&mut cpu)?;
        assert_eq!(sharded.collectives(), calls, "nothing was left to do");
        let table = sharded.gather_table(&mut cpu, 0)?;
        row.push(table.weights[6]);
        Ok::<_, Error>((row, table))
    });
    let seen = seen.expect("seven steps");
    // Each replica steps by twice its own gradient; equal after steps 3 and 6, and at the end.
    assert_eq!(seen[0].0, [-1.0, -2.0, -6.0, -7.0, -8.0, -12.0, -13.0, -14.0]);
    assert_eq!(seen[1].0, [-3.0, -6.0, -6.0, -9.0, -12.0, -12.0, -15.0, -14.0]);
    assert_eq!(bits(&seen[0].1), bits(&seen[1].1));
}

#[test]
fn u45_optimizer_state_is_averaged_like_weights() {
    let model = Model::new(&[(5, 2, 1)], RuleKind::Adam, Pooling::Sum);
    let plan = plan(
        &model,
        2,
        1,
        PlaceOptions { sync: Some(weights(3)), ..Placement::DataParallel.into() },
    );
    let seen = run(2, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, &plan)?;
        let gradient = [0.5, 1.5][world.rank()];
        step(&mut sharded, &mut cpu, &[&[3, 1]], (gradient, 1))?;
        let before = sharded.gather_table(&mut cpu, 0)?;
        sharded.sync(&mut cpu)?;
        Ok::<_, Error>((before, sharded.gather_table(&mut cpu, 0)?))
    });
    let seen = seen.expect("a step");
    let [(a, after), (b, other)] = &seen[..] else { panic!("two ranks") };
    assert_eq!(bits(after), bits(other));
    assert_ne!(a.state, b.state);
    let all = |table: &WholeTable| [&table.weights[..], &table.state.concat()].concat();
    for ((a, b), mean) in all(a).iter().zip(all(b)).zip(all(after)) {
        assert!((mean - f32::midpoint(*a, b)).abs() <= 1e-7 * a.abs().max(b.abs()));
    }
}
