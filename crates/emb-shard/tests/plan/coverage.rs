//! Every cell of every table is stored once in every group, whatever the plan.

use crate::common::{assert_covers, sequence, table, tables};
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, NodeSplit, Owners, Path, Per, Placement, Plan,
    PlanBuilder, PlanFile, PlanSpec, Pooling, ReplicaSync, RowCut, RowMap, RowOrder, RowRange,
    StateBytes, Table, TableOptions, TablePlan, Tables, Tier,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::num::NonZeroU32;

/// Random choices, drawn one after the other.
struct Draw<'a>(std::slice::Iter<'a, Index>);

impl Draw<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.0.next().map_or(0, |index| index.index(count))
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Starts of 1..=`most` consecutive non-empty parts of `total`, then the end.
    fn cuts(&mut self, total: usize, most: usize) -> Vec<usize> {
        let mut starts: Vec<usize> = (0..self.below(most))
            .map(|_| 1 + self.below(total))
            .filter(|&cut| cut < total)
            .collect();
        starts.extend([0, total]);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
        items
    }
}

fn divisors(number: u32) -> Vec<u32> {
    (1..=number).filter(|divisor| number.is_multiple_of(*divisor)).collect()
}

fn random_map(draw: &mut Draw, rows: u64, parts: usize) -> RowMap {
    let made = match draw.below(5) {
        0 => RowMap::even(rows, parts),
        1 => RowMap::ceil(rows, parts),
        2 => RowMap::modulo(rows, parts),
        3 => {
            let mut starts: Vec<u64> =
                (1..parts).map(|_| draw.below(rows as usize + 1) as u64).collect();
            starts.extend([0, rows]);
            starts.sort_unstable();
            RowMap::range(starts)
        }
        _ => {
            let order = draw.shuffled((0..rows).collect());
            RowMap::permuted(order, RowMap::ceil(rows, parts).expect("has owners"))
        }
    };
    made.expect("valid map")
}

fn random_tier(draw: &mut Draw, world: u32, node: u32, rows: (u64, u64), table: &Table) -> Tier {
    let group = draw.of(&divisors(world));
    let layout = draw.of(&[Layout::Strided, Layout::Contiguous]);
    let mesh = Mesh::new(world, group, layout).expect("divides");
    let rows = RowRange::new(rows.0, rows.1).expect("ascending");
    let columns = draw.cuts(table.dim(), 4);
    let blocks = columns.windows(2).map(|pair| {
        let parts = 1 + draw.below(group as usize);
        let owners = draw.shuffled((0..group).collect());
        Block {
            columns: ColRange::new(pair[0], pair[1]).expect("ascending"),
            map: random_map(draw, rows.rows(), parts),
            owners: Owners::list(&owners[..parts]),
        }
    });
    let blocks = blocks.collect();
    let even = NodeSplit::new(mesh, node).expect("divides").is_some();
    let exchanges: &[Exchange] = match (group, table.pooling(), even) {
        (1, ..) => &[Exchange::Local],
        (_, Pooling::None, true) => &[
            Exchange::Rows,
            Exchange::Unique { per: Per::Rank },
            Exchange::Unique { per: Per::Node },
        ],
        (_, Pooling::None, false) => &[Exchange::Rows, Exchange::Unique { per: Per::Rank }],
        (_, _, true) => {
            &[Exchange::Reduce { over: Path::Hierarchical }, Exchange::Unique { per: Per::Node }]
        }
        (_, _, false) => &[Exchange::Reduce { over: Path::Flat }],
    };
    let every = NonZeroU32::new(1 + draw.below(20) as u32).expect("at least 1");
    let syncs = [
        ReplicaSync::Weights { every },
        ReplicaSync::TouchedRows { every },
        ReplicaSync::Gradients,
        ReplicaSync::FullyShardedReplicas,
    ];
    let sync = if mesh.replicas() == 1 { ReplicaSync::None } else { draw.of(&syncs) };
    Tier { rows, mesh, exchange: draw.of(exchanges), sync, blocks }
}

