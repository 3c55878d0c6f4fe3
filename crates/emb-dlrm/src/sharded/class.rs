//! The tables of one exchange on one rank: [`Class`].

use super::average::Averaging;
use super::check::tier_of;
use super::error::Result;
use super::exchange::ExchangeMemory;
use super::layout::Layout;
use super::memory::Grown;
use super::no_set;
use super::replicas::SummedReplicas;
use super::sync::widths;
use super::touched::TouchedRows;
use super::update::StatisticsMemory;
use emb_comm::Collective;
use emb_kernels::{Backend, Feature, FeatureMap, Pooling, RowGradients, TableSpec};
use emb_optim::{RowRule, Rule, RuleVisitor};
use emb_shard::{ExchangeClass, Plan, Rank, ReplicaSync};

/// The tables that share an exchange: their parts here, and the ranks that share them.
#[derive(Debug)]
pub(super) struct Class<B: Backend, C> {
    pub(super) layout: Layout,
    /// The group that this rank works in; `None` for groups of one.
    pub(super) group: Option<C>,
    /// The ranks that store the same parts; `None` without replicas.
    pub(super) replicas: Option<C>,
    /// The parts stored here, in the order of [`Layout::stored`].
    pub(super) tables: B::Tables,
    /// This rank's features over those parts.
    pub(super) map: FeatureMap,
    /// One unpooled feature a stored part, for rows that come with their gradients.
    pub(super) rows_map: FeatureMap,
    /// How the replicas of each stored part are kept equal.
    pub(super) syncs: Vec<ReplicaSync>,
    /// Rows and elements of a row, weights and state, of each stored part.
    pub(super) sizes: Vec<(usize, usize)>,
    /// The rows touched since the last sync, of parts whose sync wants to know.
    pub(super) touched_since: Vec<Option<TouchedRows>>,
    /// Whether any table of the class, stored here or not, sums gradients over its replicas.
    pub(super) sums_gradients: bool,
    /// Whether any table of the class has a rule that needs the statistic of cut rows.
    pub(super) shares_statistics: bool,
    /// Distinct steps between syncs of weights in the class.
    pub(super) periods: Vec<u64>,
    pub(super) rules: Vec<Rule>,
    pub(super) touched: RowGradients,
    /// Names of this rank's features, for errors.
    pub(super) names: Vec<String>,
    pub(super) exchange: ExchangeMemory,
    /// Pooled sums, or gradients cut by owner, on their way.
    pub(super) sums: Vec<f32>,
    /// The same where they arrive.
    pub(super) received: Vec<f32>,
    /// How many of them are of the samples of each rank of the group.
    pub(super) sample_counts: Vec<usize>,
    /// How many of them are of the columns of each owner.
    pub(super) owner_counts: Vec<usize>,
    /// Pooled sums or gradients of this owner.
    pub(super) device: Grown<B, f32>,
    pub(super) statistics: StatisticsMemory,
    pub(super) summed: SummedReplicas<B>,
    pub(super) averaging: Averaging,
}

impl<B: Backend, C: Collective> Class<B, C> {
    #[expect(clippy::too_many_arguments, reason = "those of the collection")]
    pub(super) fn new(
        world: &mut C,
        backend: &mut B,
        plan: &Plan,
        class: &ExchangeClass,
        specs: &[TableSpec],
        map: &FeatureMap,
        rank: Rank,
        seed: u64,
    ) -> Result<Self> {
        let layout = Layout::new(plan, class, specs, map, rank)?;
        let mesh = class.mesh;
        let (group, set) = (mesh.group_of(rank)?, mesh.replica_set_of(rank)?);
        let replica_count = mesh.replicas() as usize;
        let in_group = mesh.group_ranks() > 1;
        // Every rank sees the same plan, hence takes part in the same divisions.
        let mut split = |wanted: bool, color: u32, key: u32| {
            if !wanted {
                return Ok(None);
            }
            let set = world.split(Some(color as usize), key as usize)?;
            set.map(Some).ok_or_else(no_set)
        };
        let replicas = split(replica_count > 1, set.get(), group.get())?;
        let group = split(in_group, group.get(), set.get())?;
        let local = layout.specs(plan, specs)?;
        let tables = backend.create_tables(&local, seed)?;
        let own = layout.map(&local, map)?;
        let by_row = local.iter().enumerate().map(|(table, spec)| Feature {
            name: spec.name.clone(),
            table,
            pooling: Pooling::None,
        });
        let rows_map = FeatureMap::new(by_row.collect(), &local, 0)?;
        let mut syncs = Vec::new();
        for stored in &layout.stored {
            syncs.push(tier_of(plan, stored.table)?.sync);
        }
        let (mut sums_gradients, mut shares_statistics) = (false, false);
        let mut periods = Vec::new();
        for &(id, _) in &class.tiers {
            let table = id.get() as usize;
            let tier = tier_of(plan, table)?;
            sums_gradients |= tier.sync == ReplicaSync::Gradients && replica_count > 1;
            shares_statistics |= tier.blocks.len() > 1 && uses_statistic(&specs[table]);
            if let ReplicaSync::Weights { every } | ReplicaSync::TouchedRows { every } = tier.sync {
                periods.push(u64::from(every.get()));
            }
        }
        let touched_since = syncs.iter().zip(&local).map(|(sync, spec)| {
            let wanted = matches!(sync, ReplicaSync::TouchedRows { .. });
            wanted.then(|| TouchedRows::new(spec.rows))
        });
        let touched_since = touched_since.collect();
        periods.sort_unstable();
        periods.dedup();
        let summed = SummedReplicas::new(&syncs, &local);
        Ok(Self {
            names: own.features().iter().map(|feature| feature.name.clone()).collect(),
            layout,
            group,
            replicas,
            tables,
            map: own,
            rows_map,
            sizes: local
                .iter()
                .map(|spec| (spec.rows as usize, widths(spec).iter().sum()))
                .collect(),
            touched_since,
            syncs,
            sums_gradients,
            shares_statistics,
            periods,
            rules: Vec::new(),
            touched: RowGradients::new(),
            exchange: ExchangeMemory::default(),
            sums: Vec::new(),
            received: Vec::new(),
            sample_counts: Vec::new(),
            owner_counts: Vec::new(),
            device: Grown::default(),
            statistics: StatisticsMemory::default(),
            summed,
            averaging: Averaging::default(),
        })
    }
}

fn uses_statistic(spec: &TableSpec) -> bool {
    struct Ask;
    impl RuleVisitor for Ask {
        type Output = bool;
        fn visit<R: RowRule>(self, rule: R) -> bool {
            rule.uses_statistic()
        }
    }
    spec.optimizer.rule(0.0, 1).visit(Ask)
}
