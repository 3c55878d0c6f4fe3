//! A checkpoint whose place in the data has another name: [`reposition`].

use super::manifest::{Manifest, Position};
use crate::Result;
use std::path::Path;

/// Says of the checkpoint in `dir` where in the data it is, without writing its weights again: the last
/// row of an epoch is, once that is known to be over, the beginning of the next. `false` where the
/// checkpoint that lies there is not this one: another run may save to the folder.
///
/// # Errors
/// The disk failed.
pub(crate) fn reposition(dir: &Path, at: Position) -> Result<bool> {
    let Ok(mut manifest) = Manifest::read(dir) else { return Ok(false) };
    if (manifest.step, manifest.samples) != (at.step, at.samples) {
        return Ok(false);
    }
    if manifest.position() != at {
        (manifest.row, manifest.epoch) = (at.row, at.epoch);
        manifest.publish(dir)?;
    }
    Ok(true)
}
