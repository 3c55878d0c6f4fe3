//! Rank 0 of a meeting: [`receive`].

use super::super::hello::{HEAD, Hello, MOST_HELLO, Reply, pack, send, unpack};
use super::super::{Error, Point};
use super::{Met, list};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a stranger may take to say who it is. A rank says so at once.
const HELLO: Duration = Duration::from_secs(5);
/// How long writing a reply may take: it fits into what the system keeps of a connection.
const REPLY: Duration = Duration::from_secs(5);
/// Pause between two looks at all connections. Meetings are rare; waiting ranks leave the
/// processor to others.
const PAUSE: Duration = Duration::from_millis(5);
/// Connections beyond the world that may be there without having said who they are.
const STRANGERS: usize = 64;
/// Reasons for sending somebody away that an error tells of.
const REASONS: usize = 4;

/// A connection that has not said who it is.
struct Caller {
    stream: TcpStream,
    said: Vec<u8>,
    until: Instant,
}

/// A rank that is there.
struct Guest {
    stream: TcpStream,
    host: String,
}

struct Meeting<'a> {
    me: &'a Hello,
    callers: Vec<Caller>,
    /// By rank; that of rank 0 stays empty.
    guests: Vec<Option<Guest>>,
    /// Why ranks were sent away.
    refused: Vec<String>,
}

/// Waits for all other ranks and answers them.
pub(super) fn receive(
    at: &Point,
    me: &Hello,
    blob: &[u8],
    timeout: Duration,
) -> Result<Met, Error> {
    let deadline = Instant::now() + timeout;
    if me.world == 1 {
        let (hosts, blob) = (vec![me.host.clone()], blob.to_vec());
        return Ok(Met { hosts, blob, lines: Vec::new() });
    }
    let listener = listen(at, deadline)?;
    let guests = (0..me.world).map(|_| None).collect();
    let mut meeting = Meeting { me, callers: Vec::new(), guests, refused: Vec::new() };
    while !meeting.all_are_there() {
        if Instant::now() >= deadline {
            return Err(meeting.give_up(at, timeout));
        }
        meeting.let_in(&listener);
        meeting.listen_to_callers();
        std::thread::sleep(PAUSE);
    }
    meeting.tell_all(blob)
}

/// Listens where rank 0 is expected. A port that another process of the same kind is just leaving
/// is tried again.
fn listen(at: &Point, deadline: Instant) -> Result<TcpListener, Error> {
    let failed = |what: &str, error: io::Error| {
        Error::Meeting(format!(
            "rank 0 cannot {what} {at}: {error}; MASTER_ADDR names its host, EMB_RENDEZVOUS_PORT a \
             free port of it"
        ))
    };
    let resolved = (at.host.as_str(), at.port).to_socket_addrs();
    let addresses: Vec<SocketAddr> = resolved.map_err(|e| failed("look up", e))?.collect();
    let address = match addresses.iter().find(|address| !address.ip().is_loopback()) {
        Some(address) => {
            let v4 = addresses.iter().any(SocketAddr::is_ipv4);
            let any: IpAddr =
                if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            SocketAddr::new(any, address.port())
        }
        None => {
            *addresses.first().ok_or_else(|| failed("look up", io::ErrorKind::NotFound.into()))?
        }
    };
    loop {
        match TcpListener::bind(address) {
            Ok(listener) => {
                listener.set_nonblocking(true).map_err(|e| failed("listen at", e))?;
                return Ok(listener);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(10 * PAUSE);
            }
            Err(error) => return Err(failed("listen at", error)),
        }
    }
}

