//! The meeting of ranks before any transport joins them: [`meet`].
//!
//! Rank 0 listens, the others come, each with version, meeting, world, rank and host. When all are
//! there, rank 0 tells each of them all hosts, and the blob that it brought. Whoever is no rank of
//! this meeting is sent away, and can neither end it nor hold it up: rank 0 waits for nobody's
//! bytes in particular.

mod guest;
mod host;

use super::hello::Hello;
use super::{Error, Point};
use std::net::TcpStream;
use std::time::Duration;

/// Who comes to a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// What tells this meeting from others, as [`meeting_name`](super::meeting_name) gives it.
    pub meeting: String,
    /// Rank of this process.
    pub rank: usize,
    /// Ranks that meet.
    pub world: usize,
    /// Host of this process, as the others are to know it.
    pub host: String,
}

/// What every rank knows after a meeting.
#[derive(Debug)]
pub struct Met {
    /// The host of every rank.
    pub hosts: Vec<String>,
    /// What rank 0 brought.
    pub blob: Vec<u8>,
    /// The connections they met by, to be used further: on rank 0 those to ranks 1, 2, .., on another
    /// that to rank 0. Nothing is unread on them.
    pub lines: Vec<TcpStream>,
}

/// Meets the other ranks at `at`. Rank 0 brings `blob`, at most 64 KiB; that of others is not looked
/// at.
///
/// # Errors
/// After `timeout`: who did not come, and who was sent away; on a guest, why it was sent away, or
/// why rank 0 could not be reached. The port is taken.
pub fn meet(at: &Point, name: &Name, blob: &[u8], timeout: Duration) -> Result<Met, Error> {
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        meeting: name.meeting.clone(),
        world: name.world,
        rank: name.rank,
        host: name.host.clone(),
    };
    meet_as(at, &hello, blob, timeout)
}

fn meet_as(at: &Point, hello: &Hello, blob: &[u8], timeout: Duration) -> Result<Met, Error> {
    if hello.rank >= hello.world {
        let Hello { rank, world, .. } = hello;
        return Err(Error::Meeting(format!("rank {rank} is none of a meeting of {world}")));
    }
    if blob.len() > 1 << 16 {
        let bytes = blob.len();
        return Err(Error::Meeting(format!(
            "a meeting hands out 64 KiB at most, not {bytes} bytes"
        )));
    }
    if hello.rank == 0 {
        host::receive(at, hello, blob, timeout)
    } else {
        guest::visit(at, hello, timeout)
    }
}

/// "rank 2", "ranks 0, 1 and 3".
pub(super) fn list(ranks: &[usize]) -> String {
    let names: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    match &names[..] {
        [] => "no rank".to_owned(),
        [rank] => format!("rank {rank}"),
        [rest @ .., last] => format!("ranks {} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests;
