//! Every neighbour of a small plan: one table elsewhere, then two at once.

use super::price::Priced;
use super::state::{Placed, Score, State};
use crate::{Id, Result, TableId};
use std::rc::Rc;

/// A place for a table: its choice and units.
type Place<'a> = (&'a Priced, Vec<u32>);

/// Whether there are so few places that pairs of tables can be tried with what is left of `tries`.
pub(super) fn few(options: &[Rc<[Priced]>], tries: u64) -> bool {
    let places = options.iter().map(|options| options.iter().map(count).sum::<u64>());
    let places: u64 = places.sum();
    places.saturating_mul(places) <= tries.saturating_mul(4)
}

/// The first better plan with one or two tables elsewhere.
pub(super) fn any(
    state: &mut State<'_>,
    options: &[Rc<[Priced]>],
    score: Score,
    tries: &mut u64,
) -> Result<Option<Score>> {
    for number in 0..options.len() {
        if let Some(found) = one(state, options, number, score, tries)? {
            return Ok(Some(found));
        }
    }
    for number in 0..options.len() {
        let id = TableId::from_index(number)?;
        let home = state.placed[number].clone();
        for (priced, units) in places(&options[number]) {
            if is(&home, priced, &units) {
                continue;
            }
            state.replace(id, priced.choice, units)?;
            for other in number + 1..options.len() {
                if let Some(found) = one(state, options, other, score, tries)? {
                    return Ok(Some(found));
                }
            }
        }
        state.put(id, home)?;
    }
    Ok(None)
}

/// One table elsewhere; it is left there if that is better than `score`.
fn one(
    state: &mut State<'_>,
    options: &[Rc<[Priced]>],
    number: usize,
    score: Score,
    tries: &mut u64,
) -> Result<Option<Score>> {
    let id = TableId::from_index(number)?;
    let home = state.placed[number].clone();
    for (priced, units) in places(&options[number]) {
        if *tries == 0 || is(&home, priced, &units) {
            continue;
        }
        *tries -= 1;
        state.replace(id, priced.choice, units)?;
        let tried = state.score();
        if tried.beats(score) {
            return Ok(Some(tried));
        }
    }
    state.put(id, home)?;
    Ok(None)
}

fn is(placed: &Placed, priced: &Priced, units: &[u32]) -> bool {
    placed.choice == priced.choice && placed.units == units
}

/// All places of a table: on every unit, or for more units every run of neighbours.
fn places(options: &[Priced]) -> impl Iterator<Item = Place<'_>> {
    options.iter().flat_map(|priced| {
        let (units, of_group) = (priced.choice.units(), priced.choice.of_group());
        let first = (0..count(priced) as u32).map(move |run| priced.pinned.unwrap_or(run));
        first.map(move |first| {
            let mut run: Vec<u32> = (first..first + units).map(|unit| unit % of_group).collect();
            run.sort_unstable();
            (priced, run)
        })
    })
}

fn count(priced: &Priced) -> u64 {
    let fixed = priced.choice.is_everywhere() || priced.pinned.is_some();
    if fixed { 1 } else { u64::from(priced.choice.of_group()) }
}
