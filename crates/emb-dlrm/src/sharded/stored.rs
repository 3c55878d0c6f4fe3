//! The shards that one rank stores of an exchange's tables, and their updates: [`StoredShards`].
//!
//! Alone, an owner sums and updates in one call. It takes two where replicas add up their gradients
//! first, or where a row-wise rule needs the statistic of a row whose columns others hold.

use super::average::Averaging;
use super::beside::replicas;
use super::class::Whole;
use super::error::Result;
use super::layout::{Layout, Members};
use super::links::Links;
use super::memory::ListMemory;
use super::replicas::SummedReplicas;
use super::statistics::Statistics;
use super::sync::widths;
use super::touched::TouchedRows;
use super::trip::Arrived;
use emb_comm::Collective;
use emb_kernels::{
    Backend, Feature, FeatureMap, Gradients, JaggedView, Pooling, RowGradients, TableSpec,
};
use emb_optim::{RowRule, Rule, RuleVisitor};
use emb_shard::ReplicaSync;

/// The shards of one exchange that this rank stores.
#[derive(Debug)]
pub(super) struct StoredShards<B: Backend, C> {
    /// The ranks that store the same; `None` without replicas.
    pub(super) replicas: Option<C>,
    /// In the order of [`Layout::stored`].
    pub(super) tables: B::Tables,
    /// Position of the whole table of each.
    pub(super) table_of: Vec<usize>,
    /// One unpooled feature each, for rows that come with their gradients.
    pub(super) rows_map: FeatureMap,
    /// How the replicas of each are kept equal.
    pub(super) syncs: Vec<ReplicaSync>,
    /// Rows and elements of a row, weights and state, of each.
    pub(super) sizes: Vec<(usize, usize)>,
    /// The rows touched since the last sync, of those whose sync wants to know.
    pub(super) touched_since: Vec<Option<TouchedRows>>,
    /// Whether any tier of the exchange, stored here or not, sums gradients over its replicas.
    pub(super) sums_gradients: bool,
    /// Distinct steps between syncs of weights in the exchange.
    pub(super) periods: Vec<u64>,
    /// Whether `replicas` are apart from the rank's other sets, so that steps are labelled apart.
    pub(super) apart: bool,
    /// Of the step that is going on.
    pub(super) rules: Vec<Rule>,
    pub(super) touched: RowGradients,
    statistics: Statistics,
    totals: ListMemory<&'static [f64]>,
    pub(super) summed: SummedReplicas<B>,
    pub(super) averaging: Averaging,
}

impl<B: Backend, C: Collective> StoredShards<B, C> {
    pub(super) fn new(
        world: &mut C,
        backend: &mut B,
        whole: &Whole<'_>,
        members: &Members,
        layout: &Layout,
        seed: u64,
    ) -> Result<Self> {
        let Whole { plan, specs, .. } = *whole;
        let mesh = members.mesh;
        let replicas = replicas(world, members)?;
        let local = layout.specs(plan, mesh, specs)?;
        let tables = backend.create_tables(&local, seed)?;
        let by_row = local.iter().enumerate().map(|(table, spec)| Feature {
            name: format!("{} (part {table})", spec.name),
            table,
            pooling: Pooling::None,
        });
        let rows_map = FeatureMap::new(by_row.collect(), &local, 0)?;
        let (mut of_tiers, mut periods) = (Vec::new(), Vec::new());
        for &(table, tier) in &members.tiers {
            let sync = plan.tier(table, tier)?.sync;
            of_tiers.push(sync);
            if let ReplicaSync::Weights { every } | ReplicaSync::TouchedRows { every } = sync {
                periods.push(u64::from(every.get()));
            }
        }
        periods.sort_unstable();
        periods.dedup();
        let syncs: Vec<_> = layout.stored().map(|shard| of_tiers[shard.tier]).collect();
        let touched_since = syncs.iter().zip(&local).map(|(sync, spec)| {
            let wanted = matches!(sync, ReplicaSync::TouchedRows { .. });
            wanted.then(|| TouchedRows::new(spec.rows))
        });
        let wants = |table: usize| uses_statistic(&specs[table]);
        let size = |spec: &TableSpec| (spec.rows as usize, widths(spec).iter().sum());
        Ok(Self {
            replicas,
            tables,
            table_of: layout.stored().map(|shard| layout.tiers[shard.tier].table).collect(),
            rows_map,
            sizes: local.iter().map(size).collect(),
            touched_since: touched_since.collect(),
            sums_gradients: of_tiers.contains(&ReplicaSync::Gradients) && mesh.replicas() > 1,
            periods,
            apart: false,
            rules: Vec::new(),
            touched: RowGradients::new(),
            statistics: Statistics::new(layout, wants),
            totals: ListMemory::default(),
            summed: SummedReplicas::new(&syncs, &local),
            syncs,
            averaging: Averaging::default(),
        })
    }

    /// Says which step the replicas are in, where nobody else does.
    pub(super) fn label(&mut self, step: u64) {
        if let Some(replicas) = self.replicas.as_mut().filter(|_| self.apart) {
            replicas.set_step(step);
        }
    }

    /// The rules of a step; `rates` are the learning rates of whole tables.
    pub(super) fn set_rules(&mut self, rates: &[f64], step: u64) {
        self.rules.clear();
        let specs = B::specs(&self.tables).iter().zip(&self.table_of);
        self.rules.extend(specs.map(|(spec, &table)| spec.optimizer.rule(rates[table], step)));
    }

    /// Remembers the rows that arrived for those syncs that want to know.
    pub(super) fn touch(&mut self, map: &FeatureMap, arrived: &Arrived) {
        for (list, feature) in map.features().iter().enumerate() {
            if let Some(touched) = &mut self.touched_since[feature.table] {
                touched.add(arrived.ids_of(list));
            }
        }
    }

    /// Updates every touched row once, with the rules that were set.
    pub(super) fn update(
        &mut self,
        (layout, links): (&Layout, &mut Links<C>),
        backend: &mut B,
        (map, batch): (&FeatureMap, JaggedView<'_, B>),
        gradients: &Gradients<'_, '_, B>,
        step: u64,
    ) -> Result<()> {
        let Self { tables, rules, touched, .. } = self;
        if !self.sums_gradients && !self.statistics.any() {
            backend.scatter_update(tables, map, batch, gradients, rules, step)?;
            return Ok(());
        }
        backend.row_gradients(tables, map, batch, gradients, rules, touched)?;
        if self.sums_gradients {
            self.label(step);
            self.add_replicas(backend)?;
        }
        let Self { tables, touched, rules, statistics, totals, .. } = self;
        if statistics.any()
            && let Some(group) = &mut links.group
        {
            statistics.exchange(layout, group, touched)?;
        } else {
            statistics.add_own(layout, touched);
        }
        let mut list = totals.take();
        list.extend((0..layout.stored().len()).map(|t| statistics.of_rows(t, touched)));
        backend.apply(tables, touched, &list, rules, step)?;
        totals.put(list);
        Ok(())
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
