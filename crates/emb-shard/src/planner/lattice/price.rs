//! What each choice of a table costs the mean rank: [`Priced`].

use super::begin::{EXCHANGES, is_small};
use super::choice::Choice;
use super::options;
use crate::cost::{EvenCut, Typical};
use crate::{
    Error, Exchange, Kind, Layout, Ledger, Mesh, Objective, Pooling, ReplicaSync, Result, RowRange,
    Table, TableId, Task,
};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A choice with its price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced {
    pub(super) choice: Choice,
    /// What the mean rank pays: seconds or bytes, as the objective counts.
    pub(super) mean: f64,
    /// What an owner pays, if its owners alone pay all.
    pub(super) owner: f64,
    /// Bytes that an owner stores.
    pub(super) stored: f64,
    /// The position that the task says.
    pub(super) pinned: Option<u32>,
}

/// Exchanges of a table that are tried with its hottest rows on every rank, where tables are many.
const WITH_HOT: usize = 2;

/// Part of the price that must be left for a second tier to be worth having.
const PAYS: f64 = 0.995;

/// Up to how many times as much is noise of sums: bytes of the mean rank are those of any cut.
const EQUAL: f64 = 1.0 + 1e-9;

/// How much of the exchange of ids counts, `0..=1`: it may run behind the dense model.
pub(super) type IdsCount = f64;

/// The choices of every table over one mesh, by table; tables alike share them.
pub(super) type Options = Vec<Rc<[Priced]>>;

/// The choices that may be part of a best plan over `mesh`: for every number of owners the
/// cheapest, cheapest first. `hot` adds choices with hot rows on every rank.
///
/// # Errors
/// A table that no choice is allowed for, by name.
pub(super) fn of_mesh(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    mesh: Mesh,
    ids_count: IdsCount,
    hot: bool,
) -> Result<Options> {
    let mut known: Vec<(TableId, Rc<[Priced]>)> = Vec::new();
    let mut by_shape: HashMap<Shape, usize> = HashMap::new();
    let mut options = Vec::new();
    for (id, table) in task.workload.tables().tables().iter() {
        let shape = shape(task, table);
        let alike = by_shape.get(&shape).filter(|&&at| same_access(task, known[at].0, id));
        if let Some(&at) = alike {
            options.push(Rc::clone(&known[at].1));
            continue;
        }
        let choices: Rc<[Priced]> = of_table(task, ledger, mesh, id, ids_count, hot)?.into();
        if choices.is_empty() {
            let name = table.name();
            let what = format!("table {name:?}: no placement that is allowed can have it");
            return Err(Error::Constraint { what });
        }
        by_shape.insert(shape, known.len());
        known.push((id, Rc::clone(&choices)));
        options.push(choices);
    }
    Ok(options)
}

/// What prices of a table depend on, its access pattern apart.
type Shape = (u64, usize, u64, usize, Pooling, Option<u32>);

fn shape(task: &Task<'_>, table: &Table) -> Shape {
    let pinned = task.constraints.pinned.get(table.name()).copied();
    let (pooling_factor, features) = (table.pooling_factor().to_bits(), table.features().len());
    (table.rows(), table.dim(), pooling_factor, features, table.pooling(), pinned)
}

fn same_access(task: &Task<'_>, a: TableId, b: TableId) -> bool {
    task.workload.frequencies()[a] == task.workload.frequencies()[b]
}

fn of_table(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    mesh: Mesh,
    id: TableId,
    ids_count: IdsCount,
    hot: bool,
) -> Result<Vec<Priced>> {
    let table = &task.workload.tables().tables()[id];
    let pinned = task.constraints.pinned.get(table.name()).copied();
    // Where the kinds of collectives are chosen as well, no exchange is given up for its price.
    let exchanges: &[Exchange] = if is_small(task) { &EXCHANGES } else { &[] };
    let mut cheapest: BTreeMap<(u32, u32, u32, usize), Priced> = BTreeMap::new();
    for choice in options::of_table(task, ledger.node_ranks(), mesh, table)? {
        if pinned.is_some() && (choice.owners() > 1 || choice.mesh != mesh) {
            continue;
        }
        let priced = Priced { pinned, ..price(task, ledger, id, choice, ids_count)? };
        let exchange = exchanges.iter().position(|&exchange| exchange == choice.exchange);
        let key =
            (choice.mesh.group_ranks(), choice.owners(), choice.unit, exchange.unwrap_or_default());
        let known = cheapest.entry(key).or_insert(priced);
        if priced.mean < known.mean {
            *known = priced;
        }
    }
    let mut all: Vec<Priced> = cheapest.into_values().collect();
    all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    let tiers = !task.constraints.one_tier && task.allows(Kind::DataParallel);
    if hot && pinned.is_none() && tiers {
        let most = if is_small(task) { EXCHANGES.len() } else { WITH_HOT };
        for cold in cheapest_of_each_exchange(&all, most) {
            all.extend(with_hot(task, ledger, id, cold, ids_count)?);
        }
        all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    }
    Ok(all)
}

