//! The cost model that `EMBark` plans with, read off any plan: [`EmbarkModel`].
//!
//! Source: `HugeCTR` v25.03, `benchmarks/embedding_collection/hugectr/sharding/planner.py`, class
//! `CostModel`; the paper is `EMBark` (`RecSys` 2024, DOI 10.1145/3640457.3688111).

use crate::plan::fingerprint;
use crate::{Error, Exchange, Id, Mesh, Plan, Result, RowRange, TableId, Tier, Workload};

/// What work is balanced over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmbarkBuckets {
    /// Nodes, whose ranks share the work evenly (`hier_auto` of `HugeCTR`).
    #[default]
    Nodes,
    /// Ranks (`auto`).
    Ranks,
}

/// `EMBark`'s model of a step: work of look-ups and of the exchange, by bucket, in units of one
/// weight read.
///
/// A bucket `p` with shards of tables `t`, which look up `h` rows of `d` columns for a sample and
/// whose rows are split over `s` buckets, costs
///
/// ```text
///   look-ups   w * B * sum of h * d / s
///   exchange   r * B * sum of d
///   nodes of L ranks: look-ups / L, exchange / L * 3/2
/// ```
///
/// and a step costs what the most expensive bucket does. The factor 3/2, which pays for the sums
/// inside a node, is a literal of the source.
///
/// **How a plan is read.** Every column block of every tier is a shard on each bucket that stores
/// at least one of its rows, and `s` is the number of those buckets in one group: a block whose
/// rows are cut over all `L` ranks of `k` nodes has `s = k` by node and `s = k * L` by rank. Parts
/// of unequal length count as if they were equal. Blocks of one table on one bucket add up their
/// widths. `h` is the part of the table's look-ups that falls on the rows of the tier. A group of
/// `g` of `W` ranks serves `B * g / W` samples.
///
/// Tiers in groups of one rank, data-parallel tables among them, cost nothing: the model has no
/// all-reduce. Where rows travel instead of sums ([`Exchange::Unique`], [`Exchange::Rows`]), every
/// bucket that stores the block pays `(w_dense + r) * B * h * d / s`, by node divided by `L`
/// (`get_dense_lookup_cost` of the source, with its default that every look-up is distinct).
///
/// It knows no ids on the wire, no skew of rows, no latency and no optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmbarkModel {
    /// Samples of a step of all ranks, `B`; the published figures have 1.
    pub samples: f64,
    /// Work of a weight looked up and pooled, against one weight read, `w`.
    pub work_ratio: f64,
    /// As `work_ratio`, where rows travel instead of sums, `w_dense`.
    pub dense_work_ratio: f64,
    /// Bandwidth of memory over that of the links between buckets, `r`.
    pub bandwidth_ratio: f64,
    /// What work is balanced over.
    pub buckets: EmbarkBuckets,
}

/// Cost of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EmbarkBucketCost {
    /// Work of look-ups.
    pub lookup: f64,
    /// Work of the exchange.
    pub exchange: f64,
}

/// Cost of a plan under an [`EmbarkModel`].
#[derive(Clone, Debug, PartialEq)]
pub struct EmbarkCost {
    buckets: Vec<EmbarkBucketCost>,
}

impl Default for EmbarkModel {
    /// That of several nodes.
    fn default() -> Self {
        Self::published(2)
    }
}

impl EmbarkModel {
    /// The constants of `HugeCTR` v25.03 for `nodes` nodes, one sample a step.
    ///
    /// Memory over network is 3000 / 50 GB/s (`benchmark.sh`), inside one node 7 (`config_DGXH100_1x8`
    /// of its `MLPerf` submission); the work ratios are 8 / 2 and 4 / 2.
    pub fn published(nodes: u32) -> Self {
        let (bandwidth_ratio, buckets) =
            if nodes > 1 { (60.0, EmbarkBuckets::Nodes) } else { (7.0, EmbarkBuckets::Ranks) };
        Self { samples: 1.0, work_ratio: 4.0, dense_work_ratio: 2.0, bandwidth_ratio, buckets }
    }

    /// Cost of a weight looked up, on a bucket of `ranks` ranks.
    pub(crate) fn lookup_rate(&self, ranks: u32) -> f64 {
        self.work_ratio * self.samples / f64::from(self.bucket_ranks(ranks))
    }

    /// Cost of a column of sums that leaves a bucket of `ranks` ranks.
    pub(crate) fn exchange_rate(&self, ranks: u32) -> f64 {
        let rate = self.bandwidth_ratio * self.samples;
        match self.buckets {
            EmbarkBuckets::Nodes => rate / f64::from(ranks) * 3.0 / 2.0,
            EmbarkBuckets::Ranks => rate,
        }
    }

