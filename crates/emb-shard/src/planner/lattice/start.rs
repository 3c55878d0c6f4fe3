//! A first plan: every table in turn where it hurts least.

use super::choice::Choice;
use super::price::Priced;
use crate::Mesh;
use std::rc::Rc;

/// What positions have been given so far, `[S]` each.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) busy: Vec<f64>,
    pub(super) stored: Vec<f64>,
}

/// A choice and its units for every table, heaviest first; `options` by table, cheapest first.
///
/// A table pays its price on the mean rank, and what an owner would be busy with beyond the mean
/// of all counts `patience` times: a high price for fewer owners is taken where it keeps the
/// busiest rank down.
pub(super) fn greedy(
    mesh: Mesh,
    options: &[Rc<[Priced]>],
    budget: f64,
    patience: f64,
) -> Vec<(Choice, Vec<u32>)> {
    let ranks = mesh.group_ranks() as usize;
    let mut given = Given { busy: vec![0.0; ranks], stored: vec![0.0; ranks] };
    let least = |options: &Rc<[Priced]>| options.first().map_or(0.0, |priced| priced.mean);
    let target: f64 = options.iter().map(least).sum();
    let mut order: Vec<usize> = (0..options.len()).collect();
    order.sort_by(|&a, &b| least(&options[b]).total_cmp(&least(&options[a])).then(a.cmp(&b)));
    let mut chosen: Vec<Option<(Choice, Vec<u32>)>> = vec![None; options.len()];
    for number in order {
        let best = best(&options[number], &given, budget, target, patience);
        let Some((priced, units)) = best else { continue };
        given.add(&priced, &units);
        chosen[number] = Some((priced.choice, units));
    }
    chosen.into_iter().flatten().collect()
}

fn best(
    options: &[Priced],
    given: &Given,
    budget: f64,
    target: f64,
    patience: f64,
) -> Option<(Priced, Vec<u32>)> {
    let mut best: Option<(f64, f64, Priced, Vec<u32>)> = None;
    for priced in options {
        // What comes is dearer than the best already is.
        if best.as_ref().is_some_and(|(excess, cost, ..)| *excess == 0.0 && priced.mean > *cost) {
            break;
        }
        let units = given.least_busy(priced, budget);
        let (busy, stored) = given.worst(&priced.choice, &units);
        let excess = (stored + priced.stored - budget).max(0.0);
        let cost = priced.mean + patience * (busy + priced.owner - target).max(0.0);
        let better = best
            .as_ref()
            .is_none_or(|(known_excess, known, ..)| (excess, cost) < (*known_excess, *known));
        if better {
            best = Some((excess, cost, *priced, units));
        }
    }
    best.map(|(.., priced, units)| (priced, units))
}

impl Given {
    /// Units for a choice: those with room first, then the least busy, then the lowest.
    pub(super) fn least_busy(&self, priced: &Priced, budget: f64) -> Vec<u32> {
        let choice = &priced.choice;
        if let Some(position) = priced.pinned {
            return vec![position];
        }
        if choice.is_everywhere() {
            return (0..choice.units()).collect();
        }
        let mut units: Vec<(bool, f64, u32)> = (0..choice.of_group())
            .map(|unit| {
                let (busy, stored) = self.worst(choice, &[unit]);
                (stored + priced.stored > budget, busy, unit)
            })
            .collect();
        let order = |a: &(bool, f64, u32), b: &(bool, f64, u32)| {
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
        };
        let count = choice.units() as usize;
        if count < units.len() {
            units.select_nth_unstable_by(count, order);
            units.truncate(count);
        }
        let mut units: Vec<u32> = units.into_iter().map(|(.., unit)| unit).collect();
        units.sort_unstable();
        units
    }

    /// What the busiest and the fullest position of `units` have.
    fn worst(&self, choice: &Choice, units: &[u32]) -> (f64, f64) {
        let at = |&unit: &u32| (unit * choice.unit) as usize..((unit + 1) * choice.unit) as usize;
        let positions = units.iter().flat_map(at);
        let positions = positions.filter(|&position| position < self.busy.len());
        positions.fold((0.0, 0.0), |(busy, stored), position| {
            (f64::max(busy, self.busy[position]), f64::max(stored, self.stored[position]))
        })
    }

    fn add(&mut self, priced: &Priced, units: &[u32]) {
        let choice = &priced.choice;
        if choice.is_everywhere() {
            self.busy.iter_mut().for_each(|busy| *busy += priced.mean);
            self.stored.iter_mut().for_each(|stored| *stored += priced.stored);
            return;
        }
        for &unit in units {
            for position in (unit * choice.unit) as usize..((unit + 1) * choice.unit) as usize {
                self.busy[position] += priced.owner;
                self.stored[position] += priced.stored;
            }
        }
    }
}
