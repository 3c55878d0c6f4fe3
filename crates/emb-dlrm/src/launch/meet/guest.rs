//! Every other rank of a meeting: [`visit`].

use super::super::hello::{Hello, Reply, pack, receive, send};
use super::super::{Error, Point};
use super::Met;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// First pause before trying again; it doubles up to the longest. Rank 0 may start seconds later.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for one connection: a host that swallows packets is tried again.
const CONNECT: Duration = Duration::from_secs(3);
/// How much longer than rank 0 a guest waits, so that rank 0's word on who is missing reaches it.
const LONGER: Duration = Duration::from_secs(3);

/// Comes to rank 0, again and again until it is there, and waits for its answer.
pub(super) fn visit(at: &Point, me: &Hello, timeout: Duration) -> Result<Met, Error> {
    let deadline = Instant::now() + timeout;
    let mut pause = PAUSE;
    let bytes = pack(me).map_err(|error| Error::Meeting(error.to_string()))?;
    loop {
        let problem = match ask(at, &bytes, deadline) {
            Ok((Reply::All { hosts, blob }, line)) => {
                return Ok(Met { hosts, blob, lines: vec![line] });
            }
            Ok((Reply::Refused(why), _)) => {
                return Err(Error::Meeting(format!(
                    "rank {} of {} was sent away by rank 0 at {at}: {why}",
                    me.rank, me.world
                )));
            }
            Ok((Reply::Failed(why), _)) => return Err(Error::Meeting(why)),
            Err(problem) => problem,
        };
        if Instant::now() + pause >= deadline {
            return Err(Error::Meeting(format!(
                "rank {} of {} on {} did not meet rank 0 at {at} within {} s: {problem}",
                me.rank,
                me.world,
                me.host,
                timeout.as_secs_f64()
            )));
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

fn ask(at: &Point, hello: &[u8], deadline: Instant) -> io::Result<(Reply, TcpStream)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (at.host.as_str(), at.port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now()).min(CONNECT);
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => {
                send(&stream, hello, CONNECT)?;
                let reply = receive(&stream, deadline + LONGER).map_err(in_words)?;
                return Ok((reply, stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn in_words(error: io::Error) -> io::Error {
    let words = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            "it closed the connection without an answer"
        }
        io::ErrorKind::TimedOut => "it said nothing",
        io::ErrorKind::InvalidData => "what listens there is not emb",
        _ => return error,
    };
    io::Error::new(error.kind(), words)
}