/// At most `most` choices, each the cheapest of its exchange, of equal ones that with most owners;
/// what exchange is best changes with the rows that are left to it.
fn cheapest_of_each_exchange(sorted: &[Priced], most: usize) -> Vec<Priced> {
    let mut cheapest: Vec<Priced> = Vec::new();
    for priced in sorted {
        let same = |known: &Priced| known.choice.exchange == priced.choice.exchange;
        match cheapest.iter().position(same) {
            None if cheapest.len() < most => cheapest.push(*priced),
            None => {}
            Some(at) => {
                let known = &mut cheapest[at];
                if priced.mean <= known.mean * EQUAL && priced.owner < known.owner {
                    *known = *priced;
                }
            }
        }
    }
    cheapest
}

/// The choice with its hottest rows on every rank, as many as are best; `None` where that does not
/// pay.
///
/// Each row pays or does not, and rows that pay come first in the order of frequency (`FlexShard`
/// reconstruction 1.5), so the price falls and then rises with their number.
fn with_hot(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    id: TableId,
    cold: Priced,
    ids_count: IdsCount,
) -> Result<Option<Priced>> {
    let rows = task.workload.tables().tables()[id].rows();
    if cold.choice.mesh.group_ranks() == 1 || rows < 2 {
        return Ok(None);
    }
    let mut of = |hot: u64| price(task, ledger, id, Choice { hot, ..cold.choice }, ids_count);
    let mut best = cold;
    let mut consider = |hot: u64, best: &mut Priced| -> Result<bool> {
        let tried = of(hot)?;
        let better = tried.mean < best.mean;
        if better {
            *best = tried;
        }
        Ok(better)
    };
    // The price falls and then rises: past the valley there is nothing to find.
    let mut hot = 4;
    let mut worse = 0;
    while hot < rows && worse < 2 {
        worse = if consider(hot, &mut best)? { 0 } else { worse + 1 };
        hot *= 8;
    }
    for step in [2.5, 1.6, 1.25] {
        let here = best.choice.hot as f64;
        for near in [here / step, here * step] {
            if here > 0.0 && (near as u64) < rows {
                consider((near as u64).max(1), &mut best)?;
            }
        }
    }
    Ok((best.mean < cold.mean * PAYS).then_some(best))
}

/// The price of one choice.
pub(super) fn price(
    task: &Task<'_>,
    ledger: &mut Ledger<'_>,
    id: TableId,
    choice: Choice,
    ids_count: IdsCount,
) -> Result<Priced> {
    let table = &task.workload.tables().tables()[id];
    let cut = EvenCut {
        rows: RowRange::new(choice.hot, table.rows())?,
        mesh: choice.mesh,
        exchange: choice.exchange,
        sync: choice.sync,
        row_parts: choice.row_units * choice.unit,
        blocks: choice.blocks,
        nodes: if choice.unit > 1 { choice.row_units } else { nodes(ledger, &choice) },
    };
    let mut typical = ledger.typical(id, &cut)?;
    if choice.hot > 0 {
        typical.add(&ledger.typical(id, &hot_cut(&choice)?)?);
    }
    let mean = amount(task.objective, &typical, ids_count);
    let share = f64::from(choice.mesh.group_ranks()) / f64::from(choice.owners());
    Ok(Priced { choice, mean, owner: mean * share, stored: typical.stored * share, pinned: None })
}

/// The tier of hot rows.
fn hot_cut(choice: &Choice) -> Result<EvenCut> {
    Ok(EvenCut {
        rows: RowRange::new(0, choice.hot)?,
        mesh: Mesh::new(choice.mesh.world(), 1, Layout::Strided)?,
        exchange: Exchange::Local,
        sync: ReplicaSync::Gradients,
        row_parts: 1,
        blocks: 1,
        nodes: 1,
    })
}

/// Nodes that single owners are on: as many as there are, at most all.
fn nodes(ledger: &Ledger<'_>, choice: &Choice) -> u32 {
    let world = choice.mesh.world();
    choice.row_units.min((world / ledger.node_ranks().max(1)).max(1))
}

fn amount(objective: Objective, typical: &Typical, ids_count: IdsCount) -> f64 {
    let seconds = typical.rest + ids_count * typical.ids;
    match objective {
        Objective::StepSeconds => seconds,
        // Among equals the faster.
        Objective::InterNodeBytes => typical.inter_node + seconds * 1e-3,
        Objective::Memory => typical.stored + typical.buffers + seconds * 1e-3,
    }
}