impl Meeting<'_> {
    fn missing(&self) -> Vec<usize> {
        (1..self.me.world).filter(|&rank| self.guests[rank].is_none()).collect()
    }

    /// Whether all have come and none of them has left: one that did may come again.
    fn all_are_there(&mut self) -> bool {
        if !self.missing().is_empty() {
            return false;
        }
        for (rank, place) in self.guests.iter_mut().enumerate() {
            if let Some(guest) = place.take_if(|guest| !guest.is_there())
                && self.refused.len() < REASONS
            {
                self.refused.push(format!("rank {rank} on {} came and left", guest.host));
            }
        }
        self.missing().is_empty()
    }

    /// Takes what connections there are, up to a limit: a flood of strangers waits outside.
    fn let_in(&mut self, listener: &TcpListener) {
        while self.callers.len() < self.me.world + STRANGERS {
            let Ok((stream, _)) = listener.accept() else { return };
            if stream.set_nonblocking(true).is_ok() {
                let until = Instant::now() + HELLO;
                self.callers.push(Caller { stream, said: Vec::new(), until });
            }
        }
    }

    /// Reads what callers have said by now; who is a rank becomes a guest, who is none goes.
    fn listen_to_callers(&mut self) {
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.hear() {
                Ok(Some(hello)) => self.greet(caller.stream, hello),
                Ok(None) if Instant::now() < caller.until => self.callers.push(caller),
                // A stranger is told nothing.
                Ok(None) | Err(_) => {}
            }
        }
    }

    fn greet(&mut self, stream: TcpStream, hello: Hello) {
        match self.objection(&hello) {
            None => self.guests[hello.rank] = Some(Guest { stream, host: hello.host }),
            Some(why) => {
                reply(&stream, &Reply::Refused(why.clone()));
                if self.refused.len() < REASONS && !self.refused.contains(&why) {
                    self.refused.push(why);
                }
            }
        }
    }

    fn objection(&self, hello: &Hello) -> Option<String> {
        let me = self.me;
        let who = format!("rank {} on {}", hello.rank, hello.host);
        if hello.version != me.version {
            let (theirs, mine) = (&hello.version, &me.version);
            return Some(format!("{who} runs emb {theirs}, rank 0 on {} runs emb {mine}", me.host));
        }
        if hello.meeting != me.meeting {
            let (theirs, mine) = (&hello.meeting, &me.meeting);
            return Some(format!("{who} is of the job {theirs:?}, rank 0 of {mine:?}"));
        }
        if hello.world != me.world {
            let (theirs, mine) = (hello.world, me.world);
            return Some(format!("{who} is of a world of {theirs}, rank 0 of one of {mine}"));
        }
        if hello.rank >= me.world {
            return Some(format!("{who} is none of a world of {}", me.world));
        }
        if hello.rank == 0 {
            return Some(format!("{who} is there already: it is rank 0 itself, on {}", me.host));
        }
        let there = self.guests[hello.rank].as_ref().filter(|guest| guest.is_there())?;
        Some(format!("{who} is there already, on {}: two processes have one rank", there.host))
    }

    fn give_up(&self, at: &Point, timeout: Duration) -> Error {
        let missing = self.missing();
        let mut said = format!(
            "{} of {} did not come to rank 0 at {at} within {} s",
            list(&missing),
            self.me.world,
            timeout.as_secs_f64()
        );
        if !self.refused.is_empty() {
            said = format!("{said}; sent away or gone: {}", self.refused.join("; "));
        }
        for guest in self.guests.iter().flatten() {
            reply(&guest.stream, &Reply::Failed(said.clone()));
        }
        Error::Meeting(said)
    }

    fn tell_all(self, blob: &[u8]) -> Result<Met, Error> {
        let host = |guest: &Option<Guest>| match guest {
            Some(guest) => guest.host.clone(),
            None => self.me.host.clone(),
        };
        let hosts: Vec<String> = self.guests.iter().map(host).collect();
        let all = Reply::All { hosts: hosts.clone(), blob: blob.to_vec() };
        let left: Vec<usize> = (1..self.me.world)
            .filter(|&rank| !self.guests[rank].as_ref().is_some_and(|at| reply(&at.stream, &all)))
            .collect();
        if left.is_empty() {
            let lines = self.guests.into_iter().flatten().map(|guest| guest.stream).collect();
            return Ok(Met { hosts, blob: blob.to_vec(), lines });
        }
        Err(Error::Meeting(format!(
            "{} came to rank 0 and left before all were there",
            list(&left)
        )))
    }
}

impl Caller {
    /// The hello, once it is whole.
    fn hear(&mut self) -> io::Result<Option<Hello>> {
        let mut part = [0; 1024];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.said.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if let Some(hello) = unpack(&self.said, MOST_HELLO)? {
                return Ok(Some(hello));
            }
            if self.said.len() > HEAD + MOST_HELLO {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

impl Guest {
    /// Whether the rank still waits: one that died and was started again may come again.
    fn is_there(&self) -> bool {
        let gone = matches!(self.stream.peek(&mut [0]), Ok(0));
        let broken =
            matches!(self.stream.peek(&mut [0]), Err(e) if e.kind() != io::ErrorKind::WouldBlock);
        !gone && !broken
    }
}

/// Sends a reply; whether it went out.
fn reply(stream: &TcpStream, message: &Reply) -> bool {
    pack(message).and_then(|bytes| send(stream, &bytes, REPLY)).is_ok()
}
