//! Replicas made equal: the mean of weights and of every optimizer slot.

use super::error::Result;
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::Backend;
use emb_shard::ReplicaSync;

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Makes the replicas of every table equal, if they were updated since they last were: before
    /// an evaluation, a checkpoint, the end of a run. Every rank calls it.
    ///
    /// Weights and optimizer state become `w0 + sum(w_m - w0) / M`, in replica order, so that equal
    /// replicas stay bitwise as they are, and all are bitwise equal afterwards.
    ///
    /// # Errors
    /// A peer that fails, a device that fails.
    pub fn sync(&mut self, backend: &mut B) -> Result<()> {
        if self.unsynced == 0 {
            return Ok(());
        }
        let done = self.classes.iter_mut().try_for_each(|class| class.sync(backend, |_| true));
        done.map_err(|error| self.give_up(error))?;
        self.unsynced = 0;
        Ok(())
    }

    /// Steps since all replicas were last made equal.
    pub fn unsynced_steps(&self) -> u64 {
        self.unsynced
    }

    /// The syncs that are due after step `step`.
    pub(super) fn after_step(&mut self, backend: &mut B, step: u64) -> Result<()> {
        let due = |every: u64| step.is_multiple_of(every);
        let mut all = true;
        for class in &mut self.classes {
            if class.replicas.is_some() {
                class.sync(backend, due)?;
                all &= class.periods.iter().all(|&every| due(every));
            }
        }
        self.unsynced = if all { 0 } else { self.unsynced + 1 };
        Ok(())
    }
}

impl<B: Backend, C: Collective> Class<B, C> {
    /// Averages the tables whose period is `due`: two collectives, however many tables.
    fn sync(&mut self, backend: &mut B, due: impl Fn(u64) -> bool) -> Result<()> {
        if !self.periods.iter().any(|&every| due(every)) {
            return Ok(());
        }
        let Some(replicas) = &mut self.replicas else { return Ok(()) };
        let of = |sync: &ReplicaSync| match sync {
            ReplicaSync::Weights { every } => due(u64::from(every.get())),
            _ => false,
        };
        let chosen: Vec<usize> = (0..self.syncs.len()).filter(|&t| of(&self.syncs[t])).collect();
        let mut mine = Vec::new();
        for &t in &chosen {
            let (weights, state) = read(backend, &mut self.tables, t)?;
            mine.extend_from_slice(&weights);
            for slot in &state {
                mine.extend_from_slice(slot);
            }
        }
        let mean = mean(replicas, &mine)?;
        let mut at = 0;
        for &t in &chosen {
            at += write_changed(backend, &mut self.tables, t, &mine[at..], &mean[at..])?;
        }
        Ok(())
    }
}

/// All rows of a table: weights, and each slot.
pub(super) fn read<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    table: usize,
) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
    let spec = &B::specs(tables)[table];
    let mut weights = vec![0.0; spec.rows as usize * spec.dim];
    let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
    backend.read_rows(tables, table, 0, &mut weights, &mut state)?;
    Ok((weights, state))
}

/// The mean over the replicas, the same bits on each: every replica takes the mean of its share.
fn mean<C: Collective>(replicas: &mut C, mine: &[f32]) -> Result<Vec<f32>> {
    let (world, rank) = (replicas.world(), replicas.rank());
    let start = |m: usize| mine.len() / world * m + m.min(mine.len() % world);
    let shares: Vec<usize> = (0..world).map(|m| start(m + 1) - start(m)).collect();
    let share = shares[rank];
    let mut all = vec![0.0; share * world];
    replicas.all_to_all_v::<f32>(mine, &shares, &mut all, &vec![share; world])?;
    let mean: Vec<f32> = (0..share)
        .map(|k| {
            let first = f64::from(all[k]);
            let apart = (0..world).map(|m| f64::from(all[m * share + k]) - first);
            (first + apart.sum::<f64>() / world as f64) as f32
        })
        .collect();
    let mut whole = vec![0.0; mine.len()];
    replicas.all_gather_v::<f32>(&mean, &mut whole, &shares)?;
    Ok(whole)
}

/// Writes the rows that differ, so that memory of rows that nobody touched stays untouched.
/// Returns the elements of the table.
fn write_changed<B: Backend>(
    backend: &mut B,
    tables: &mut B::Tables,
    table: usize,
    old: &[f32],
    new: &[f32],
) -> Result<usize> {
    let spec = &B::specs(tables)[table];
    let rows = spec.rows as usize;
    // Elements of a row in each part: weights, then the slots.
    let mut widths = vec![spec.dim];
    widths.extend(spec.optimizer.slots().iter().map(|slot| match slot.extent {
        emb_optim::Extent::Row => 1,
        emb_optim::Extent::Element => spec.dim,
    }));
    let mut starts = vec![0];
    for (p, width) in widths.iter().enumerate() {
        starts.push(starts[p] + rows * width);
    }
    let row = |p: usize, r: usize| starts[p] + r * widths[p]..starts[p] + (r + 1) * widths[p];
    for r in 0..rows {
        let same = (0..widths.len()).all(|p| {
            let (old, new) = (&old[row(p, r)], &new[row(p, r)]);
            old.iter().zip(new).all(|(old, new)| old.to_bits() == new.to_bits())
        });
        if !same {
            let state: Vec<Vec<f32>> = (1..widths.len()).map(|p| new[row(p, r)].to_vec()).collect();
            backend.write_rows(tables, table, r as u64, &new[row(0, r)], &state)?;
        }
    }
    Ok(starts[widths.len()])
}
