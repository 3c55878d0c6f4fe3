//! Where a run begins: at nothing, at a checkpoint to load, or where it was interrupted.

use super::trainer::Trainer;
use crate::checkpoint::{self, Manifest, Position, to_resume};
use crate::config::{Config, Length, Origin};
use crate::{Embeddings, Result};
use emb_comm::Collective;
use emb_kernels::Backend;
use std::path::Path;

/// Where a run is in its data when it begins, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    /// Rows of the epoch that were read.
    pub(super) row: u64,
    /// Passes over the data that were finished.
    pub(super) epoch: u64,
    /// Whether it goes on after an interruption, maybe of a run that was done.
    pub(super) resumed: bool,
    /// The last step, counted from the beginning of training; [`u64::MAX`] where epochs end it.
    pub(super) last_step: u64,
    /// Passes after which it ends; [`u64::MAX`] where steps end it.
    pub(super) last_epoch: u64,
}

impl Begin {
    /// Loads what the configuration says. Every rank calls it.
    ///
    /// # Errors
    /// A checkpoint that can't be read, or is of another model.
    pub(super) fn load<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
        trainer: &mut Trainer<B, E, C>,
        config: &Config,
    ) -> Result<Self> {
        let resumed = to_resume(config)?.is_some();
        let dir = if resumed { config.save.as_deref() } else { config.load.as_deref() };
        let mut at = Position::default();
        if let Some(dir) = dir {
            let slots = trainer.dense_slots();
            at = checkpoint::load(dir, &mut trainer.backend, &mut trainer.model, &slots)?.position;
            trainer.resume(at.step, at.samples);
            if !resumed {
                at = Position { row: first_row(dir, config, at)?, epoch: 0, ..at };
            } else if config.data == Origin::Synthetic {
                at.row = at.samples;
            }
        }
        let begun = if resumed { 0 } else { at.step };
        let (last_step, last_epoch) = match config.length {
            Length::Steps(steps) => (begun.saturating_add(steps), u64::MAX),
            Length::Epochs(epochs) => (u64::MAX, epochs),
        };
        Ok(Self { row: at.row, epoch: at.epoch, resumed, last_step, last_epoch })
    }
}

/// Where a run that goes on from a checkpoint reads first: generated data and the very files of
/// the earlier run go on where it stopped, other files begin at their first row.
fn first_row(dir: &Path, config: &Config, at: Position) -> Result<u64> {
    Ok(match config.data {
        Origin::Synthetic => at.samples,
        Origin::Files(_) if Manifest::read(dir)?.options.data == config.options.data => at.row,
        Origin::Files(_) => 0,
    })
}
