//! The collectives of a training step as data: [`Schedule`].

use crate::{Exchange, NodeSplit, Path, Per, Plan, Rank, ReplicaSync, Result};
use std::num::NonZeroU32;

/// When in a training step a collective runs; in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Ids go to their owners.
    Route,
    /// Rows or partial sums come back.
    Forward,
    /// After the lookup: fully sharded replicas give up what is not their own part.
    Release,
    /// Before the backward pass: fully sharded replicas gather their rows.
    Gather,
    /// Gradients go to the owners.
    Backward,
    /// Gradients of replicas are summed.
    Combine,
    /// Owners of one row agree before the update rule runs.
    Update,
    /// Replicas are made equal after the update.
    Sync,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Every rank sends each other rank a part of its own length.
    AllToAll,
    /// Every rank gets the sum (or mean) of all.
    AllReduce,
    /// Every rank gets the parts of all.
    AllGather,
    /// Every rank gets its part of the sum (or mean) of all.
    ReduceScatter,
}

/// What a collective carries, for all tiers of its class at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// How much follows, for each peer.
    Counts,
    /// Ids, with the lengths of bags where they are pooled by owners.
    Ids,
    /// Pooled sums.
    Pooled,
    /// Rows.
    Rows,
    /// Gradients of what came forward.
    Gradients,
    /// One `f64` a touched row: only for row-wise update rules over cut columns.
    RowStatistics,
    /// Ids of rows touched since the last sync.
    TouchedRows,
    /// Weights and optimizer state.
    Weights,
}

/// The ranks among which a collective runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The sharding group of a rank.
    Group,
    /// The ranks of its group on its node.
    Node,
    /// The ranks of its group with its index on their nodes.
    Rail,
    /// The ranks that hold the same shards, one of every group.
    Replicas,
}

/// One collective of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collective {
    /// When.
    pub stage: Stage,
    /// What for: position in [`Plan::sync_classes`] where the scope is [`Scope::Replicas`], else in
    /// [`Plan::exchange_classes`].
    pub class: usize,
    /// Among whom.
    pub scope: Scope,
    /// How.
    pub operation: Operation,
    /// What.
    pub payload: Payload,
    /// Steps between two runs; 1 for every step.
    pub every: NonZeroU32,
}

/// All collectives of a step over embeddings, in the one order that every rank runs them in.
///
/// Their number depends on the kinds of exchanges and syncs in the plan, not on the number of
/// tables. Collectives of the dense model are not among them.
///
/// An executor may run the stages of one class before those of the next, as long as every rank does,
/// and may sum gradients of replicas in another way with the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    collectives: Vec<Collective>,
}

impl Plan {
    /// The collectives of a step.
    pub fn schedule(&self) -> Schedule {
        let mut collectives = Vec::new();
        for (number, class) in self.exchange_classes().iter().enumerate() {
            let steps = exchange(class.exchange);
            collectives.extend(steps.iter().map(|&step| every_step(number, step)));
            if class.columns_cut && class.mesh.group_ranks() > 1 {
                let step =
                    (Stage::Update, Scope::Group, Operation::AllToAll, Payload::RowStatistics);
                collectives.push(every_step(number, step));
            }
        }
        for (number, class) in self.sync_classes().iter().enumerate() {
            let (every, steps) = sync(class.sync);
            let steps = steps.iter().map(|&step| every_step(number, step));
            collectives.extend(steps.map(|step| Collective { every, ..step }));
        }
        // Stable: classes stay in their order within a stage.
        collectives.sort_by_key(|collective| collective.stage);
        Schedule { collectives }
    }

    /// The ranks with which `rank` runs a collective of the schedule, itself included, ascending.
    ///
    /// # Errors
    /// A rank outside the world.
    ///
    /// # Panics
    /// A collective of another plan.
    pub fn peers(&self, collective: &Collective, rank: Rank) -> Result<Vec<Rank>> {
        let of_sync = matches!(collective.scope, Scope::Replicas);
        let mesh = if of_sync {
            self.sync_classes()[collective.class].mesh
        } else {
            self.exchange_classes()[collective.class].mesh
        };
        let split = || {
            let split = NodeSplit::new(mesh, self.node_ranks())?;
            Ok(split.expect("invariant: exchanges by node are planned only over even nodes"))
        };
        Ok(match collective.scope {
            Scope::Group => mesh.group_members(mesh.group_of(rank)?)?.collect(),
            Scope::Replicas => mesh.replica_members(mesh.replica_set_of(rank)?)?.collect(),
            Scope::Node => {
                let split: Result<NodeSplit> = split();
                split?.node_of(rank)?.collect()
            }
            Scope::Rail => {
                let split: Result<NodeSplit> = split();
                split?.rail_of(rank)?.collect()
            }
        })
    }
}

