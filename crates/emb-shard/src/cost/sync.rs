//! What a shard's replicas tell each other to be equal: [`Synced`].

use super::shard::{Adding, Asked};
use super::{GradientSum, ReplicaWay};
use crate::ReplicaSync;

/// Bytes that a replica has to do with to be equal to the others, a step.
#[derive(Clone, Copy, Default)]
pub(super) struct Synced {
    /// Summed or averaged: of `M` replicas each receives `(M - 1)/M` of them before and after.
    pub(super) reduced: f64,
    /// Told to all other replicas.
    pub(super) gathered: f64,
}

impl Adding<'_> {
    /// Bytes of a copy of what is summed, and of what all replicas tell. Whole weights are averaged
    /// where they are.
    pub(super) fn staged(&self, synced: Synced) -> f64 {
        let told = synced.gathered * f64::from(self.shape.mesh.replicas());
        match self.tier.sync {
            ReplicaSync::TouchedRows { every } => f64::from(every.get()) * (synced.reduced + told),
            ReplicaSync::Gradients => synced.reduced + told,
            _ => 0.0,
        }
    }

    /// What replicas tell each other, a step.
    pub(super) fn synced(&self, width: usize, rows: u64, asked: Asked, row_bytes: f64) -> Synced {
        let id = f64::from(self.workload.ids().bytes());
        let count = f64::from(self.options.count_bytes);
        match self.tier.sync {
            ReplicaSync::None => Synced::default(),
            ReplicaSync::Weights { every } => {
                Synced { reduced: rows as f64 * row_bytes / f64::from(every.get()), gathered: 0.0 }
            }
            // The first replica to touch a row between two syncs makes it travel, others no more.
            ReplicaSync::TouchedRows { every } => {
                let every = f64::from(every.get());
                Synced {
                    reduced: asked.of_world_since * row_bytes / every,
                    gathered: (asked.of_group_since * id + count) / every,
                }
            }
            ReplicaSync::Gradients => {
                let of = match self.options.replica_way {
                    ReplicaWay::Rings => self.workload.gradients(),
                    ReplicaWay::Direct => self.workload.synced(),
                };
                let sent = of.row_bytes(width) as f64;
                self.summed(rows as f64, asked, id, sent)
            }
            ReplicaSync::FullyShardedReplicas => {
                Synced { reduced: rows as f64 * row_bytes, gathered: 0.0 }
            }
        }
    }

    /// What the sum of gradients tells, on the way of fewest bytes where there is a choice; a row's
    /// gradient has `sent` bytes, its number `id`.
    fn summed(&self, rows: f64, asked: Asked, id: f64, sent: f64) -> Synced {
        let count = f64::from(self.options.count_bytes);
        let (touched, union) = (asked.of_group, asked.of_world);
        let gathered = Synced { reduced: 0.0, gathered: touched * (id + sent) + count };
        if self.options.gradient_sum == GradientSum::Gathered {
            return gathered;
        }
        // What is reduced goes to the one that sums it, and from there to all others. Touched rows
        // go there, those that any replica touched come back; counts of both travel as well.
        let scattered =
            Synced { reduced: f64::midpoint(touched, union) * (id + sent), gathered: 3.0 * count };
        let dense = Synced { reduced: rows * sent, gathered: count };
        let replicas = f64::from(self.shape.mesh.replicas());
        let bytes = |synced: Synced| 2.0 * synced.reduced / replicas + synced.gathered;
        let fewer = |a, b| if bytes(b) < bytes(a) { b } else { a };
        fewer(fewer(gathered, scattered), dense)
    }
}
