//! Chosen placements: work and bytes balanced, budgets kept, shortage explained.

use crate::common::{table, tables};
use emb_shard::{
    AutoOptions, Bytes, Error, Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, Rank,
    ReplicaSync, RowCut, StateBytes, Table, TableOptions, Tables,
};
use proptest::prelude::*;
use std::num::NonZeroU32;
use std::time::Instant;

fn mesh(world: u32, group: u32) -> Mesh {
    Mesh::new(world, group, Layout::Strided).expect("divides")
}

fn whole() -> AutoOptions {
    AutoOptions { data_parallel_up_to: Bytes::new(0), row_wise: None }
}

fn shortage(result: Result<Plan, Error>) -> emb_shard::DoesNotFit {
    match result {
        Err(Error::DoesNotFit(why)) => *why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn u30_a_table_too_large_is_named_with_exact_bytes_and_what_would_help() {
    let given = tables(vec![table("big", 10_000_000, 64, 1.0)]);
    let builder = PlanBuilder::new(mesh(2, 2)).budget(Bytes::new(1_000_000_000));
    let text = "table \"big\" does not fit as table_wise: needs 2,560,000,000 bytes on one rank, \
                has 1,000,000,000, short 1,560,000,000; row_wise is still short 280,000,000 per \
                rank, the smallest world for row_wise is 3";
    for plan in [builder.build(&given), builder.auto(&given, whole())] {
        let why = shortage(plan);
        assert_eq!(why.to_string(), text);
        assert_eq!(why.short().get(), 1_560_000_000);
        assert_eq!(why.row_wise_short.get(), 280_000_000);
        assert_eq!(why.row_wise_world, Some(3));
    }
    let why = shortage(builder.auto(&given, AutoOptions::default()));
    assert_eq!((why.placement, why.short().get()), ("row_wise", 280_000_000));
    let builder = PlanBuilder::new(mesh(3, 3)).budget(Bytes::new(1_000_000_000));
    let plan = builder.auto(&given, AutoOptions::default()).expect("fits three ranks");
    assert_eq!(plan.placed().as_slice()[0].tiers[0].kind(), "row_wise");
}

#[test]
fn u30_state_and_replicas_count_and_a_row_that_fits_nowhere_is_said() {
    let state = StateBytes { per_row: 4, per_element: 8 };
    let options = TableOptions { state, ..TableOptions::default() };
    let given = tables(vec![Table::new("adam", 1000, 10, options).expect("valid")]);
    // A row takes 10 * (4 + 8) + 4 = 124 bytes.
    let builder = PlanBuilder::new(mesh(4, 2));
    let why = shortage(builder.clone().budget(Bytes::new(40_000)).build(&given));
    assert_eq!((why.needs.get(), why.row_wise.get()), (124_000, 62_000));
    // 322 rows fit: groups of 4, twice.
    assert_eq!(why.row_wise_world, Some(8));
    // Three ranks hold 334, 334 and 332 rows.
    let three = PlanBuilder::new(mesh(3, 3)).budget(Bytes::new(41_000));
    assert_eq!(shortage(three.build(&given)).row_wise_short.get(), 334 * 124 - 41_000);
    let why = shortage(builder.budget(Bytes::new(123)).build(&given));
    assert_eq!(why.row_wise_world, None);
    assert!(why.to_string().ends_with("not even one row fits on a rank"), "{why}");
}

#[test]
fn tables_with_a_placement_of_their_own_keep_it_and_the_rest_is_chosen() {
    let given = tables(vec![
        table("tiny", 10, 4, 1.0),
        table("own", 10, 4, 1.0),
        table("large", 1_000_000, 64, 1.0),
        table("large too", 1_000_000, 64, 1.0),
    ]);
    let sync = ReplicaSync::TouchedRows { every: NonZeroU32::MIN };
    let all = Placement::TableWise { owner: None };
    let builder = PlanBuilder::new(mesh(4, 2))
        .all(PlaceOptions { sync: Some(sync), ..all.into() })
        .table("own", Placement::ColumnWise { parts: None })
        .table("large too", Placement::TableWise { owner: Some(1) })
        .budget(Bytes::new(400_000_000));
    let plan = builder.auto(&given, AutoOptions::default()).expect("fits");
    let kinds: Vec<_> = plan
        .placed()
        .iter()
        .map(|(id, _)| {
            let tier = plan.tier(id, 0).expect("exists");
            let rows = tier.blocks[0].owners.len();
            (tier.mesh.group_ranks(), rows, tier.blocks.len(), tier.sync)
        })
        .collect();
    assert_eq!(kinds[0], (1, 1, 1, ReplicaSync::Gradients), "data-parallel");
    assert_eq!((kinds[1].1, kinds[1].2), (1, 2), "column-wise, as told");
    assert_eq!(kinds[2], (2, 2, 1, sync), "row-wise, with the sync of all");
    assert_eq!(kinds[3].1, 1, "whole, as told, though larger than half of the budget");
    let wrong = builder.table("lagre", Placement::DataParallel);
    let error = wrong.auto(&given, AutoOptions::default()).expect_err("no such table");
    assert!(error.to_string().contains("lagre"), "{error}");
}

#[test]
fn u30_every_configured_table_is_in_the_plan_once() {
    let mut given: Vec<Table> =
        (0..60).map(|n| table(&format!("t{n}"), 1 + n * n * 40, 1 + n as usize % 7, 1.0)).collect();
    given.push(table("large", 600_000, 8, 1.0));
    let given = tables(given);
    // Little more than the mean: whole tables do not fill the ranks so well.
    let budget = given.weight_bytes().expect("64 bits").get() / 4 * 102 / 100;
    let builder = PlanBuilder::new(mesh(8, 4)).budget(Bytes::new(budget));
    let plan = builder.auto(&given, AutoOptions::default()).expect("fits");
    for (id, table) in given.tables().iter() {
        let mut cells = 0;
        for rank in (0..8).map(Rank::new) {
            let shards = plan.shards_of(rank).expect("in range").filter(|shard| shard.table == id);
            cells += shards.map(|shard| shard.rows * shard.columns.columns() as u64).sum::<u64>();
        }
        let replicas = u64::from(plan.tier(id, 0).expect("exists").mesh.replicas());
        assert_eq!(cells, table.rows() * table.dim() as u64 * replicas, "{}", table.name());
    }
    let names: Vec<&str> =
        plan.placed().as_slice().iter().map(|plan| plan.table.as_str()).collect();
    let expected: Vec<&str> = given.tables().as_slice().iter().map(Table::name).collect();
    assert_eq!(names, expected);
    let most = plan.report().ranks().iter().map(|load| load.bytes.total()).max();
    assert!(most <= Some(Bytes::new(budget)));
    for kind in ["data_parallel", "row_wise", "table_wise"] {
        let has = |plan: &emb_shard::TablePlan| plan.tiers[0].kind() == kind;
        assert!(plan.placed().as_slice().iter().any(has), "no {kind} in\n{plan}");
    }
}

#[test]
fn u31_heavy_tables_are_apart() {
    let factors = [100.0, 100.0, 1.0, 1.0];
    let given = factors.iter().enumerate();
    let given = tables(given.map(|(n, &f)| table(&format!("t{n}"), 1000, 64, f)).collect());
    for plan in
        [PlanBuilder::new(mesh(2, 2)).auto(&given, whole()), Plan::table_wise(&given, mesh(2, 2))]
    {
        let report = plan.expect("fits").report();
        let lookups: Vec<f64> = report.ranks().iter().map(|load| load.lookups).collect();
        assert_eq!(lookups, [101.0, 101.0]);
        assert_eq!(report.bytes_max_to_mean(), 1.0);
        assert_eq!(report.cost_max_to_mean(), 1.0);
    }
}

/// The least possible largest cost of a rank, by trying every assignment.
fn brute_force(costs: &[f64], loads: &mut [f64]) -> f64 {
    let Some((&cost, rest)) = costs.split_first() else {
        return loads.iter().copied().fold(0.0, f64::max);
    };
    let mut best = f64::INFINITY;
    for rank in 0..loads.len() {
        loads[rank] += cost;
        best = best.min(brute_force(rest, loads));
        loads[rank] -= cost;
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn u31_whole_tables_are_within_four_thirds_of_the_best(
        shapes in prop::collection::vec((1u32..200, 1usize..65, 1u64..5000), 1..=8),
        world in 2u32..=4,
    ) {
        let made = shapes.iter().enumerate();
        let made = made.map(|(n, &(factor, dim, rows))| table(&format!("t{n}"), rows, dim, f64::from(factor)));
        let plan = PlanBuilder::new(mesh(world, world)).auto(&tables(made.collect()), whole());
        let report = plan.expect("no limit").report();
        let largest = report.ranks().iter().map(|load| load.cost).fold(0.0, f64::max);
        let costs: Vec<f64> = shapes.iter().map(|&(f, dim, _)| f64::from(f) * dim as f64).collect();
        let best = brute_force(&costs, &mut vec![0.0; world as usize]);
        prop_assert!(largest <= best * 4.0 / 3.0 + 1e-6, "{} against {}", largest, best);
        prop_assert!(largest >= best - 1e-6, "better than possible");
    }

    #[test]
    fn a_budget_is_kept_or_the_shortage_is_true(
        shapes in prop::collection::vec((1u64..5000, 1usize..9, 0u32..9), 1..=20),
        (group, replicas) in (1u32..=6, 1u32..=3),
        budget in 1_000u64..200_000,
    ) {
        let made = shapes.iter().enumerate();
        let made = made.map(|(n, &(rows, dim, f))| table(&format!("t{n}"), rows, dim, f64::from(f)));
        let given = tables(made.collect());
        let builder = PlanBuilder::new(mesh(group * replicas, group)).budget(Bytes::new(budget));
        match builder.auto(&given, AutoOptions::default()) {
            Ok(plan) => {
                let over = |load: &emb_shard::RankLoad| load.bytes.total().get() > budget;
                prop_assert!(!plan.report().ranks().iter().any(over));
                prop_assert_eq!(plan, builder.auto(&given, AutoOptions::default()).expect("again"));
            }
            // All is row-wise then, and not even that fits: the parts are more than the budget.
            Err(Error::DoesNotFit(why)) => {
                prop_assert!(why.needs > why.has);
                let part = |table: &Table| {
                    let rows = table.rows().div_ceil(u64::from(group));
                    table.part_bytes(rows, table.dim()).total().get()
                };
                let parts: u64 = given.tables().as_slice().iter().map(part).sum();
                let whole: u64 =
                    given.tables().as_slice().iter().map(|table| table.weight_bytes().get()).sum();
                prop_assert!(parts > budget || whole > budget, "{} fits {}", parts, budget);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

fn ten_thousand() -> Tables {
    let made = (0u64..10_000).map(|n| {
        // Deterministic spread: mostly small tables, some of a few million rows.
        let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let rows = 10 + spread * spread / (1 << 26);
        let factor = 1.0 + (spread % 50) as f64;
        table(&format!("table {n}"), rows, [16, 32, 64, 128][n as usize % 4], factor)
    });
    tables(made.collect())
}

#[test]
fn ten_thousand_tables_on_4096_ranks_take_seconds_and_little_memory() {
    let given = ten_thousand();
    let builder = PlanBuilder::new(mesh(4096, 1024)).node_ranks(8);
    let start = Instant::now();
    let total = given.weight_bytes().expect("64 bits").get();
    // A third more room than the mean: some tables must be cut.
    let budget = total / 1024 * 4 / 3;
    let plan = builder.budget(Bytes::new(budget)).auto(&given, AutoOptions::default());
    let plan = plan.expect("fits");
    let seconds = start.elapsed().as_secs_f64();
    assert!(seconds < 20.0, "{seconds:.1} s");
    let shards = |rank| plan.shards_of(Rank::new(rank)).expect("in range").count();
    let all: usize = (0..4096).map(shards).sum();
    assert!(all > 10_000 * 4);
    let largest = plan.report().ranks().iter().map(|load| load.bytes.total().get()).max();
    assert!(largest <= Some(budget), "{plan}");
    // Entries are kept for a group, not for every replica, and not for row-wise parts.
    let text = plan.to_file().to_string();
    assert!(text.len() < 10_000 * 400, "{} bytes", text.len());
}

#[test]
fn fixed_owners_are_placed_first_and_the_rest_around_them() {
    let given =
        tables(vec![table("a", 100, 8, 1.0), table("b", 100, 8, 1.0), table("c", 100, 8, 1.5)]);
    let builder = PlanBuilder::new(mesh(2, 2))
        .table("a", Placement::TableWise { owner: Some(1) })
        .table("b", Placement::TableWise { owner: Some(1) });
    let report = builder.build(&given).expect("valid").report();
    let lookups: Vec<f64> = report.ranks().iter().map(|load| load.lookups).collect();
    assert_eq!(lookups, [1.5, 2.0]);
    let row_wise = Plan::row_wise(&given, mesh(4, 2), RowCut::Ceil).expect("valid").report();
    assert!(row_wise.ranks().iter().all(|load| (load.lookups - 3.5 / 4.0).abs() < 1e-12));
}
