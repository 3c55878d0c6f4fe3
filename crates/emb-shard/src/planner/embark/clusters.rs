//! Which tables are on every rank, and of which sums or rows travel: [`Clusters`].

use super::problem::{Buckets, allowed};
use super::{EmbarkClusters, Kind, Task};
use crate::{Error, Pooling, Result, Table, TableId};

/// How a table is stored and travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cluster {
    /// Whole where the constraints want it.
    Pinned(u32),
    /// On every rank; gradients are summed.
    DataParallel,
    /// Cut; owners pool and sums travel.
    Reduction,
    /// Rows over all ranks; distinct rows travel.
    Unique,
}

/// The cluster of every table.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    /// In table order: the first choice, and that without copies on every rank.
    choices: Vec<(Cluster, Option<Cluster>)>,
    /// Data-parallel tables that could be something else, the largest first.
    spare: Vec<usize>,
}

impl Clusters {
    /// Chooses for every table.
    pub(super) fn new(task: &Task<'_>, buckets: &Buckets, rule: EmbarkClusters) -> Result<Self> {
        let tables = task.workload.tables().tables();
        let mut choices = Vec::with_capacity(tables.len());
        for (id, table) in tables.iter() {
            choices.push(choose(task, buckets, rule, id, table)?);
        }
        let spare = |number: &usize| matches!(choices[*number], (Cluster::DataParallel, Some(_)));
        let mut spare: Vec<usize> = (0..choices.len()).filter(spare).collect();
        let bytes = |number: usize| tables.as_slice()[number].weight_bytes();
        spare.sort_by(|&a, &b| bytes(b).cmp(&bytes(a)).then(a.cmp(&b)));
        Ok(Self { choices, spare })
    }

    /// Data-parallel tables that could be something else.
    pub(super) fn spare(&self) -> usize {
        self.spare.len()
    }

    /// The clusters with the `count` largest spare tables not data-parallel.
    pub(super) fn without(&self, count: usize) -> Vec<Cluster> {
        let mut clusters: Vec<Cluster> = self.choices.iter().map(|choice| choice.0).collect();
        for &number in &self.spare[..count] {
            clusters[number] = self.choices[number].1.unwrap_or(Cluster::DataParallel);
        }
        clusters
    }
}

fn choose(
    task: &Task<'_>,
    buckets: &Buckets,
    rule: EmbarkClusters,
    id: TableId,
    table: &Table,
) -> Result<(Cluster, Option<Cluster>)> {
    if let Some(&position) = task.constraints.pinned.get(table.name()) {
        return Ok((Cluster::Pinned(position), None));
    }
    let mut cut = Vec::new();
    if table.pooling() != Pooling::None && allowed(task, buckets, table).is_some() {
        cut.push(Cluster::Reduction);
    }
    if task.allows(Kind::RowWise) {
        cut.push(Cluster::Unique);
    }
    let copies = task.allows(Kind::DataParallel).then_some(Cluster::DataParallel);
    let traffic = Traffic::new(task, buckets)?;
    let cut = match (rule, cut.as_slice()) {
        (EmbarkClusters::Reduction, [first, ..]) => return Ok((*first, None)),
        (_, [first, second]) if traffic.of(*second, id)? < traffic.of(*first, id)? => Some(*second),
        (_, all) => all.first().copied(),
    };
    match (copies, cut) {
        (Some(copies), Some(cut)) if traffic.of(copies, id)? < traffic.of(cut, id)? => {
            Ok((copies, Some(cut)))
        }
        (_, Some(cut)) => Ok((cut, None)),
        (Some(copies), None) => Ok((copies, None)),
        (None, None) => Err(Error::Constraint {
            what: format!(
                "table {:?}: embark over buckets of {} ranks has no placement of the allowed kinds",
                table.name(),
                buckets.width
            ),
        }),
    }
}

/// Bytes that a rank sends to other nodes for a table in a step (own arithmetic over the exchanges
/// of `HugeCTR` v25.03, `HugeCTR/embedding/`: `network_forward.cu`, `hier_model_forward.cu`,
/// `data_distributor/`, and `common.cpp` for the all-reduce).
///
/// With `N` nodes of `L` ranks, `b` samples of a rank, `V` rows of `D` values of `e` bytes, `h` look-ups of
/// a sample and `u` distinct rows among `b * h`:
///
/// ```text
///   data-parallel   (N - 1) / N * 2 * V * D * e / L
///   sums            (N - 1) / N * (2 * b * D * e + b * h * id + L * b * length)
///   rows            (N - 1) / N * u * (2 * D * e + id + 4)
/// ```
///
/// On one node, ranks take the place of nodes.
struct Traffic<'a> {
    task: &'a Task<'a>,
    nodes: f64,
    node_ranks: f64,
    samples: f64,
}

impl<'a> Traffic<'a> {
    fn new(task: &'a Task<'a>, buckets: &Buckets) -> Result<Self> {
        let world = task.topology.world();
        let samples = task.workload.batch().global(world)? as f64 / f64::from(world);
        let (nodes, node_ranks) = match (buckets.nodes, buckets.mesh.group_ranks()) {
            (1, ranks) => (ranks, 1),
            (nodes, ranks) => (nodes, ranks / nodes),
        };
        let (nodes, node_ranks) = (f64::from(nodes), f64::from(node_ranks));
        Ok(Self { task, nodes, node_ranks, samples })
    }

    fn of(&self, cluster: Cluster, id: TableId) -> Result<f64> {
        let workload = self.task.workload;
        let table = &workload.tables().tables()[id];
        let row = workload.outputs().row_bytes(table.dim()) as f64;
        let (ids, lengths) =
            (f64::from(workload.ids().bytes()), f64::from(workload.length_bytes()));
        let lookups = self.samples * table.lookups();
        let bags = self.samples * table.features().len() as f64;
        let bytes = match cluster {
            Cluster::Pinned(_) => 0.0,
            Cluster::DataParallel => 2.0 * table.rows() as f64 * row / self.node_ranks,
            Cluster::Reduction => {
                2.0 * bags * row + lookups * ids + self.node_ranks * bags * lengths
            }
            Cluster::Unique => {
                let unique = workload.frequencies()[id].expected_unique(lookups)?;
                unique * (2.0 * row + ids + POSITION_BYTES)
            }
        };
        Ok(bytes * (self.nodes - 1.0) / self.nodes)
    }
}

/// A distinct id travels with the number of its feature (`HugeCTR`, 4 bytes).
const POSITION_BYTES: f64 = 4.0;
