//! Which rows the tiers of a plan are to have: [`Plan::with_hot_rows`].

use super::{Plan, PlanSpec, RowOrder, TablePlan, Tier};
use crate::{Result, RowMap, RowMapKind, RowRange, Table, Workload};
use serde::Serialize;

/// A table whose tiers were to have more hot rows than are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HotRowsShort {
    /// Table name.
    pub table: String,
    /// Rows of all tiers but the last, as planned.
    pub wanted: u64,
    /// Hot rows that are known.
    pub known: u64,
}

impl Plan {
    /// The plan with an order for every table of several tiers whose hot rows `workload` knows:
    /// the hottest rows fill all tiers but the last, as many as these have places.
    ///
    /// Planners choose how many rows a tier has, by how often rows are looked up; which rows they
    /// are is said here, so that the plan can be executed on any data. Where fewer rows are known
    /// than the tiers have places, the tiers are cut to these, and the last has the more; row maps
    /// that deal rows out in turn still do, all others become even ranges. Tables that have an
    /// order stay as they are, and so do those whose hot rows are not known
    /// ([`Workload::hot_rows`]): the latter are right where rows are in the order of frequency.
    ///
    /// Also says which tables were cut, in table order.
    ///
    /// # Errors
    /// A workload of other tables.
    pub fn with_hot_rows(self, workload: &Workload) -> Result<(Self, Vec<HotRowsShort>)> {
        self.check_tables(workload.tables().tables().as_slice())?;
        let open = |plan: &TablePlan| plan.order.is_none() && plan.tiers.len() > 1;
        let mut short = Vec::new();
        let mut plans = Vec::with_capacity(self.placed.len());
        for (id, plan) in self.placed.iter() {
            let mut plan = plan.clone();
            if let Some(hot) = workload.hot_rows(id).filter(|_| open(&plan)) {
                short.extend(put_first(&self.tables.tables()[id], &mut plan, hot)?);
            }
            plans.push(plan);
        }
        let spec = PlanSpec { world: self.world, node_ranks: self.node_ranks, tables: plans };
        Ok((Self::new(&self.tables, spec)?, short))
    }
}

/// Gives the tiers the rows of `hot`, cut to as many as there are.
fn put_first(table: &Table, plan: &mut TablePlan, hot: &[u64]) -> Result<Option<HotRowsShort>> {
    let Some(last) = plan.tiers.last() else { return Ok(None) };
    let (wanted, known) = (last.rows.start(), hot.len() as u64);
    let mut short = None;
    if known < wanted {
        short = Some(HotRowsShort { table: table.name().to_owned(), wanted, known });
        let count = plan.tiers.len();
        let mut tiers = Vec::with_capacity(count);
        for (number, tier) in plan.tiers.drain(..).enumerate() {
            let end = if number + 1 == count { table.rows() } else { tier.rows.end().min(known) };
            let rows = RowRange::new(tier.rows.start().min(known), end)?;
            if rows.rows() > 0 {
                tiers.push(of_rows(tier, rows)?);
            }
        }
        plan.tiers = tiers;
    }
    if plan.tiers.len() > 1 {
        let first = &hot[..wanted.min(known) as usize];
        plan.order = Some(RowOrder::hot_first(table.rows(), first.to_vec())?);
    }
    Ok(short)
}

/// The tier with other rows, cut in the same way.
fn of_rows(mut tier: Tier, rows: RowRange) -> Result<Tier> {
    if rows.rows() != tier.rows.rows() {
        for block in &mut tier.blocks {
            block.map = match block.map.kind() {
                RowMapKind::Modulo { owners } => RowMap::modulo(rows.rows(), owners)?,
                _ => RowMap::even(rows.rows(), block.map.owners())?,
            };
        }
    }
    tier.rows = rows;
    Ok(tier)
}
