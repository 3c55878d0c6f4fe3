//! Where embedding rows live, and where they should.
//!
//! The questions every sharded run asks are answered here without a device, a transport or a
//! file: what the tables are ([`Table`], [`Tables`]), which ranks hold copies of one another
//! ([`Mesh`]), which owner has which row ([`RowMap`]), and where every cell of every table lives
//! ([`Plan`]). What a plan will cost ([`StepModel`]) depends on three more: how often every row is
//! looked up ([`RowFrequencies`]), what the machines are ([`Topology`]), and what a step asks of
//! both ([`Workload`]). With these a [`Planner`] chooses.
//!
//! ```text
//!   Tables   [name, rows, dim, ...]            what there is
//!   Mesh     rank <-> (group, replica set)     who works together
//!   RowMap   global row <-> (owner, local row) who has what
//!
//!   Access   rows by frequency rank            how often a row is looked up
//!   Topology levels of links, memory, flops    what the ranks run on
//!   Workload Tables + Access + batch + types   what a step asks for
//!
//!   PlanBuilder --placements--+
//!   PlanFile -----------------+--> PlanSpec --checked--> Plan --> shards of a rank, owner of a cell
//!                                                          +----> Report    bytes and work by rank
//!                                                          +----> Schedule  collectives of a step
//!   ids of a batch --RowMap--> Routed          who is asked
//!
//!   Workload + Topology + Constraints --> Task --Planner--> Plan
//!   Plan + Workload + Topology --StepModel--> Estimate      seconds, bytes, memory by rank
//! ```
//!
//! **The idea of a plan**: a block of rows (a [`Tier`]) is stored once in every group of `g` ranks.
//! Inside the group it is cut into rows x columns with owners; across the `W/g` groups it is
//! replicated and kept equal by a [`ReplicaSync`]. `g = W` is a sharded table, `g = 1` a
//! data-parallel one, `g = S` between them is 2D sparse parallelism, and a table of several tiers
//! keeps its hot rows closer than its cold ones.
//!
//! A value of these types exists only if it is consistent: constructors check and return
//! [`Error`], fields are private, and nothing can be changed afterwards.
//!
//! **It knows nothing of** devices, transports, training or files.
//!
//! ```
//! use emb_shard::{Layout, Mesh, Rank, RowMap};
//!
//! let mesh = Mesh::new(8, 4, Layout::Strided)?;
//! let group = mesh.group_of(Rank::new(5))?;
//! let ranks: Vec<u32> = mesh.group_members(group)?.map(Rank::get).collect();
//! assert_eq!(ranks, [1, 3, 5, 7]);
//!
//! // A table of ten rows, cut over the four ranks of a group.
//! let map = RowMap::even(10, ranks.len())?;
//! let place = map.locate(6)?;
//! assert_eq!((place.owner, place.local), (2, 0));
//! assert_eq!(map.global(2, 0)?, 6);
//! # Ok::<(), emb_shard::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ids;
mod nearest;
mod typed_vec;

mod mesh;
mod nodes;
mod row_map;
mod table;

mod access;
mod topology;
mod workload;

mod build;
mod cost;
mod plan;
mod planner;
mod preset;
mod report;
mod route;
mod schedule;

mod error;

pub use access::{Access, Bucket, Histogram, RowFrequencies};
pub use build::{AutoOptions, DoesNotFit, PlaceOptions, Placement, PlanBuilder, RowCut};
pub use cost::{
    ByLink, CostModel, CostOptions, Duplicates, EmbarkBucketCost, EmbarkBuckets, EmbarkCost,
    EmbarkModel, Estimate, GradientSum, GroupSpread, Ledger, LevelBytes, Overlap, Parts, PeakBytes,
    RankEstimate, ReplicaWay, StepModel, TierCut, TierTraffic, TieredLookups,
};
pub use error::Error;
pub use ids::{
    Bytes, ColRange, FeatureId, GroupId, Id, LevelId, NodeId, Rank, ReplicaId, RowRange, TableId,
};
pub use mesh::{Layout, Mesh};
pub use nearest::nearest;
pub use nodes::NodeSplit;
pub use plan::{
    Block, Cell, Exchange, ExchangeClass, HotRowsShort, MAX_WORLD, Owners, Path, Per, Plan,
    PlanFault, PlanFile, PlanSpec, ReplicaSync, RowOrder, RowOrderKind, Shard, SyncClass,
    TablePlan, Tier,
};
pub use planner::{
    Alternative, Beam, Constraints, EmbarkClusters, EmbarkOptions, EmbarkPlanner, EmbarkSearch,
    Explanation, FlexShardPlanner, Greedy, GreedyBy, Kind, Lattice, Objective, Planned, Planner,
    Random, TableExplanation, TableRowWise, Task, TierBytes, TierKind, TierSolution, TierSolver,
    TieredTable, TorchRec, TorchRecConstants, Travel, baselines, explain,
};
pub use preset::{Input, Preset};
pub use report::{RankLoad, Report};
pub use route::Routed;
pub use row_map::{Place, RowMap, RowMapKind};
pub use schedule::{Collective, Operation, Payload, Schedule, Scope, Stage};
pub use table::{PartBytes, Pooling, StateBytes, Table, TableOptions, Tables};
pub use topology::{Level, LevelSpec, LinkFit, Topology, TopologySpec, UnitRanks};
pub use typed_vec::TypedVec;
pub use workload::{
    Batch, DenseModel, DenseTime, IdType, TableSpec, ValueType, Workload, WorkloadRow, WorkloadSpec,
};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs the examples of the README with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
