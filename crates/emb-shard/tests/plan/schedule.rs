//! The collectives of a step: few, in one order, over ranks that agree.

use crate::common::{sequence, table, tables};
use emb_shard::{
    Exchange, Layout, Mesh, Operation, Path, Payload, Per, PlaceOptions, Placement, Plan,
    PlanBuilder, Rank, ReplicaSync, RowCut, Scope, Stage,
};
use std::num::NonZeroU32;

const ROW_WISE: Placement = Placement::RowWise { cut: RowCut::Ceil };

fn plan(count: usize, options: impl Fn(usize) -> PlaceOptions) -> Plan {
    let mesh = Mesh::new(8, 4, Layout::Contiguous).expect("divides");
    let mut builder = PlanBuilder::new(mesh).node_ranks(2);
    let mut made = Vec::new();
    for number in 0..count {
        let name = format!("t{number}");
        builder = builder.table(&name, options(number));
        made.push(if number % 2 == 0 { table(&name, 9, 6, 1.0) } else { sequence(&name, 9, 6) });
    }
    builder.build(&tables(made)).expect("valid")
}

#[test]
fn the_number_of_collectives_does_not_depend_on_the_number_of_tables() {
    let small = plan(2, |_| ROW_WISE.into()).schedule();
    let large = plan(200, |_| ROW_WISE.into()).schedule();
    assert_eq!(small, large);
    // Two kinds of exchange of four collectives each, one sync.
    assert_eq!(small.collectives().len(), 9);
}

#[test]
fn stages_run_in_order_and_gradients_are_combined_before_owners_agree() {
    let plan = plan(2, |_| PlaceOptions {
        sync: Some(ReplicaSync::Gradients),
        ..Placement::ColumnWise { parts: None }.into()
    });
    let schedule = plan.schedule();
    let stages: Vec<Stage> = schedule.collectives().iter().map(|one| one.stage).collect();
    assert!(stages.is_sorted());
    let late = schedule.collectives().iter().filter(|one| one.stage > Stage::Backward);
    let late: Vec<_> = late.map(|one| (one.scope, one.operation, one.payload)).collect();
    assert_eq!(
        late,
        [
            (Scope::Replicas, Operation::AllGather, Payload::Counts),
            (Scope::Replicas, Operation::AllGather, Payload::TouchedRows),
            (Scope::Replicas, Operation::AllReduce, Payload::Gradients),
            (Scope::Group, Operation::AllToAll, Payload::RowStatistics),
            (Scope::Group, Operation::AllToAll, Payload::RowStatistics),
        ]
    );
}

#[test]
fn a_sync_every_three_steps_runs_after_every_third() {
    let every = NonZeroU32::new(3).expect("not zero");
    let sync = Some(ReplicaSync::TouchedRows { every });
    let schedule = plan(1, |_| PlaceOptions { sync, ..ROW_WISE.into() }).schedule();
    let counts: Vec<usize> = (0..7).map(|step| schedule.of_step(step).count()).collect();
    assert_eq!(counts, [4, 4, 7, 4, 4, 7, 4]);
}

#[test]
fn data_parallel_tables_exchange_nothing_and_sum_gradients() {
    let schedule = plan(1, |_| Placement::DataParallel.into()).schedule();
    assert!(schedule.collectives().iter().all(|one| one.stage == Stage::Combine));
    assert_eq!(schedule.collectives().len(), 3);
}

#[test]
fn every_rank_sees_the_same_peers_as_its_peers_and_nodes_stay_on_machines() {
    let exchange = |number| {
        Some(match number {
            0 => Exchange::Reduce { over: Path::Hierarchical },
            _ => Exchange::Unique { per: Per::Node },
        })
    };
    let plan = plan(2, |number| PlaceOptions { exchange: exchange(number), ..ROW_WISE.into() });
    let schedule = plan.schedule();
    let scopes = [Scope::Group, Scope::Node, Scope::Rail, Scope::Replicas];
    for scope in scopes {
        assert!(schedule.collectives().iter().any(|one| one.scope == scope), "{scope:?}");
    }
    for collective in schedule.collectives() {
        for rank in (0..8).map(Rank::new) {
            let peers = plan.peers(collective, rank).expect("in range");
            assert!(peers.contains(&rank) && peers.is_sorted());
            for &peer in &peers {
                assert_eq!(plan.peers(collective, peer).expect("in range"), peers);
            }
            if collective.scope == Scope::Node {
                assert!(peers.iter().all(|peer| peer.get() / 2 == rank.get() / 2));
            }
        }
    }
    let rail = schedule.collectives().iter().find(|one| one.scope == Scope::Rail);
    let peers = plan.peers(rail.expect("hierarchical"), Rank::new(5)).expect("in range");
    assert_eq!(peers, [5, 7].map(Rank::new));
}
