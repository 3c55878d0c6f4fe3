//! Bytes between nodes at 16 nodes, batch 65,536, counted from plans by plain arithmetic.

use crate::common::{DCNV2, T180, T200, T510, machines, planner, published, rank_bytes, task};
use emb_shard::{
    EmbarkClusters, EmbarkSearch, Exchange, Layout, Mesh, Path, PlaceOptions, Placement, Plan,
    PlanBuilder, Planner, RowCut, Workload,
};
use std::collections::BTreeMap;

const NODES: u32 = 16;
const RANKS: u32 = 8;
/// Samples of a rank.
const SAMPLES: f64 = 512.0;
const VALUE_BYTES: f64 = 2.0;
const ID_BYTES: f64 = 4.0;

/// Megabytes that every rank exchanges with other nodes in a step, in the mean and at the heaviest.
///
/// Sums: of every column block a rank gets one partial sum for each sample from each node with rows
/// of it, and sends as many gradients; its ids go to the owners of their rows. Distinct rows, as
/// many as `u` of the look-ups of a rank: a row, its gradient, and an id with the number of its
/// feature. Copies: gradients of all rows by a ring between nodes, each rank with its part.
fn megabytes(plan: &Plan, workload: &Workload) -> (f64, f64) {
    let mut bytes = vec![0.0; NODES as usize];
    let others = f64::from(NODES - 1) / f64::from(NODES);
    for (id, placed) in plan.placed().iter() {
        let table = &plan.tables().tables()[id];
        let [tier] = &placed.tiers[..] else { panic!("one tier") };
        for block in &tier.blocks {
            let width = block.columns.columns() as f64 * VALUE_BYTES;
            let mut rows_on: BTreeMap<u32, f64> = BTreeMap::new();
            for (part, owner) in block.owners.iter().enumerate() {
                let rows = block.map.rows_of(part).expect("a part") as f64;
                *rows_on.entry(owner / RANKS).or_default() += rows / table.rows() as f64;
            }
            for (node, bytes) in bytes.iter_mut().enumerate() {
                let away = rows_on.iter().filter(|(on, _)| **on as usize != node);
                *bytes += match tier.exchange {
                    Exchange::Reduce { over: Path::Hierarchical } => away
                        .map(|(_, part)| {
                            SAMPLES * (2.0 * width + table.lookups() * ID_BYTES * part)
                        })
                        .sum::<f64>(),
                    Exchange::Unique { .. } => {
                        let lookups = SAMPLES * table.lookups();
                        let rows = workload.frequencies()[id].expected_unique(lookups);
                        let each = 2.0 * width + ID_BYTES + 4.0;
                        away.map(|(_, part)| part).sum::<f64>() * rows.expect("finite") * each
                    }
                    Exchange::Local => {
                        others * 2.0 * table.rows() as f64 * width / f64::from(RANKS)
                    }
                    other => panic!("{other}"),
                };
            }
        }
    }
    let max = bytes.iter().copied().fold(0.0, f64::max);
    (bytes.iter().sum::<f64>() / f64::from(NODES) / 1e6, max / 1e6)
}

/// Table `i` on node `i mod N`, its rows over the ranks of the node.
fn table_row_wise(workload: &Workload) -> Plan {
    let mesh = Mesh::new(NODES * RANKS, NODES * RANKS, Layout::Strided).expect("divides");
    let mut builder = PlanBuilder::new(mesh).node_ranks(RANKS);
    for (number, table) in (0..).zip(workload.tables().tables().as_slice()) {
        let placement = Placement::TableRowWise { cut: RowCut::Modulo, node: Some(number % NODES) };
        let exchange = Some(Exchange::Reduce { over: Path::Hierarchical });
        builder = builder.table(table.name(), PlaceOptions { exchange, ..placement.into() });
    }
    builder.build(workload.tables()).expect("valid")
}

const WORKLOADS: [&str; 4] = [DCNV2, T180, T200, T510];

#[test]
fn table_row_wise_plans_exchange_the_published_bytes_between_nodes() {
    for (name, expected) in WORKLOADS.into_iter().zip([6.80, 64.61, 55.43, 130.46]) {
        let workload = published(name);
        let (mean, max) = megabytes(&table_row_wise(&workload), &workload);
        eprintln!("{name}: table-row-wise {mean:.2} MB a rank, heaviest {max:.2}");
        assert!((mean / expected - 1.0).abs() < 0.01, "{name}: {mean} MB, published {expected}");
    }
}

#[test]
fn clusters_chosen_by_bytes_are_those_of_the_published_best_mix() {
    let mixes =
        [(11, 11, 4, 4.03), (40, 137, 0, 53.48), (30, 90, 80, 40.76), (100, 40, 370, 72.85)];
    for (name, (copies, sums, rows, expected)) in WORKLOADS.into_iter().zip(mixes) {
        let workload = published(name);
        let topology = machines(NODES);
        let task = task(&workload, &topology);
        let embark = planner(EmbarkSearch::Converged, EmbarkClusters::Bytes);
        let plan = embark.plan(&task).expect("fits");
        assert!(rank_bytes(&plan).into_iter().all(|bytes| bytes <= 60_000_000_000));
        let count = |matches: fn(Exchange) -> bool| {
            let tiers = plan.placed().as_slice().iter().map(|placed| placed.tiers[0].exchange);
            tiers.filter(|&exchange| matches(exchange)).count()
        };
        let local = count(|exchange| exchange == Exchange::Local);
        let reduce = count(|exchange| matches!(exchange, Exchange::Reduce { .. }));
        let unique = count(|exchange| matches!(exchange, Exchange::Unique { .. }));
        assert_eq!((local, reduce, unique), (copies, sums, rows), "{name}");
        // The published mix counts every table's ids once, so it is compared with whole tables.
        let (whole, _) = megabytes(&with_whole_tables(&plan, &workload), &workload);
        let (mean, max) = megabytes(&plan, &workload);
        eprintln!(
            "{name}: embark {mean:.2} MB a rank, heaviest {max:.2}; uncut {whole:.2}, published \
             {expected}"
        );
        assert!((whole / expected - 1.0).abs() < 0.01, "{name}: {whole} MB, published {expected}");
        assert!(mean <= megabytes(&table_row_wise(&workload), &workload).0);
    }
}

/// The same clusters, with tables whose sums travel as table-row-wise plans have them.
fn with_whole_tables(plan: &Plan, workload: &Workload) -> Plan {
    let baseline = table_row_wise(workload);
    let tables = plan.placed().as_slice().iter().zip(baseline.placed().as_slice());
    let tables = tables.map(|(own, whole)| match own.tiers[0].exchange {
        Exchange::Reduce { .. } => whole.clone(),
        _ => own.clone(),
    });
    let (world, node_ranks) = (plan.world(), plan.node_ranks());
    let spec = emb_shard::PlanSpec { world, node_ranks, tables: tables.collect() };
    Plan::new(workload.tables(), spec).expect("valid")
}
