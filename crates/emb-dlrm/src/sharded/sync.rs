//! Replicas made equal: the mean of weights and of every optimizer slot.

use super::ShardedEmbeddings;
use super::beside::{Beside, replicas};
use super::error::Result;
use super::stored::StoredShards;
use emb_comm::Collective;
use emb_kernels::{Backend, TableSpec};
use emb_optim::Extent;

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Makes the replicas of every table equal, if they were updated since they last were: before
    /// an evaluation, a checkpoint, the end of a run. Every rank calls it.
    ///
    /// Weights and optimizer state become `w0 + sum(w_m - w0) / M`, in replica order, so that equal
    /// replicas stay bitwise as they are, and all are bitwise equal afterwards. With replica rule
    /// `history` the squares that each replica kept for itself are added up instead.
    ///
    /// # Errors
    /// A peer that fails, a device that fails.
    pub fn sync(&mut self, backend: &mut B) -> Result<()> {
        let done = self.bring_back().and_then(|()| {
            let mut stored = self.classes.iter_mut().map(|class| &mut class.stored);
            if self.unsynced == 0 {
                Ok(())
            } else {
                stored.try_for_each(|s| s.sync(backend, |_| true))
            }
        });
        done.map_err(|error| self.give_up(error))?;
        self.unsynced = 0;
        Ok(())
    }

    /// Makes replicas equal on a thread beside this one from now on, while this one goes on with what
    /// needs no rows: the shards are back before the next look-up. Every rank of `world`, from which
    /// the collection was made, calls it, before the first step; results are the same bits.
    ///
    /// # Errors
    /// A peer that fails, a device without room for another stream, no threads left.
    pub fn sync_beside(&mut self, world: &mut C, backend: &B) -> Result<()>
    where
        C: 'static,
    {
        if self.classes.iter().all(|class| class.stored.periods.is_empty()) {
            return Ok(());
        }
        self.bring_back()?;
        let mut apart = world.duplicate()?;
        for class in &mut self.classes {
            let stored = &mut class.stored;
            stored.replicas = replicas(&mut apart, &class.members)?;
            stored.apart = true;
        }
        self.beside = Some(Beside::new(self.classes.len(), world.rank(), backend.another()?)?);
        Ok(())
    }

    /// Waits for shards that are being made equal to their replicas.
    pub(super) fn bring_back(&mut self) -> Result<()> {
        let Self { beside, classes, trace, .. } = self;
        match beside {
            Some(beside) if beside.is_busy() => trace.phase("sync wait", || {
                beside.finish(|class, stored| classes[class].stored = stored)
            }),
            _ => Ok(()),
        }
    }

    /// Steps since all replicas were last made equal.
    pub fn unsynced_steps(&self) -> u64 {
        self.unsynced
    }

    /// The syncs that are due after step `step`.
    pub(super) fn after_step(&mut self, backend: &mut B, step: u64) -> Result<()> {
        let mut all = true;
        for (number, class) in self.classes.iter_mut().enumerate() {
            let stored = &mut class.stored;
            all &= stored.periods.iter().all(|&every| step.is_multiple_of(every));
            match &mut self.beside {
                Some(beside) if stored.is_due(step) => {
                    class.synced = stored.replicas.as_ref().map(C::meters).unwrap_or_default();
                    beside.start(number, step, stored)?;
                }
                _ => stored.sync_step(backend, step)?,
            }
        }
        self.unsynced = if all { 0 } else { self.unsynced + 1 };
        Ok(())
    }
}

impl<B: Backend, C: Collective> StoredShards<B, C> {
    /// Whether any sync is due after step `step`.
    fn is_due(&self, step: u64) -> bool {
        self.replicas.is_some() && self.periods.iter().any(|&every| step.is_multiple_of(every))
    }

    /// The syncs that are due after step `step`.
    pub(super) fn sync_step(&mut self, backend: &mut B, step: u64) -> Result<()> {
        self.label(step);
        self.sync(backend, |every| step.is_multiple_of(every))
    }

    /// Averages the tables whose period is `due`: two collectives for every
    /// [`ROUND`](super::rounds::ROUND) elements, one between two replicas, however many tables; and
    /// two more where only touched rows travel.
    fn sync(&mut self, backend: &mut B, due: impl Fn(u64) -> bool) -> Result<()> {
        if !self.periods.iter().any(|&every| due(every)) {
            return Ok(());
        }
        let Self { replicas, tables, syncs, touched_since, sizes, averaging, .. } = self;
        let Some(replicas) = replicas else { return Ok(()) };
        averaging.select(replicas, syncs, touched_since, sizes, due)?;
        averaging.run(replicas, backend, tables)
    }
}

/// Rows `first..first + rows` of a stored part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) table: usize,
    pub(super) first: usize,
    pub(super) rows: usize,
}

/// Rows of a table: weights, and each slot.
pub(super) fn read<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    piece: &Piece,
) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
    let spec = &B::specs(tables)[piece.table];
    let mut weights = vec![0.0; piece.rows * spec.dim];
    let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
    backend.read_rows(tables, piece.table, piece.first as u64, &mut weights, &mut state)?;
    Ok((weights, state))
}

/// Elements of a row of the weights and of each slot.
pub(super) fn widths(spec: &TableSpec) -> Vec<usize> {
    let slots = spec.optimizer.slots().iter().map(|slot| match slot.extent {
        Extent::Row => 1,
        Extent::Element => spec.dim,
    });
    std::iter::once(spec.dim).chain(slots).collect()
}
