//! What every pair of ranks tells each other.

use emb_shard::{Exchange, Mesh, Workload};

/// Among whom something travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Group,
    Node,
    Rail,
}

/// Bytes from rank to rank, `[from][to]`, themselves included.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    pub(crate) mesh: Mesh,
    pub(crate) scope: Scope,
    pub(crate) ids: Vec<Vec<f64>>,
    pub(crate) outputs: Vec<Vec<f64>>,
    pub(crate) gradients: Vec<Vec<f64>>,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Pairs {
    /// Rows from an owner to who asks, and their gradients back.
    pub(crate) fn add(&mut self, owner: usize, asker: usize, rows: f64, (sent, back): (f64, f64)) {
        self.outputs[owner][asker] += rows * sent;
        self.gradients[asker][owner] += rows * back;
    }
}

/// Bytes of a row, and of its gradient.
pub(crate) fn both(workload: &Workload, width: usize) -> (f64, f64) {
    let bytes = [workload.outputs(), workload.gradients()].map(|of| of.row_bytes(width) as f64);
    (bytes[0], bytes[1])
}

/// What a rank sends and receives, its own share included: ids, outputs and gradients.
pub(crate) fn buffers(pairs: &Pairs, rank: usize) -> f64 {
    let to = |bytes: &[Vec<f64>]| bytes[rank].iter().sum::<f64>();
    let from = |bytes: &[Vec<f64>]| bytes.iter().map(|to| to[rank]).sum::<f64>();
    let once = |bytes: &[Vec<f64>]| to(bytes) + from(bytes);
    once(&pairs.ids) + once(&pairs.outputs) + once(&pairs.gradients)
}
