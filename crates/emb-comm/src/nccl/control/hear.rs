//! The thread that listens to the other processes: [`hear`].

use super::line::Line;
use super::message::{Inbox, Left, Message};
use super::{EVERY, Shared, lock};
use crate::failure::{Failure, FailureKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const READ: usize = 4096;

/// Takes in what others say until all connections have ended, or this process ends its part.
pub(super) fn hear(shared: &Shared) {
    let mut inboxes: Vec<Inbox> = shared.lines.iter().map(|_| Inbox::new(shared.size)).collect();
    let mut room = [0; READ];
    while !shared.ends.load(Ordering::Acquire) {
        let open: Vec<usize> =
            (0..shared.lines.len()).filter(|&at| shared.lines[at].is_open()).collect();
        if open.is_empty() {
            return;
        }
        let due = lock(&shared.desk).due();
        for at in wait(&shared.lines, &open, due) {
            let line = &shared.lines[at];
            match line.read(&mut room) {
                Ok(0) => shared.lost(line, "ended without a word"),
                Ok(long) => {
                    inboxes[at].add(&room[..long]);
                    shared.take_in(line, &mut inboxes[at]);
                }
                Err(error) if waits(&error) => {}
                Err(_) => shared.lost(line, "ended without a word"),
            }
        }
        shared.tell_of_departures();
        shared.conclude();
    }
}

/// Whether an error of reading only says that nothing is there yet.
fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Waits until something has come on some of the connections, or until `due`; which they are.
fn wait(lines: &[Line], open: &[usize], due: Option<Instant>) -> Vec<usize> {
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    // Rounded up: a wait that ends a little early would be waited again.
    let left = left.map(|left| left + Duration::from_millis(1));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    let mut asked: Vec<PollFd<'_>> =
        open.iter().map(|&at| PollFd::new(&lines[at].stream, PollFlags::IN)).collect();
    if poll(&mut asked, timeout.as_ref()).is_err() {
        // A signal came, or the system has no memory: the connections are asked again.
        std::thread::sleep(Duration::from_millis(1));
        return Vec::new();
    }
    let ready = open.iter().zip(&asked).filter(|(_, asked)| !asked.revents().is_empty());
    ready.map(|(&at, _)| at).collect()
}

impl Shared {
    fn take_in(&self, line: &Line, inbox: &mut Inbox) {
        loop {
            match inbox.next() {
                // Rank 0 speaks for all.
                Ok(Some((of, _))) if of >= self.size || (self.me == 0 && of != line.rank) => {
                    return self.lost(line, "says what no rank says");
                }
                Ok(Some((of, message))) => self.hears(line, of, message),
                Ok(None) => return,
                Err(_) => return self.lost(line, "says what no rank says"),
            }
        }
    }

    fn hears(&self, line: &Line, of: usize, message: Message) {
        match message {
            Message::Failed(failure) => self.fails(failure, line.rank),
            Message::Left(left) => {
                self.departs(of, left);
                self.keeps(of, left);
            }
            Message::Ends(step) => {
                line.ended.store(true, Ordering::Release);
                let left = Left { set: EVERY, begun: 0, step, size: self.size as u64 };
                self.departs(of, left);
                self.keeps(of, left);
            }
            Message::Late(late) if self.me == 0 => self.inquire(late),
            Message::Asks { number, copy } if self.me != 0 => {
                let place = self.place(copy);
                self.send(self.me, &Message::Place { number, place }, self.me);
            }
            Message::Place { number, place } if self.me == 0 => self.answered(of, number, place),
            Message::Late(_) | Message::Asks { .. } | Message::Place { .. } => {}
        }
    }

    /// Rank 0 keeps a departure for those who are not told yet.
    fn keeps(&self, rank: usize, left: Left) {
        if self.me == 0 {
            lock(&self.desk).leave(rank, left, self.size);
        }
    }

    /// A connection has ended. Unless its rank has said that it ends, something has happened to it.
    fn lost(&self, line: &Line, how: &str) {
        line.close();
        let well = line.ended.load(Ordering::Acquire) || self.ends.load(Ordering::Acquire);
        if well || self.root.has_failed() {
            return;
        }
        let (rank, step) = (line.rank, self.step());
        let message = format!(
            "rank {rank} is gone: its connection {how} while rank {} was in step {step}",
            self.me
        );
        self.fails(Failure::new(FailureKind::Left, vec![rank], None, step, message), rank);
    }
}
