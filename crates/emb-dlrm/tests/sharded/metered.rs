//! Bytes that collectives count, and those that the cost model predicts.

use emb_comm::{Local, Meter};
use emb_dlrm::sharded::ShardedEmbeddings;
use emb_kernels::Cpu;
use emb_shard::{
    CostModel, CostOptions, Estimate, LevelBytes, LevelSpec, Plan, RankEstimate, StepModel,
    Topology, TopologySpec, UnitRanks, Workload,
};

/// Bytes that a rank receives in a step, in its node and from other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bytes {
    /// Ids, sums or rows, gradients.
    pub(crate) exchanged: [f64; 2],
    /// Among replicas.
    pub(crate) synced: [f64; 2],
}

/// One of the kinds of bytes.
pub(crate) type OneKind = fn(&Bytes) -> f64;

/// Bytes by what they are for and how far they go.
pub(crate) const KINDS: [(&str, OneKind); 4] = [
    ("exchanged inside nodes", |bytes| bytes.exchanged[0]),
    ("exchanged between nodes", |bytes| bytes.exchanged[1]),
    ("synced inside nodes", |bytes| bytes.synced[0]),
    ("synced between nodes", |bytes| bytes.synced[1]),
];

impl Bytes {
    /// From other nodes, whatever for.
    pub(crate) fn inter_node(&self) -> f64 {
        self.exchanged[1] + self.synced[1]
    }
}

/// The mean over the ranks.
pub(crate) fn mean(ranks: &[Bytes], of: impl Fn(&Bytes) -> f64) -> f64 {
    ranks.iter().map(of).sum::<f64>() / ranks.len() as f64
}

/// What this rank's collectives have counted in a step, the mean of `steps` steps.
pub(crate) fn counted(sharded: &ShardedEmbeddings<Cpu, Local>, steps: usize) -> Bytes {
    let bytes = |meter: Meter| {
        [meter.intra_node_bytes, meter.inter_node_bytes].map(|bytes| bytes as f64 / steps as f64)
    };
    Bytes { exchanged: bytes(sharded.exchanged()), synced: bytes(sharded.synced()) }
}

/// What the cost model says of a step of the plan, with the collectives of training here.
pub(crate) fn estimate(plan: &Plan, workload: &Workload, topology: &Topology) -> Estimate {
    let model = StepModel { options: CostOptions::of_emb_train() };
    model.estimate(plan, workload, topology).expect("the plan's workload")
}

/// The bytes of every rank in an estimate.
pub(crate) fn predicted(estimate: &Estimate) -> Vec<Bytes> {
    let received = |levels: &[LevelBytes]| [levels[0].received, levels[1].received];
    let bytes = |rank: &RankEstimate| Bytes {
        exchanged: received(&rank.exchanged),
        synced: received(&rank.synced),
    };
    estimate.ranks.iter().map(bytes).collect()
}

/// Threads that count as nodes of `node_ranks` ranks, with so much memory a rank.
pub(crate) fn topology(world: u32, node_ranks: u32, memory_bytes: u64) -> Topology {
    let level = |name: &str, ranks, bandwidth| LevelSpec {
        name: name.to_owned(),
        ranks: UnitRanks::Equal(ranks),
        bandwidth,
        latency: 1e-6,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    let spec = TopologySpec {
        name: "threads".into(),
        ranks: world,
        memory_bytes,
        memory_bandwidth: 1e12,
        flops: 1e12,
        // Links inside nodes are a dozen times as fast, as in a DGX A100.
        levels: vec![level("node", node_ranks, 3e11), level("cluster", world, 2.5e10)],
    };
    Topology::new(spec).expect("a topology")
}
