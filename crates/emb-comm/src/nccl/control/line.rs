//! A connection between two processes: [`Line`].

use super::message::Message;
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long writing may take. Messages are few and short: they fit into what the system keeps of a
/// connection, unless the peer has read nothing for very long.
const WRITE: Duration = Duration::from_secs(1);

/// When the system asks whether a host is still there that has said nothing, in seconds, and how
/// often. A host without power is found out after a minute, and no firewall in between forgets the
/// connection.
const IDLE: u64 = 30;
const AGAIN: u64 = 10;
const TIMES: u32 = 3;

/// A connection to a rank.
pub(super) struct Line {
    /// The rank at its other end.
    pub(super) rank: usize,
    pub(super) stream: TcpStream,
    /// Held by who writes, so that messages do not mix.
    writing: Mutex<()>,
    /// Whether nothing more is read.
    closed: AtomicBool,
    /// Whether the rank has said that it ends.
    pub(super) ended: AtomicBool,
}

impl Line {
    /// A connection that was made by other means, with nothing unread on it.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new(rank: usize, stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, Duration::from_secs(IDLE))?;
        sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(AGAIN))?;
        sockopt::set_tcp_keepcnt(&stream, TIMES)?;
        stream.set_write_timeout(Some(WRITE))?;
        // What is read was announced: this only guards against an announcement that was wrong.
        stream.set_read_timeout(Some(Duration::from_millis(10)))?;
        let (writing, closed, ended) =
            (Mutex::default(), AtomicBool::default(), AtomicBool::default());
        Ok(Self { rank, stream, writing, closed, ended })
    }

    /// Sends a message said of a rank. Whoever cannot be told finds out by waiting.
    pub(super) fn send(&self, of: usize, message: &Message) {
        let words = message.words(of);
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if (&self.stream).write_all(&bytes).is_err() {
            // Half a message may be out: nothing that follows would be understood.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Reads what has come: how many bytes, none at the end.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(into)
    }

    /// Nothing more is read.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether something may still come.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Ends it both ways; whoever waits for it wakes up.
    pub(super) fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
