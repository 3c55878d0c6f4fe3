//! The published figures of `FlexShard` from plans alone: every sum here goes over rows one by one.

use crate::common::{machines, one_sequence, tiers, zipf};
use emb_shard::{
    Exchange, FlexShardPlanner, Id, Layout, Mesh, Plan, Planner, Rank, ReplicaSync, TableId, Task,
    Topology,
};

const NODES: f64 = 16.0;
const NODE_RANKS: f64 = 8.0;
const WORLD: f64 = NODES * NODE_RANKS;
/// Links inside a node are so much faster.
const RATIO: f64 = 12.0;
const DIM: usize = 128;
const ROWS: u64 = 10_000_000;

/// What the rows of one tier are to the ranks: how many, and what part of the look-ups.
#[derive(Clone, Copy, Default)]
struct Tiered {
    rows: f64,
    share: f64,
}

/// Row counts and shares of the replicated, in-node and last tier.
fn measured(plan: &Plan, probabilities: &[f64]) -> [Tiered; 3] {
    let mut found = [Tiered::default(); 3];
    for (rows, group) in tiers(plan) {
        let at = [1, 8, 128].iter().position(|&known| known == group).expect("a known tier");
        let range = rows.start() as usize..rows.end() as usize;
        found[at].rows += rows.rows() as f64;
        found[at].share += probabilities[range].iter().sum::<f64>();
    }
    found
}

/// Vectors a rank sends in a step over the network and inside its node, each direction and its
/// gradient: the all-to-alls of the last two tiers, dense all-reduces of the first two.
fn vectors([replicated, in_node, rest]: [Tiered; 3], lookups: f64) -> (f64, f64) {
    let network = 2.0 * lookups * rest.share * (NODES - 1.0) / NODES
        + 2.0 * (NODES - 1.0) / (NODES * NODE_RANKS) * (replicated.rows + in_node.rows);
    let inside = 2.0 * lookups * rest.share * (NODE_RANKS - 1.0) / WORLD
        + 2.0 * lookups * in_node.share * (NODE_RANKS - 1.0) / NODE_RANKS
        + 2.0 * (NODE_RANKS - 1.0) / NODE_RANKS * replicated.rows;
    (network, inside)
}

/// Weights, state and buffers of a rank in bytes where all owners are asked for the same.
///
/// Each row that travels is kept `copies` times with an id each; replicas sum gradients of a row
/// each. Rows have 4 bytes of state.
fn memory([replicated, in_node, rest]: [Tiered; 3], lookups: f64, copies: f64) -> f64 {
    let (row, id) = (4.0 * DIM as f64, 8.0);
    let own = replicated.rows + in_node.rows / NODE_RANKS;
    let stored = own + rest.rows / WORLD;
    let travelling = lookups * (in_node.share + rest.share);
    stored * (row + 4.0) + own * row + copies * travelling * (row + id)
}

/// Machines with the memory that a row-wise plan takes: a look-up's row and its gradient are kept
/// as sent and as received, its id as sent and as received.
fn as_much_as_row_wise(lookups: u64) -> Topology {
    let (row, id) = (4 * DIM as u64, 8);
    let bytes = ROWS / 128 * (row + 4) + lookups * (4 * row + 2 * id);
    machines(16, 8, RATIO, bytes)
}

struct Figures {
    off: f64,
    faster: f64,
    network: f64,
    extra_rows: f64,
    saved_vectors: f64,
}

