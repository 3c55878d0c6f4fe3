//! What an operation over messages asks of the world it is in while it waits.

use super::Local;
use super::turn::Turn;
use super::world::World;
use crate::failure::{Failure, FailureKind};
#[cfg(feature = "mpi")]
use crate::sync::Ordering;
use crate::{Error, Host, Result};
use std::sync::Arc;

impl Local {
    /// What the sets of this rank share.
    pub(crate) fn shared(&self) -> Arc<World<Host>> {
        Arc::clone(&self.world)
    }

    /// The step that this rank is in.
    #[cfg(feature = "mpi")]
    pub(crate) fn step(&self) -> u64 {
        self.world.step(self.world_rank())
    }
}

impl Turn<'_, Host> {
    /// This rank, as numbered in the world.
    #[cfg(feature = "mpi")]
    pub(crate) fn world_rank(&self) -> usize {
        self.rank()
    }

    /// The members of the set, as numbered in the world.
    pub(crate) fn members(&self) -> &[usize] {
        &self.group.members
    }

    /// The step that this rank is in.
    pub(crate) fn step(&self) -> u64 {
        self.world.step(self.rank())
    }

    /// What the sets of this rank share.
    #[cfg(feature = "mpi")]
    pub(crate) fn shared(&self) -> &World<Host> {
        self.world
    }

    /// Fails where the world has failed.
    pub(crate) fn still_well(&self) -> Result<()> {
        match self.world.failure() {
            Some(failure) => Err(self.world.error(self.operation, self.rank(), failure)),
            None => Ok(()),
        }
    }

    /// Fails because these ranks have not come, or one of them has left.
    pub(crate) fn without(&self, kind: FailureKind, ranks: Vec<usize>, message: String) -> Error {
        let step = self.step();
        self.fail(Failure::new(kind, ranks, Some(self.operation), step, message))
    }

    /// Says that this rank waits for another one of the world.
    #[cfg(feature = "mpi")]
    pub(crate) fn waits_for(&self, rank: Option<usize>) {
        let waits_for = &self.world.ranks[self.rank()].waits_for;
        waits_for.store(rank.map_or(0, |rank| rank as u64 + 1), Ordering::Relaxed);
    }
}
