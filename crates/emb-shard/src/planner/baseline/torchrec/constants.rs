//! The constants of `TorchRec`'s planner: [`TorchRecConstants`].

/// What `TorchRec` takes machines and kernels to be: `torchrec/distributed/planner/constants.py` at
/// commit 143c144. Bandwidths there are GiB/s, and "empirical studies" where no other source is
/// given here.
///
/// Its planner knows no other machine unless its user says so; nor does this one. Measure, and set
/// them, where it matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TorchRecConstants {
    /// Bytes a second between ranks of a node: `INTRA_NODE_BANDWIDTH`, 600 GiB/s.
    pub node_bandwidth: f64,
    /// Bytes a second between nodes: `CROSS_NODE_BANDWIDTH`, 12.5 GiB/s.
    pub network_bandwidth: f64,
    /// Bytes a second of the memory of a rank: `HBM_MEM_BW`, 897 GiB/s.
    pub memory_bandwidth: f64,
    /// Part of it that the kernel of data-parallel tables reaches: `kernel_bw_lookup`, `DENSE`.
    pub dense_kernel: f64,
    /// Bytes of an id: `BIGINT_DTYPE`.
    pub id_bytes: f64,
    /// Columns that use a kernel fully: `FULL_BLOCK_EMB_DIM`, 32 threads of four values.
    pub full_columns: usize,
    /// Slowdown below `full_columns`: `HALF_BLOCK_PENALTY`.
    pub half_penalty: f64,
    /// Slowdown below half of `full_columns`: `QUARTER_BLOCK_PENALTY`.
    pub quarter_penalty: f64,
    /// Columns that a lookup reads at least (`_get_tw_sharding_perf`).
    pub least_columns: usize,
    /// Backward over forward computation: `BWD_COMPUTE_MULTIPLIER`.
    pub backward: f64,
    /// Times that gathered gradients pass through memory: `BATCHED_COPY_PERF_FACTOR`.
    pub batched_copy: f64,
    /// Times that an update of a data-parallel table passes through memory:
    /// `DP_ELEMENTWISE_KERNELS_PERF_FACTOR`.
    pub dense_update: f64,
    /// Fewest columns of a column block, unless [`Constraints`](crate::Constraints) say otherwise:
    /// `MIN_CW_DIM`.
    pub min_columns: usize,
    /// Most plans that are tried one by one: `MAX_PROPOSALS` of `proposers.py`.
    pub max_proposals: u64,
}

const GIB: f64 = (1_u64 << 30) as f64;

impl Default for TorchRecConstants {
    fn default() -> Self {
        Self {
            node_bandwidth: 600.0 * GIB,
            network_bandwidth: 12.5 * GIB,
            memory_bandwidth: 897.0 * GIB,
            dense_kernel: 0.5,
            id_bytes: 8.0,
            full_columns: 128,
            half_penalty: 1.15,
            quarter_penalty: 1.75,
            least_columns: 32,
            backward: 2.0,
            batched_copy: 2.455,
            dense_update: 9.22,
            min_columns: 128,
            max_proposals: 10_000,
        }
    }
}