impl Schedule {
    /// The collectives in order.
    pub fn collectives(&self) -> &[Collective] {
        &self.collectives
    }

    /// Those that run in step `step`, counted from 0: a sync every `k` steps runs after steps
    /// `k - 1`, `2k - 1`, ..
    pub fn of_step(&self, step: u64) -> impl Iterator<Item = &Collective> {
        let due = move |collective: &&Collective| {
            (step % u64::from(collective.every.get())) + 1 == u64::from(collective.every.get())
        };
        self.collectives.iter().filter(due)
    }
}

type Step = (Stage, Scope, Operation, Payload);

fn every_step(class: usize, (stage, scope, operation, payload): Step) -> Collective {
    Collective { stage, class, scope, operation, payload, every: NonZeroU32::MIN }
}

fn exchange(exchange: Exchange) -> &'static [Step] {
    use Operation::AllToAll;
    use Payload::{Counts, Gradients, Ids, Pooled, Rows};
    use Scope::{Group, Node, Rail};
    use Stage::{Backward, Forward, Route};
    match exchange {
        Exchange::Local => &[],
        Exchange::Reduce { over: Path::Flat } => &[
            (Route, Group, AllToAll, Counts),
            (Route, Group, AllToAll, Ids),
            (Forward, Group, AllToAll, Pooled),
            (Backward, Group, AllToAll, Gradients),
        ],
        // Partial sums for the ranks of a rail meet on one rank of the node, then leave it.
        Exchange::Reduce { over: Path::Hierarchical } => &[
            (Route, Group, AllToAll, Counts),
            (Route, Group, AllToAll, Ids),
            (Forward, Node, AllToAll, Pooled),
            (Forward, Rail, AllToAll, Pooled),
            (Backward, Rail, AllToAll, Gradients),
            (Backward, Node, AllToAll, Gradients),
        ],
        Exchange::Unique { per: Per::Rank } | Exchange::Rows => &[
            (Route, Group, AllToAll, Counts),
            (Route, Group, AllToAll, Ids),
            (Forward, Group, AllToAll, Rows),
            (Backward, Group, AllToAll, Gradients),
        ],
        // Ids for owners on one rail meet on its rank of the node, where duplicates end.
        Exchange::Unique { per: Per::Node } => &[
            (Route, Node, AllToAll, Counts),
            (Route, Node, AllToAll, Ids),
            (Route, Rail, AllToAll, Counts),
            (Route, Rail, AllToAll, Ids),
            (Forward, Rail, AllToAll, Rows),
            (Forward, Node, AllToAll, Rows),
            (Backward, Node, AllToAll, Gradients),
            (Backward, Rail, AllToAll, Gradients),
        ],
    }
}

fn sync(sync: ReplicaSync) -> (NonZeroU32, &'static [Step]) {
    use Operation::{AllGather, AllReduce, ReduceScatter};
    use Scope::Replicas;
    use Stage::{Combine, Gather, Release, Sync};
    let one = NonZeroU32::MIN;
    match sync {
        ReplicaSync::None => (one, &[]),
        ReplicaSync::Weights { every } => (every, &[(Sync, Replicas, AllReduce, Payload::Weights)]),
        ReplicaSync::TouchedRows { every } => (
            every,
            &[
                (Sync, Replicas, AllGather, Payload::Counts),
                (Sync, Replicas, AllGather, Payload::TouchedRows),
                (Sync, Replicas, AllReduce, Payload::Weights),
            ],
        ),
        ReplicaSync::Gradients => (
            one,
            &[
                (Combine, Replicas, AllGather, Payload::Counts),
                (Combine, Replicas, AllGather, Payload::TouchedRows),
                (Combine, Replicas, AllReduce, Payload::Gradients),
            ],
        ),
        ReplicaSync::FullyShardedReplicas => (
            one,
            &[
                (Release, Replicas, ReduceScatter, Payload::Weights),
                (Gather, Replicas, AllGather, Payload::Weights),
            ],
        ),
    }
}