fn random_order(draw: &mut Draw, rows: u64) -> Option<RowOrder> {
    let form = draw.below(4);
    let mut shuffled = || draw.shuffled((0..rows).collect::<Vec<u64>>());
    let order = match form {
        0 => RowOrder::new(shuffled()),
        1 => {
            let mut hot = shuffled();
            hot.truncate(draw.below(rows as usize + 1));
            RowOrder::hot_first(rows, hot)
        }
        _ => return None,
    };
    Some(order.expect("an order"))
}

fn random_spec(draws: &[Index], world: u32, given: &Tables) -> PlanSpec {
    let mut draw = Draw(draws.iter());
    let node_ranks = draw.of(&divisors(world));
    let mut plans = Vec::new();
    for table in given.tables().as_slice() {
        let starts = draw.cuts(table.rows() as usize, 3);
        let order = random_order(&mut draw, table.rows());
        let tiers = starts.windows(2).map(|pair| {
            random_tier(&mut draw, world, node_ranks, (pair[0] as u64, pair[1] as u64), table)
        });
        plans.push(TablePlan { table: table.name().to_owned(), tiers: tiers.collect(), order });
    }
    PlanSpec { world, node_ranks, tables: draw.shuffled(plans) }
}

fn any_tables() -> impl Strategy<Value = Tables> {
    let one = (1u64..=40, 1usize..=9, any::<bool>(), 0u32..=4, 0u32..=8);
    prop::collection::vec(one, 1..=3).prop_map(|shapes| {
        let shapes = shapes.into_iter().enumerate();
        let made = shapes.map(|(number, (rows, dim, pooled, per_row, per_element))| {
            let options = TableOptions {
                pooling: if pooled { Pooling::Sum } else { Pooling::None },
                state: StateBytes { per_row, per_element },
                ..TableOptions::default()
            };
            Table::new(format!("t{number}"), rows, dim, options).expect("valid")
        });
        tables(made.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_written_plan_covers_every_cell_once_in_every_group_and_survives_its_file(
        given in any_tables(),
        world in 1u32..=64,
        draws in prop::collection::vec(any::<Index>(), 3000),
    ) {
        let plan = Plan::new(&given, random_spec(&draws, world, &given)).expect("consistent");
        assert_covers(&plan);

        let text = plan.to_file().to_string();
        let file: PlanFile = serde_json::from_str(&text).expect("is JSON");
        prop_assert_eq!(&file, &plan.to_file());
        let derived = serde_json::to_string(&file).expect("serializes");
        prop_assert_eq!(&serde_json::from_str::<PlanFile>(&derived).expect("is JSON"), &file);
        prop_assert_eq!(file.into_plan(&given).expect("the same plan"), plan);
    }

    #[test]
    fn any_built_plan_covers_every_cell_once_in_every_group(
        given in any_tables(),
        (world, group, node) in (1u32..=64).prop_flat_map(|world| {
            (Just(world), select(divisors(world)), select(divisors(world)))
        }),
        layout in select(vec![Layout::Strided, Layout::Contiguous]),
        cut in select(vec![RowCut::Ceil, RowCut::Even, RowCut::Modulo]),
        kind in 0usize..6,
        own_group in any::<Index>(),
    ) {
        let mesh = Mesh::new(world, group, layout).expect("divides");
        let placement = match kind {
            0 => Placement::TableWise { owner: None },
            1 => Placement::RowWise { cut },
            2 => Placement::ColumnWise { parts: None },
            3 => Placement::DataParallel,
            4 => Placement::TableRowWise { cut, node: None },
            _ => Placement::Grid { cut, parts: None },
        };
        let all = divisors(world);
        let own = emb_shard::PlaceOptions {
            group: Some((all[own_group.index(all.len())], layout)),
            ..Placement::RowWise { cut }.into()
        };
        let builder = PlanBuilder::new(mesh).node_ranks(node).all(placement).table("t0", own);
        match builder.build(&given) {
            Ok(plan) => assert_covers(&plan),
            Err(error) => {
                prop_assert!(NodeSplit::new(mesh, node).expect("divides").is_none(), "{}", error);
                prop_assert!(error.to_string().contains("unevenly"), "{}", error);
            }
        }
    }

    #[test]
    fn nodes_cut_groups_evenly_exactly_where_counting_says_so(
        (world, group, node) in (1u32..=64).prop_flat_map(|world| {
            (Just(world), select(divisors(world)), select(divisors(world)))
        }),
        layout in select(vec![Layout::Strided, Layout::Contiguous]),
    ) {
        let mesh = Mesh::new(world, group, layout).expect("divides");
        let mut sizes = Vec::new();
        for id in (0..mesh.replicas()).map(emb_shard::GroupId::new) {
            let nodes = mesh.group_members(id).expect("exists").map(|rank| rank.get() / node);
            let nodes: Vec<u32> = nodes.collect();
            sizes.extend(nodes.chunk_by(|a, b| a == b).map(|run| run.len() as u32));
        }
        let even = sizes.iter().all(|&size| size == sizes[0]).then_some(sizes[0]);
        let split = NodeSplit::new(mesh, node).expect("divides");
        prop_assert_eq!(split.map(|split| split.part_ranks()), even);
        let Some(split) = split else { return Ok(()) };
        for rank in (0..world).map(emb_shard::Rank::new) {
            let on_node: Vec<_> = split.node_of(rank).expect("in range").collect();
            prop_assert!(on_node.iter().all(|other| other.get() / node == rank.get() / node));
            prop_assert!(on_node.contains(&rank));
            let rail: Vec<_> = split.rail_of(rank).expect("in range").collect();
            prop_assert!(rail.contains(&rank));
            prop_assert_eq!(rail.len() * on_node.len(), group as usize);
        }
    }
}

#[test]
fn u24_every_plan_gives_every_cell_its_row_and_column_so_initial_values_agree() {
    // 1000 x 16, the value of a cell known from row and column alone.
    let given = tables(vec![table("t", 1000, 16, 1.0), sequence("other", 3, 2)]);
    let mesh = |world, group| Mesh::new(world, group, Layout::Strided).expect("divides");
    let plans = [
        Plan::table_wise(&given, mesh(1, 1)),
        Plan::row_wise(&given, mesh(2, 2), RowCut::Ceil),
        Plan::row_wise(&given, mesh(4, 4), RowCut::Modulo),
        Plan::column_wise(&given, mesh(2, 2), None),
        Plan::data_parallel(&given, mesh(4, 1)),
        Plan::row_wise(&given, mesh(4, 2), RowCut::Even),
    ];
    for plan in plans {
        assert_covers(&plan.expect("valid"));
    }
}

#[test]
fn hot_warm_and_cold_rows_of_one_table_live_in_groups_of_their_own() {
    // FlexShard's tiers: 2 hot rows everywhere, 6 warm rows per node, the rest over all ranks.
    let (world, node) = (8, 4);
    let given = tables(vec![sequence("clicks", 50, 4)]);
    let tier = |rows: (u64, u64), group, layout, exchange, sync| Tier {
        rows: RowRange::new(rows.0, rows.1).expect("ascending"),
        mesh: Mesh::new(world, group, layout).expect("divides"),
        exchange,
        sync,
        blocks: vec![Block {
            columns: ColRange::new(0, 4).expect("ascending"),
            map: RowMap::modulo(rows.1 - rows.0, group as usize).expect("has owners"),
            owners: Owners::span(0, group),
        }],
    };
    let rank = Exchange::Unique { per: Per::Rank };
    let tiers = vec![
        tier((0, 2), 1, Layout::Strided, Exchange::Local, ReplicaSync::Gradients),
        tier((2, 8), node, Layout::Contiguous, rank, ReplicaSync::Gradients),
        tier(
            (8, 50),
            world,
            Layout::Strided,
            Exchange::Unique { per: Per::Node },
            ReplicaSync::None,
        ),
    ];
    let order = RowOrder::new((0..50).map(|row| (row * 7 + 3) % 50).collect()).expect("valid");
    let plan = TablePlan { table: "clicks".into(), order: Some(order), tiers };
    let spec = PlanSpec { world, node_ranks: node, tables: vec![plan] };
    let plan = Plan::new(&given, spec).expect("consistent");
    assert_covers(&plan);
    let id = emb_shard::TableId::new(0);
    let by_tier = plan.tier_map(id).expect("exists");
    for row in 0..50 {
        assert_eq!(
            by_tier.locate(row).expect("exists").owner,
            plan.cell(id, row, 0).expect("exists").tier
        );
    }
    assert_eq!(plan.exchange_classes().len(), 3);
    assert_eq!(plan.sync_classes().len(), 2);
}
