//! What `TorchRec` expects a shard to cost: [`Estimator`].
//!
//! Formulas of `torchrec/distributed/planner/shard_estimators.py` at commit 1ebe0af, for kernels
//! that keep tables in the memory of the rank, features without weights and training. Symbols as
//! there: `b` samples of a rank, `W` ranks, `L` ranks of a node, `e` columns of the shard.

use super::TorchRecConstants;
use super::options::Way;
use crate::{Pooling, Table};

/// What the formulas ask of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    pub(super) constants: TorchRecConstants,
    /// `W`
    pub(super) ranks: f64,
    /// `L`
    pub(super) node_ranks: f64,
    /// `b`
    pub(super) samples: f64,
    /// Bytes of a value on the wire.
    pub(super) wire: f64,
}

/// Seconds of one shard in a step. Its ids' way is not counted, as in the original's rating.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seconds {
    pub(super) forward_compute: f64,
    pub(super) forward_exchange: f64,
    pub(super) backward_compute: f64,
    pub(super) backward_exchange: f64,
}

impl Seconds {
    pub(super) fn total(self) -> f64 {
        let forward = self.forward_compute + self.forward_exchange;
        forward + self.backward_compute + self.backward_exchange
    }
}

/// Bytes that a shard reads and writes in a forward pass.
struct Traffic {
    ids: f64,
    lookups: f64,
    /// Values that it makes, for each byte of a value.
    outputs: f64,
}

impl Traffic {
    /// Ids and rows that are read, outputs of `element` bytes a value that are written.
    fn bytes(&self, element: f64) -> f64 {
        self.ids + self.lookups + self.outputs * element
    }
}

impl Estimator {
    /// Seconds of a shard of `columns` columns; `rows` matter to data-parallel tables alone.
    pub(super) fn seconds(&self, table: &Table, way: Way, columns: usize) -> Seconds {
        match way {
            Way::DataParallel => self.data_parallel(table),
            Way::TableWise | Way::ColumnWise | Way::TableColumnWise => {
                self.whole_rows(table, columns)
            }
            Way::RowWise | Way::TableRowWise | Way::Grid => self.cut_rows(table, way, columns),
        }
    }

    /// `_get_tw_sharding_perf`
    fn whole_rows(&self, table: &Table, columns: usize) -> Seconds {
        let known = &self.constants;
        let mut traffic = self.traffic(table, Way::TableWise, columns);
        // A lookup reads at least so many columns.
        let least = known.least_columns.max(columns) as f64;
        traffic.lookups *= least / columns as f64;
        let penalty = match columns {
            _ if columns >= known.full_columns => 1.0,
            _ if columns >= known.full_columns / 2 => known.half_penalty,
            _ => known.quarter_penalty,
        };
        let exchange = traffic.outputs * self.wire / self.bandwidth();
        let forward_compute = traffic.bytes(self.wire) * penalty / known.memory_bandwidth;
        Seconds {
            forward_compute,
            forward_exchange: exchange,
            backward_compute: forward_compute * known.backward,
            backward_exchange: exchange,
        }
    }

    /// `_get_rw_sharding_perf` and `_get_twrw_sharding_perf`, which also serves grids.
    fn cut_rows(&self, table: &Table, way: Way, columns: usize) -> Seconds {
        let known = &self.constants;
        let traffic = self.traffic(table, way, columns);
        let outputs = traffic.outputs * self.wire;
        let exchange = if way == Way::RowWise {
            outputs / self.bandwidth()
        } else {
            // Inside the node first, then one of its ranks for each sample between nodes.
            let nodes = self.ranks / self.node_ranks;
            let between = if nodes > 1.0 {
                outputs / self.ranks * nodes / known.network_bandwidth
            } else {
                0.0
            };
            outputs / known.node_bandwidth + between
        };
        let forward_compute = traffic.bytes(self.wire) / known.memory_bandwidth;
        let copy = outputs * known.batched_copy / known.memory_bandwidth;
        Seconds {
            forward_compute,
            forward_exchange: exchange,
            backward_compute: forward_compute * known.backward,
            backward_exchange: exchange + copy,
        }
    }

    /// `_get_dp_sharding_perf`
    fn data_parallel(&self, table: &Table) -> Seconds {
        let known = &self.constants;
        let bandwidth = known.memory_bandwidth * known.dense_kernel;
        let traffic = self.traffic(table, Way::DataParallel, table.dim());
        let element = f64::from(table.element_bytes());
        let forward_compute = traffic.bytes(element) / bandwidth;
        let bytes = table.weight_bytes().get() as f64;
        let nodes = (self.ranks / self.node_ranks).min(2.0);
        // `get_bw` gives an all-reduce the network of all ranks of a node.
        let network = known.network_bandwidth * self.node_ranks;
        let twice = if self.ranks > 2.0 * self.node_ranks { 2.0 } else { 1.0 };
        let all_reduce = twice * bytes * (2.0 * nodes - 1.0) / nodes / network;
        Seconds {
            forward_compute,
            forward_exchange: 0.0,
            backward_compute: forward_compute * known.backward,
            backward_exchange: all_reduce + bytes * known.dense_update / bandwidth,
        }
    }

    /// Bytes of ids and outputs of a shard, which are stored beside it: `calculate_shard_storages`
    /// without a pipeline.
    pub(super) fn buffer_bytes(&self, table: &Table, way: Way, columns: usize) -> u64 {
        let traffic = self.traffic(table, way, columns);
        let outputs = traffic.outputs * f64::from(table.element_bytes());
        (traffic.ids + outputs.ceil()) as u64
    }

    fn traffic(&self, table: &Table, way: Way, columns: usize) -> Traffic {
        let pooled = table.pooling() != Pooling::None;
        let ranks = if way == Way::DataParallel { 1.0 } else { self.ranks };
        // How many ranks share the look-ups of a sample.
        let sharing = match way {
            Way::RowWise => self.ranks,
            Way::TableRowWise | Way::Grid => self.node_ranks,
            _ => 1.0,
        };
        let inputs = table.lookups() * self.samples / sharing;
        let bags = table.features().len() as f64 * table.pooling_factor().min(1.0);
        let outputs = if pooled { bags * self.samples } else { inputs };
        let columns = columns as f64;
        Traffic {
            ids: (inputs * ranks * self.constants.id_bytes).ceil(),
            lookups: inputs * ranks * columns * f64::from(table.element_bytes()),
            outputs: outputs * ranks * columns,
        }
    }

    /// Of an all-to-all, a reduce-scatter or an all-gather of all ranks (`get_bw`).
    fn bandwidth(&self) -> f64 {
        if self.ranks <= self.node_ranks {
            self.constants.node_bandwidth
        } else {
            self.constants.network_bandwidth
        }
    }
}