/// `fewest_copies` is the strictest count of buffers in which the plan takes no more memory.
fn figures(exponent: f64, lookups: u64, fewest_copies: f64) -> Figures {
    let workload = one_sequence(exponent, ROWS, DIM, lookups);
    let topology = as_much_as_row_wise(lookups);
    let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology)).expect("fits");
    let probabilities = zipf(exponent, ROWS);
    let lookups = lookups as f64;
    let flex = measured(&plan, &probabilities);
    let all = Tiered { rows: ROWS as f64, share: 1.0 };
    let base = [Tiered::default(), Tiered::default(), all];
    let seconds = |(network, inside)| network + inside / RATIO;
    let (tiered, whole) = (vectors(flex, lookups), vectors(base, lookups));
    for copies in [fewest_copies, 4.0] {
        let (flex, base) = (memory(flex, lookups, copies), memory(base, lookups, copies));
        assert!(flex <= base, "{flex} bytes for {base} of row-wise, {copies} copies");
    }
    let [replicated, in_node, rest] = flex;
    let found = Figures {
        off: 1.0 - rest.share,
        faster: seconds(whole) / seconds(tiered),
        network: whole.0 / tiered.0,
        extra_rows: replicated.rows + in_node.rows / NODE_RANKS + rest.rows / WORLD
            - ROWS as f64 / WORLD,
        saved_vectors: lookups * replicated.share,
    };
    eprintln!(
        "Zipf {exponent}, {lookups} look-ups a rank: {:.2} % off the global exchange, {:.3} x the \
         time, {:.3} x the bytes between nodes, {} replicated and {} in-node rows, {:.0} rows a \
         rank more, {:.0} look-ups in no exchange",
        100.0 * found.off,
        found.faster,
        found.network,
        replicated.rows,
        in_node.rows,
        found.extra_rows,
        found.saved_vectors,
    );
    found
}

#[test]
fn flexshard_takes_six_sevenths_of_lookups_off_the_network_and_is_five_times_as_fast() {
    // A single copy of what travels is what the published simulation counts.
    let found = figures(1.05, 1_020_000, 1.0);
    assert!((found.off - 0.859).abs() <= 0.003, "{}", found.off);
    assert!((found.faster - 5.2).abs() <= 0.15, "{}", found.faster);
    // Replicas cost less memory than the buffers that they spare.
    assert!(found.extra_rows < 0.15 * found.saved_vectors);
}

#[test]
fn more_skew_pays_more_and_little_skew_little() {
    let steep = figures(1.2, 102_400, 1.0);
    assert!((steep.off - 0.908).abs() <= 0.003, "{}", steep.off);
    assert!((steep.faster - 8.2).abs() <= 0.15, "{}", steep.faster);
    let flat = figures(0.8, 102_400, 2.0);
    assert!((flat.off - 0.33).abs() <= 0.01, "{}", flat.off);
    assert!((flat.faster - 1.3).abs() <= 0.05, "{}", flat.faster);
}

#[test]
fn tiers_are_groups_of_one_of_a_node_and_of_all() {
    let workload = one_sequence(1.05, ROWS, DIM, 1_020_000);
    let topology = as_much_as_row_wise(1_020_000);
    let plan = FlexShardPlanner::default().plan(&Task::new(&workload, &topology)).expect("fits");
    let table = &plan.placed()[TableId::new(0)];
    assert!(table.order.is_none());
    let [replicated, in_node, rest] = table.tiers.as_slice() else { panic!("three tiers") };
    assert_eq!((replicated.exchange, replicated.sync), (Exchange::Local, ReplicaSync::Gradients));
    assert_eq!(in_node.mesh, Mesh::new(128, 8, Layout::Contiguous).expect("divides"));
    assert_eq!((in_node.exchange, in_node.sync), (Exchange::Rows, ReplicaSync::Gradients));
    assert_eq!((rest.exchange, rest.sync), (Exchange::Rows, ReplicaSync::None));
    // A hot row is on every rank, a warm one on the same rank of every node.
    let id = TableId::new(0);
    let asker = Rank::new(77);
    assert_eq!(plan.owner_for(asker, id, 0, 0).expect("exists"), asker);
    let warm = plan.owner_for(asker, id, in_node.rows.start() + 3, 0).expect("exists");
    assert_eq!(warm.index(), 72 + 3);
    let cold = plan.owner_for(asker, id, rest.rows.start() + 130, 0).expect("exists");
    assert_eq!(cold.index(), 2);
}
