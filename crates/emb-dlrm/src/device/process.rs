//! The one rank of this process among ranks that are processes: [`one`].

use super::threads::all;
use crate::Result;
use emb_comm::Collective;

/// Does the work of the rank that lives here with its end of all ranks, and hands back the world it
/// came from, to be ended in order. Before an error is returned, the other processes know of it.
///
/// # Errors
/// What the work returns.
pub(super) fn one<C: Collective, T>(
    mut world: C,
    work: impl FnOnce(C) -> Result<T>,
) -> Result<(C, T)> {
    let done = all(&mut world).and_then(work);
    match done {
        Ok(done) => Ok((world, done)),
        Err(error) => {
            // Where another rank failed first, this changes nothing of what is known.
            world.abort(&error.to_string());
            Err(error)
        }
    }
}
