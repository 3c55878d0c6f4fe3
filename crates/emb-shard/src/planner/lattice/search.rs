//! Local search: tables leave the busiest rank, as long as that helps.

use super::price::Priced;
use super::start::Given;
use super::state::{Placed, Score, State, beside};
use super::thorough;
use crate::{Id, Objective, Parts, Result, TableId};
use std::rc::Rc;

/// Tables that are tried for each busiest position, heaviest first.
const TABLES: usize = 12;
/// Positions that tables are exchanged with, least busy first.
const PARTNERS: usize = 4;

/// Improves `state` until nothing helps or `tries` placements were tried; returns what is left of
/// them.
pub(super) fn improve(
    state: &mut State<'_>,
    options: &[Rc<[Priced]>],
    mut tries: u64,
) -> Result<u64> {
    let mut score = state.score();
    loop {
        let positions = state.ledger.by_position(state.mesh, beside(state.task));
        let mut better = None;
        for position in busiest(&positions, score, state.task.objective) {
            better = leave(state, options, &positions, position, score, &mut tries)?;
            if better.is_some() || tries == 0 {
                break;
            }
        }
        if better.is_none() && thorough::few(options, tries) {
            better = thorough::any(state, options, score, &mut tries)?;
        }
        match better {
            Some(found) => score = found,
            None => return Ok(tries),
        }
    }
}

/// The positions that hold a step up: the slowest of every part, the longest part first; the
/// fullest, where bytes are short.
fn busiest(positions: &[(Parts, f64)], score: Score, objective: Objective) -> Vec<u32> {
    let slowest = |value: &dyn Fn(&(Parts, f64)) -> f64| {
        let first =
            positions.iter().enumerate().reduce(|a, b| if value(b.1) > value(a.1) { b } else { a });
        first.map_or((0, 0.0), |(position, at)| (position as u32, value(at)))
    };
    let fullest = slowest(&|at| at.1).0;
    let mut found = Vec::new();
    if score.excess > 0.0 || objective == Objective::Memory {
        found.push(fullest);
    }
    let mut by_part: Vec<(u32, f64)> =
        (0..8).map(|part| slowest(&|at: &(Parts, f64)| at.0.named()[part].1)).collect();
    by_part.push(slowest(&|at| at.0.tables()));
    by_part.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.extend(by_part.into_iter().map(|(position, _)| position));
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|position| seen.insert(*position));
    found
}

/// Tries to take something from a position; returns the new score where that helped.
fn leave(
    state: &mut State<'_>,
    options: &[Rc<[Priced]>],
    positions: &[(Parts, f64)],
    position: u32,
    score: Score,
    tries: &mut u64,
) -> Result<Option<Score>> {
    let given = Given {
        busy: positions.iter().map(|at| at.0.tables()).collect(),
        stored: positions.iter().map(|at| at.1).collect(),
    };
    let budget = state.task.table_budget().get() as f64;
    for id in heaviest_at(state, options, position)? {
        let mut best: Option<(Score, Placed)> = None;
        let here = state.placed[id.index()].clone();
        for priced in options[id.index()].iter() {
            let without = given.without(&here, &options[id.index()]);
            let units = without.least_busy(priced, budget);
            if *tries == 0 || (priced.choice == here.choice && units == here.units) {
                continue;
            }
            *tries -= 1;
            let before = state.replace(id, priced.choice, units)?;
            let tried = state.score();
            let tried_at = state.put(id, before)?;
            if tried.beats(best.as_ref().map_or(score, |best| best.0)) {
                best = Some((tried, tried_at));
            }
        }
        if let Some((found, placed)) = best {
            state.put(id, placed)?;
            return Ok(Some(found));
        }
        if let Some(found) = exchange(state, &given, id, position, score, tries)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Changes places with a table of one of the least busy positions that is cut alike.
fn exchange(
    state: &mut State<'_>,
    given: &Given,
    id: TableId,
    position: u32,
    score: Score,
    tries: &mut u64,
) -> Result<Option<Score>> {
    let own = state.placed[id.index()].clone();
    let choice = own.choice;
    if choice.is_everywhere() || choice.mesh != state.mesh {
        return Ok(None);
    }
    let unit = position / choice.unit;
    let mut partners: Vec<u32> =
        (0..choice.of_group()).filter(|other| !own.units.contains(other)).collect();
    partners.sort_by(|&a, &b| {
        let busy = |unit: u32| given.busy[(unit * choice.unit) as usize];
        busy(a).total_cmp(&busy(b)).then(a.cmp(&b))
    });
    for &partner in partners.iter().take(PARTNERS) {
        for number in 0..state.placed.len() {
            let other = &state.placed[number];
            let alike = other.choice.unit == choice.unit && other.choice.mesh == choice.mesh;
            let crosses = alike && other.units.contains(&partner) && !other.units.contains(&unit);
            if !crosses || number == id.index() || *tries == 0 {
                continue;
            }
            *tries -= 1;
            let other_id = TableId::from_index(number)?;
            let other = other.clone();
            let swap = |units: &[u32], from, to| -> Vec<u32> {
                units.iter().map(|&unit| if unit == from { to } else { unit }).collect()
            };
            let mine = state.replace(id, choice, swap(&own.units, unit, partner))?;
            let theirs =
                state.replace(other_id, other.choice, swap(&other.units, partner, unit))?;
            let tried = state.score();
            if tried.beats(score) {
                return Ok(Some(tried));
            }
            state.put(other_id, theirs)?;
            state.put(id, mine)?;
        }
    }
    Ok(None)
}

/// The tables at a position, those that cost an owner most first.
fn heaviest_at(state: &State<'_>, options: &[Rc<[Priced]>], position: u32) -> Result<Vec<TableId>> {
    let mut here = Vec::new();
    for (number, placed) in state.placed.iter().enumerate() {
        if placed.is_at(state.mesh, position) && options[number].len() > 1 {
            let price = |priced: &&Priced| priced.choice == placed.choice;
            let owner = options[number].iter().find(price).map_or(0.0, |priced| priced.owner);
            here.push((owner, TableId::from_index(number)?));
        }
    }
    here.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    here.truncate(TABLES);
    Ok(here.into_iter().map(|(_, id)| id).collect())
}

impl Given {
    /// As if a table were not there.
    fn without(&self, placed: &Placed, options: &[Priced]) -> Self {
        let mut given = self.clone();
        let Some(priced) = options.iter().find(|priced| priced.choice == placed.choice) else {
            return given;
        };
        if !placed.choice.is_everywhere() {
            for &unit in &placed.units {
                let choice = &placed.choice;
                for position in (unit * choice.unit) as usize..((unit + 1) * choice.unit) as usize {
                    given.busy[position] -= priced.owner;
                    given.stored[position] -= priced.stored;
                }
            }
        }
        given
    }
}
