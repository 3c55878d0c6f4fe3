//! Work and bytes placed on every rank so far: [`Loads`].

use crate::{Bytes, Mesh};
use std::cmp::Ordering;

/// Work and bytes placed on every rank so far, `[W]` each.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    cost: Vec<f64>,
    bytes: Vec<u64>,
    budget: u64,
}

impl Loads {
    /// Empty ranks with `budget` bytes each; `None` for no limit.
    pub(crate) fn new(world: u32, budget: Option<Bytes>) -> Self {
        let budget = budget.map_or(u64::MAX, Bytes::get);
        Self { cost: vec![0.0; world as usize], bytes: vec![0; world as usize], budget }
    }

    pub(crate) fn budget(&self) -> Bytes {
        Bytes::new(self.budget)
    }

    /// Adds a part to position `position` of every group.
    pub(crate) fn add(&mut self, mesh: Mesh, position: u32, cost: f64, bytes: Bytes) {
        for group in 0..mesh.replicas() {
            let rank = mesh.rank_at(group, position).get() as usize;
            self.cost[rank] += cost;
            self.bytes[rank] = self.bytes[rank].saturating_add(bytes.get());
        }
    }

    /// Bytes left on the fullest of the ranks at position `position`.
    pub(crate) fn room(&self, mesh: Mesh, position: u32) -> Bytes {
        Bytes::new(self.budget.saturating_sub(self.at(mesh, position).bytes))
    }

    /// The `count` blocks of `width` consecutive positions with least work (then fewest bytes, then
    /// lowest number) that have room for `bytes` on each position, in the order of their numbers;
    /// else the most room of any block.
    pub(crate) fn least(
        &self,
        mesh: Mesh,
        width: u32,
        count: u32,
        bytes: Bytes,
    ) -> Result<Vec<u32>, Bytes> {
        let blocks = mesh.group_ranks() / width;
        let all = (0..blocks).map(|block| {
            let positions = block * width..(block + 1) * width;
            let loads = positions.map(|position| self.at(mesh, position));
            let worst = loads.fold(Load::default(), Load::worse);
            (block, worst)
        });
        let mut fitting: Vec<(u32, Load)> =
            all.clone().filter(|(_, load)| self.fits(*load, bytes)).collect();
        if fitting.len() < count as usize {
            let fullest = all.map(|(_, load)| load.bytes).min().unwrap_or(0);
            return Err(Bytes::new(self.budget.saturating_sub(fullest)));
        }
        let order = |a: &(u32, Load), b: &(u32, Load)| a.1.order(b.1).then(a.0.cmp(&b.0));
        if fitting.len() > count as usize {
            fitting.select_nth_unstable_by(count as usize - 1, order);
            fitting.truncate(count as usize);
        }
        let mut chosen: Vec<u32> = fitting.into_iter().map(|(block, _)| block).collect();
        chosen.sort_unstable();
        Ok(chosen)
    }

    fn fits(&self, load: Load, bytes: Bytes) -> bool {
        load.bytes.checked_add(bytes.get()).is_some_and(|sum| sum <= self.budget)
    }

    fn at(&self, mesh: Mesh, position: u32) -> Load {
        let ranks = (0..mesh.replicas()).map(|group| mesh.rank_at(group, position).get() as usize);
        let loads = ranks.map(|rank| Load { cost: self.cost[rank], bytes: self.bytes[rank] });
        loads.fold(Load::default(), Load::worse)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    cost: f64,
    bytes: u64,
}

impl Load {
    fn worse(self, other: Self) -> Self {
        Self { cost: self.cost.max(other.cost), bytes: self.bytes.max(other.bytes) }
    }

    fn order(self, other: Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.bytes.cmp(&other.bytes))
    }
}
