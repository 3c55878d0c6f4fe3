//! Where the ids of a batch are in the order of their table: [`Places`].

use emb_kernels::{FeatureMap, JaggedRef};
use emb_shard::{Plan, RowOrder};

/// The orders of rows in which tiers are cut.
#[derive(Debug)]
pub(super) struct Places {
    /// By feature; `None` for the order of the table.
    orders: Vec<Option<RowOrder>>,
}

impl Places {
    pub(super) fn new(plan: &Plan, map: &FeatureMap) -> Self {
        let placed = plan.placed().as_slice();
        let orders = map.features().iter().map(|feature| placed[feature.table].order.clone());
        Self { orders: orders.collect() }
    }

    /// The place of every id of a batch; `memory` is used where they differ from the ids.
    pub(super) fn of<'a>(&self, batch: JaggedRef<'a>, memory: &'a mut Vec<i64>) -> &'a [i64] {
        if self.orders.iter().all(Option::is_none) {
            return batch.values;
        }
        memory.clear();
        for (f, order) in self.orders.iter().enumerate() {
            let ids = &batch.values[batch.feature_range(f)];
            match order {
                None => memory.extend_from_slice(ids),
                Some(order) => {
                    memory.extend(ids.iter().map(|&id| order.place(id as u64) as i64));
                }
            }
        }
        memory
    }
}
