//! Whether a process failed by itself or lost a peer, as its exit code tells: [`exit_code`].

#[cfg(any(feature = "mpi", test))]
use super::status::JOB_ENDED;
use super::{PEER_FAILED, Place, Status};
use crate::{Error, sharded};
use emb_comm::{Failure, FailureKind};

/// The exit code of a process that a launcher started and whose run failed because of a peer; `None`
/// where the failure is its own, or where it has no peers. Whom it missed is told to `emb launch`.
pub fn exit_code(error: &Error) -> Option<u8> {
    if !matches!(Place::from_environment(), Ok(Some(_))) {
        return None;
    }
    of_peer(comm(error)?).then_some(PEER_FAILED)
}

/// The exit code of a process whose messages over MPI do not end, so that it ends the job: whether it is
/// for a peer, or for something of its own. Whom it missed is told to `emb launch`, which hears nothing
/// more of it.
#[cfg(any(feature = "mpi", test))]
pub(crate) fn last_words(error: &emb_comm::Error) -> u8 {
    if of_peer(error) { JOB_ENDED } else { 1 }
}

/// Whether a process failed because of a peer. Whom it missed is told to `emb launch`.
fn of_peer(error: &emb_comm::Error) -> bool {
    let (rank, failure) = match error {
        // Who did not come is not known: who stays when all others gave up.
        emb_comm::Error::Absent { .. } => return true,
        emb_comm::Error::Failed { rank, failure, .. } => (rank, failure),
        _ => return false,
    };
    if !is_of_peer(*rank, failure) {
        return false;
    }
    if let (FailureKind::Missing | FailureKind::Left, Some(status)) =
        (failure.kind(), Status::from_environment())
    {
        status.missing(failure.ranks());
    }
    true
}

/// What ranks say of each other in an error.
fn comm(error: &Error) -> Option<&emb_comm::Error> {
    match error {
        Error::On { source, .. } => comm(source),
        Error::Comm(comm) | Error::Sharded(sharded::Error::Comm(comm)) => Some(comm),
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

#[cfg(test)]
mod tests {
    use super::*;
    use emb_comm::{Collective, Options};
    use std::sync::Mutex;
    use std::time::Duration;

    /// What each of two ranks would end the job with after `work`.
    fn codes(work: fn(&mut emb_comm::Local) -> emb_comm::Result<()>) -> [Option<u8>; 2] {
        let codes = Mutex::new([None; 2]);
        let run = emb_comm::run(2, &Options::default(), |ranks| {
            let done = work(ranks);
            if let Err(error) = &done {
                codes.lock().expect("no rank panics")[ranks.rank()] = Some(last_words(error));
            }
            done
        });
        run.expect_err("ranks that fail");
        codes.into_inner().expect("no rank panics")
    }

    #[test]
    fn peers_that_never_came_are_not_the_fault_of_who_waited() {
        let (call, place) = ("MPI_Init_thread", "rank 0".to_owned());
        let absent = emb_comm::Error::Absent { call, place, time: Duration::from_mins(2) };
        assert!(of_peer(&absent));
        let (call, place, problem) = ("MPI_Init_thread", "rank 0".to_owned(), "no".to_owned());
        assert!(!of_peer(&emb_comm::Error::Mpi { call, place, problem }));
    }

    #[test]
    fn a_job_that_ends_for_a_rank_tells_whose_fault_it_is() {
        // Rank 1 gives up: it is a peer that rank 0 lost.
        let gives_up = codes(|ranks| {
            if ranks.rank() == 1 {
                ranks.abort("no more");
                return Ok(());
            }
            ranks.barrier()
        });
        assert_eq!(gives_up, [Some(JOB_ENDED), None]);
        // Ranks that call different things would do so again.
        let differ = codes(|ranks| match ranks.rank() {
            0 => ranks.barrier(),
            _ => ranks.all_reduce(&mut [1.0_f32]),
        });
        assert_eq!(differ, [Some(1), Some(1)]);
    }
}