    /// Cost of every bucket under `plan`, with the look-ups of `workload`.
    ///
    /// # Errors
    /// A workload of other tables than the plan's.
    pub fn cost(&self, plan: &Plan, workload: &Workload) -> Result<EmbarkCost> {
        let given = fingerprint(workload.tables().tables().as_slice());
        if given != plan.fingerprint() {
            return Err(Error::Fingerprint { plan: plan.fingerprint(), given });
        }
        let node = plan.node_ranks();
        let ranks = self.bucket_ranks(node);
        let buckets = (plan.world() / ranks) as usize;
        let mut reading = Reading {
            model: self,
            ranks,
            node,
            seen: vec![None; buckets],
            met: Vec::new(),
            reads: 0,
            costs: vec![EmbarkBucketCost::default(); buckets],
        };
        for (id, placed) in plan.placed().iter() {
            for tier in placed.tiers.iter().filter(|tier| tier.mesh.group_ranks() > 1) {
                let lookups = lookups(workload, id, tier.rows)?;
                reading.tier(tier, lookups);
            }
        }
        Ok(EmbarkCost { buckets: reading.costs })
    }

    /// Ranks of a bucket where nodes have `node_ranks`.
    pub(crate) fn bucket_ranks(&self, node_ranks: u32) -> u32 {
        match self.buckets {
            EmbarkBuckets::Nodes => node_ranks,
            EmbarkBuckets::Ranks => 1,
        }
    }
}

/// Look-ups of a sample that fall on the rows of a tier.
fn lookups(workload: &Workload, table: TableId, rows: RowRange) -> Result<f64> {
    let frequencies = workload.frequencies().get(table)?;
    let share = frequencies.share_of_top(rows.end()) - frequencies.share_of_top(rows.start());
    Ok(workload.tables().tables()[table].lookups() * share)
}

/// A plan half read.
struct Reading<'a> {
    model: &'a EmbarkModel,
    /// Ranks of a bucket.
    ranks: u32,
    node: u32,
    /// The block and group that met each bucket last.
    seen: Vec<Option<u64>>,
    /// Buckets of the block at hand.
    met: Vec<usize>,
    /// Blocks and groups read so far.
    reads: u64,
    costs: Vec<EmbarkBucketCost>,
}

impl Reading<'_> {
    fn tier(&mut self, tier: &Tier, lookups: f64) {
        let mesh = tier.mesh;
        let served = f64::from(mesh.group_ranks()) / f64::from(mesh.world());
        for block in &tier.blocks {
            let owners: Vec<u32> = (block.owners.iter().enumerate())
                .filter(|&(part, _)| block.part_rows(part) > 0)
                .map(|(_, owner)| owner)
                .collect();
            let columns = block.columns.columns() as f64 * served;
            for group in 0..mesh.replicas() {
                self.meet(mesh, group, &owners);
                self.pay(tier.exchange, columns, lookups);
            }
        }
    }

    /// Finds the buckets of the owners in one group.
    fn meet(&mut self, mesh: Mesh, group: u32, owners: &[u32]) {
        self.reads += 1;
        self.met.clear();
        for &owner in owners {
            let bucket = mesh.rank_at(group, owner).index() / self.ranks as usize;
            if self.seen[bucket].replace(self.reads) != Some(self.reads) {
                self.met.push(bucket);
            }
        }
    }

    fn pay(&mut self, exchange: Exchange, columns: f64, lookups: f64) {
        let model = self.model;
        let splits = self.met.len() as f64;
        let read = lookups * columns / splits;
        let cost = match exchange {
            Exchange::Local | Exchange::Reduce { .. } => EmbarkBucketCost {
                lookup: model.lookup_rate(self.node) * read,
                exchange: model.exchange_rate(self.node) * columns,
            },
            Exchange::Unique { .. } | Exchange::Rows => {
                let each = model.samples * read / f64::from(self.ranks);
                EmbarkBucketCost {
                    lookup: model.dense_work_ratio * each,
                    exchange: model.bandwidth_ratio * each,
                }
            }
        };
        for &bucket in &self.met {
            self.costs[bucket].lookup += cost.lookup;
            self.costs[bucket].exchange += cost.exchange;
        }
    }
}

impl EmbarkBucketCost {
    /// Look-ups and exchange.
    pub fn total(self) -> f64 {
        self.lookup + self.exchange
    }
}

impl EmbarkCost {
    /// By bucket, in order of their ranks.
    pub fn buckets(&self) -> &[EmbarkBucketCost] {
        &self.buckets
    }

    /// Of the most expensive bucket: the cost of the step.
    pub fn max(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.total()).fold(0.0, f64::max)
    }

    /// Mean of the buckets.
    pub fn mean(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.total()).sum::<f64>() / self.buckets.len() as f64
    }

    /// Largest cost of a bucket over the mean; 1 where all are equal.
    pub fn max_to_mean(&self) -> f64 {
        let mean = self.mean();
        if mean > 0.0 { self.max() / mean } else { 1.0 }
    }
}
