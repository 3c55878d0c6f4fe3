//! The published search made to converge: [`converge`].

use super::bound;
use super::moves::{Finder, Look};
use super::pack;
use super::problem::Problem;
use super::state::{Piece, State};
use crate::Result;

/// Targets over the lower bound for which tables are shaped and packed anew. A table takes the
/// fewest row splits that a target allows, so that few targets give all shapes worth a try.
const TARGETS: [f64; 8] = [1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, f64::INFINITY];

/// Parts of the target that a column block may cost at first: coarse blocks cut few tables, fine
/// ones leave smaller gaps.
const BLOCKS: [f64; 4] = [1.0, 0.5, 0.25, 0.0];

/// As close to the lower bound as no difference can be seen.
const CLOSE: f64 = 1e-4;

/// So close to the lower bound that finer column blocks, each of which needs all ids of its table,
/// are not worth it.
const GOOD: f64 = 0.01;

/// A move must save this part of the lower bound.
const LEAST_GAIN: f64 = 1e-7;

/// A move that takes this part of the way to the lower bound is made without looking for finer
/// ones.
const LARGE_GAIN: f64 = 0.05;

/// Moves looked at in one plan, so that the time it takes has a limit.
const LOOKS: u64 = 60_000_000;

/// The cheapest pieces found, from the published ones and from packings of several shapes.
pub(super) fn converge(problem: &Problem<'_>, published: Option<Vec<Piece>>) -> Result<Vec<Piece>> {
    let bound = bound::lower(problem);
    let mut search = Search { bound, looks: LOOKS, best: None };
    let start = published.map(|pieces| State::of(problem, pieces));
    if let Some(state) = &start {
        search.offer(state.clone());
    }
    let mut tried = Vec::new();
    for (blocks, target) in BLOCKS.iter().flat_map(|part| TARGETS.map(|target| (*part, target))) {
        if search.within(if blocks < 1.0 { GOOD } else { CLOSE }) {
            continue;
        }
        let shapes = pack::shapes(problem, bound * target, bound * target * blocks);
        if !tried.contains(&shapes) {
            if let Ok(state) = pack::by_cost(problem, &shapes) {
                search.improve(state);
            }
            tried.push(shapes);
        }
    }
    if let Some(state) = start.filter(|_| !search.within(CLOSE)) {
        search.improve(state);
    }
    if search.best.is_none() {
        search.improve(problem.tight()?);
    }
    Ok(search.best.map(|(_, pieces)| pieces).unwrap_or_default())
}

struct Search {
    bound: f64,
    /// Moves that may still be looked at.
    looks: u64,
    best: Option<(f64, Vec<Piece>)>,
}

impl Search {
    /// Whether the best is above the lower bound by no more than this part of it.
    fn within(&self, part: f64) -> bool {
        self.best.as_ref().is_some_and(|(cost, _)| *cost <= self.bound * (1.0 + part))
    }

    /// Moves pieces until nothing helps.
    fn improve(&mut self, mut state: State<'_, '_>) {
        while state.max() > self.bound * (1.0 + CLOSE) && self.looks > 0 {
            let limit = state.max() - self.bound * LEAST_GAIN;
            let mut finder = Finder::new(&state, limit);
            find(&mut finder, state.max(), self.bound);
            self.looks = self.looks.saturating_sub(finder.looked);
            let Some((_, step)) = finder.best else { break };
            state.apply(step);
        }
        self.offer(state);
    }

    /// Keeps the cheapest, the first of several.
    fn offer(&mut self, state: State<'_, '_>) {
        let cost = state.max();
        if self.best.as_ref().is_none_or(|(best, _)| cost < *best) {
            self.best = Some((cost, state.into_pieces()));
        }
    }
}

/// Looks for coarse moves first: those that cut no table cost a real run least.
fn find(finder: &mut Finder<'_, '_, '_>, max: f64, bound: f64) {
    let enough = max - (max - bound) * LARGE_GAIN;
    for look in Look::ALL {
        finder.look(look);
        if finder.best.is_some_and(|(worst, _)| worst < enough) {
            return;
        }
    }
}
