//! Whether a process failed by itself or lost a peer, as its exit code tells: [`exit_code`].

use super::{PEER_FAILED, Place, Status};
use crate::{Error, sharded};
use emb_comm::{Failure, FailureKind};

/// The exit code of a process that a launcher started and whose run failed because of a peer; `None`
/// where the failure is its own, or where it has no peers. Whom it missed is told to `emb launch`.
pub fn exit_code(error: &Error) -> Option<u8> {
    if !matches!(Place::from_environment(), Ok(Some(_))) {
        return None;
    }
    let (rank, failure) = failure(error)?;
    if !is_of_peer(rank, failure) {
        return None;
    }
    if let (FailureKind::Missing | FailureKind::Left, Some(status)) =
        (failure.kind(), Status::from_environment())
    {
        status.missing(failure.ranks());
    }
    Some(PEER_FAILED)
}

/// The failure of a world that an error tells of, and the rank that tells.
fn failure(error: &Error) -> Option<(usize, &Failure)> {
    match error {
        Error::On { source, .. } => failure(source),
        Error::Comm(comm) | Error::Sharded(sharded::Error::Comm(comm)) => match comm {
            emb_comm::Error::Failed { rank, failure, .. } => Some((*rank, failure)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether it happened to another than `rank`. Ranks that call different things would do so again.
fn is_of_peer(rank: usize, failure: &Failure) -> bool {
    let others = !failure.ranks().contains(&rank);
    match failure.kind() {
        FailureKind::Missing | FailureKind::Left => true,
        FailureKind::Error | FailureKind::Panic | FailureKind::Aborted => others,
        _ => false,
    }
}
