//! What owners of columns of one row tell each other before a row-wise rule runs: [`Statistics`].

use super::shape::MeshShape;
use super::volume::Traffic;

/// Bytes of the statistic of one touched row: a number in 64 bits.
pub(super) const STATISTIC_BYTES: f64 = 8.0;

/// Bytes between owners of a group, by level; nothing until columns are cut.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// `[levels][positions of one group]` where all groups lie alike, else of all groups.
    levels: Vec<Vec<(f64, f64)>>,
}

impl Statistics {
    /// Adds bytes that position `from` of every group sends position `to`.
    pub(super) fn add(&mut self, shape: &MeshShape, (from, to): (u32, u32), bytes: f64) {
        if from == to {
            return;
        }
        let group = shape.mesh.group_ranks();
        let groups = if shape.alike { 1 } else { shape.mesh.replicas() };
        if self.levels.is_empty() {
            self.levels = vec![vec![(0.0, 0.0); (groups * group) as usize]; shape.levels()];
        }
        for first in (0..groups).map(|number| number * group) {
            let (from, place) = ((first + from) as usize, (first + to) as usize);
            let inside = |level: &usize| {
                let run = shape.run(*level, from);
                (run.start..run.end).contains(&to)
            };
            let level = (0..shape.levels()).find(inside);
            let level = &mut self.levels[level.expect("invariant: the last level has all ranks")];
            level[from].0 += bytes;
            level[place].1 += bytes;
        }
    }

    /// What the rank at `place` sends and receives over `level`.
    pub(super) fn of(&self, shape: &MeshShape, level: usize, place: usize) -> Traffic {
        let inside = level.checked_sub(1).map_or(1, |inner| shape.run(inner, place).count());
        let bytes = self.levels.get(level).map(|bytes| bytes[place % bytes.len()]);
        let (sent, received) = bytes.unwrap_or_default();
        Traffic {
            // What is left after parts were taken away again may be a little below zero.
            sent: sent.max(0.0),
            received: received.max(0.0),
            peers: shape.run(level, place).count() - inside,
        }
    }
}
