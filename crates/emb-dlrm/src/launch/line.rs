//! Where keepers call: [`Switchboard`].

use super::ending::End;
use super::frames::{Frame, Keeper, MAGIC, MOST_HELLO};
use super::hosts::Hosts;
use super::{Error, Voice};
use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a caller may take to say who it is, in all: not from one byte to the next.
const HELLO: Duration = Duration::from_secs(5);
/// Callers that may be there at a time without having said who they are.
const STRANGERS: usize = 64;

/// What comes from keepers.
pub(super) enum Event {
    Came {
        keeper: Keeper,
        orders: TcpStream,
        silent: Silent,
    },
    Beat {
        rank: usize,
        step: u64,
    },
    Ended(End),
    /// The connection broke.
    Lost {
        rank: usize,
    },
    /// A line of `mpirun` itself.
    Said(String),
    /// A keeper of another version of this program.
    Other(Keeper),
}

/// Since when a connection is read without anything coming: milliseconds since `begun`, or 0 where
/// it is not waited for, as while a slow terminal takes what came before.
#[derive(Clone, Debug)]
pub(super) struct Silent {
    begun: Instant,
    since: Arc<AtomicU64>,
}

impl Silent {
    /// How long nothing has come, counted from `floor` at the earliest.
    pub(super) fn length(&self, floor: Instant) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => (self.begun + Duration::from_millis(since)).max(floor).elapsed(),
        }
    }

    fn waits(&self, whether: bool) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.since.store(if whether { now.max(1) } else { 0 }, Ordering::Relaxed);
    }
}

/// Takes the calls of keepers. Each connection has a thread, which hands on what is printed by
/// itself: who prints more than the terminal takes waits, and nobody else does.
pub(super) struct Switchboard {
    listener: TcpListener,
    /// What a caller must know.
    key: String,
    to: Sender<Event>,
    voice: Arc<dyn Voice>,
    unknown: Arc<AtomicUsize>,
}

impl Switchboard {
    /// Opens a port: of this host alone, or where there are other hosts, of all its interfaces.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn open(
        wide: bool,
        to: Sender<Event>,
        voice: Arc<dyn Voice>,
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Start(format!("listening to ranks: {error}"));
        let host = if wide { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let listener = TcpListener::bind((host, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let key = key().map_err(failed)?;
        Ok(Self { listener, key, to, voice, unknown: Arc::default() })
    }

    /// Key and addresses, as keepers are told.
    ///
    /// # Errors
    /// A host that is not known by its name, or that no interface leads to.
    pub(super) fn contact(&self, hosts: Option<&Hosts>) -> Result<String, Error> {
        let failed = |error: io::Error| Error::Start(format!("listening to ranks: {error}"));
        let port = self.listener.local_addr().map_err(failed)?.port();
        let mut addresses: Vec<SocketAddr> = vec![(Ipv4Addr::LOCALHOST, port).into()];
        for name in hosts.iter().flat_map(|hosts| hosts.names()) {
            let address = towards(name).map_err(|error| {
                Error::Start(format!(
                    "--hosts or --hostfile: host {name}: {error}; it has to be known by this name \
                     (DNS or /etc/hosts), and reachable"
                ))
            })?;
            let address = SocketAddr::new(address, port);
            // Ranks of this host come by its own address too; those of others must not.
            if !addresses.contains(&address) {
                addresses.insert(0, address);
            }
        }
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Ok(format!("{} {}", self.key, addresses.join(",")))
    }

    /// Takes the calls that are there, up to a limit: the others wait outside. Many keepers may
    /// call at once, and each calls only once.
    pub(super) fn answer(&self) {
        while self.unknown.load(Ordering::Relaxed) < STRANGERS {
            let Ok((stream, _)) = self.listener.accept() else { return };
            self.unknown.fetch_add(1, Ordering::Relaxed);
            let (key, to, voice) = (self.key.clone(), self.to.clone(), self.voice.clone());
            let unknown = self.unknown.clone();
            std::thread::spawn(move || {
                let known = greet(&stream, &key, HELLO);
                unknown.fetch_sub(1, Ordering::Relaxed);
                if let Ok(keeper) = known {
                    hear(&stream, keeper, &to, &*voice);
                }
            });
        }
    }
}

/// The address of this host on the way to another.
fn towards(host: &str) -> io::Result<IpAddr> {
    // Nothing is sent: connecting a socket of datagrams only looks up the way.
    let target = (host, 9).to_socket_addrs()?.find(SocketAddr::is_ipv4);
    let target = target.ok_or_else(|| io::Error::other("it has no IPv4 address"))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(target)?;
    Ok(socket.local_addr()?.ip())
}

/// A number that nobody guesses.
fn key() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// A connection that is read until a moment and no longer, however slowly it speaks.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

fn greet(stream: &TcpStream, key: &str, within: Duration) -> io::Result<Keeper> {
    let strange = || io::Error::from(io::ErrorKind::InvalidData);
    stream.set_nonblocking(false)?;
    let mut from = Until { stream, deadline: Instant::now() + within };
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(strange());
    }
    match Frame::read_up_to(&mut from, MOST_HELLO)? {
        Some(Frame::Hello(keeper)) if keeper.key == key => {
            stream.set_read_timeout(None)?;
            Ok(keeper)
        }
        _ => Err(strange()),
    }
}

/// Reads what a keeper says until it ends.
fn hear(stream: &TcpStream, keeper: Keeper, to: &Sender<Event>, voice: &dyn Voice) {
    let rank = keeper.rank;
    if keeper.version != env!("CARGO_PKG_VERSION") {
        drop(to.send(Event::Other(keeper)));
        return;
    }
    let silent = Silent { begun: Instant::now(), since: Arc::default() };
    let Ok(orders) = stream.try_clone() else { return };
    drop(to.send(Event::Came { keeper, orders, silent: silent.clone() }));
    let mut from = BufReader::with_capacity(1 << 16, stream);
    loop {
        silent.waits(true);
        let frame = Frame::read(&mut from);
        silent.waits(false);
        match frame {
            Ok(Some(Frame::Out(bytes))) if rank == 0 => voice.out(&bytes),
            Ok(Some(Frame::Out(bytes) | Frame::Err(bytes))) => voice.line(rank, &bytes),
            Ok(Some(Frame::Beat(step))) => drop(to.send(Event::Beat { rank, step })),
            Ok(Some(Frame::Ended(end))) => drop(to.send(Event::Ended(End { rank, ..end }))),
            Ok(Some(Frame::Hello(_))) => {}
            Ok(None) | Err(_) => {
                drop(to.send(Event::Lost { rank }));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::frames::KILL;
    use std::io::Write;
    use std::sync::mpsc::channel;

    struct Deaf;

    impl Voice for Deaf {
        fn out(&self, _: &[u8]) {}
        fn line(&self, _: usize, _: &[u8]) {}
        fn aside(&self, _: &str) {}
        fn note(&self, _: &str) {}
    }

    #[test]
    fn only_who_knows_the_key_is_a_keeper() -> io::Result<()> {
        let (to, events) = channel();
        let board = Switchboard::open(false, to, Arc::new(Deaf)).expect("a port");
        let contact = board.contact(None).expect("an address");
        let (key, address) = contact.split_once(' ').expect("key and address");
        let (version, host) = (env!("CARGO_PKG_VERSION").to_owned(), "a".to_owned());
        let keeper = Keeper { version, key: key.to_owned(), rank: 1, world: 2, host, pid: 7 };
        let call = |first: &[u8], keeper: &Keeper| {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(first)?;
            Frame::Hello(keeper.clone()).write(&mut stream)?;
            Ok::<_, io::Error>(stream)
        };
        let other = Keeper { key: key.replace(char::is_alphanumeric, "0"), ..keeper.clone() };
        let mut strangers = vec![call(b"GET / HT", &keeper)?, call(MAGIC, &other)?];
        strangers.push(TcpStream::connect(address)?);
        let mut known = call(MAGIC, &keeper)?;
        let begin = Instant::now();
        let event = loop {
            board.answer();
            if let Ok(event) = events.recv_timeout(Duration::from_millis(5)) {
                break event;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "nobody came");
        };
        let Event::Came { keeper: came, mut orders, .. } = event else { panic!("who is it?") };
        assert_eq!((came.rank, came.pid), (1, 7));
        orders.write_all(&[KILL])?;
        let mut order = [0];
        known.read_exact(&mut order)?;
        assert_eq!(order, [KILL]);
        drop(known);
        let gone = events.recv_timeout(Duration::from_secs(20)).expect("the end");
        assert!(matches!(gone, Event::Lost { rank: 1 }));
        assert!(events.try_recv().is_err(), "a stranger was let in");
        Ok(())
    }

    #[test]
    fn a_stranger_that_drips_is_let_go_in_time() -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut dripper = TcpStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept()?;
        // It keeps to the form, and never comes to the end of a frame that would be let in.
        std::thread::spawn(move || {
            let words = [&MAGIC[..], b"h", &1000_u32.to_le_bytes(), &[b' '; 1000]].concat();
            for byte in words {
                if dripper.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let (begin, within) = (Instant::now(), Duration::from_millis(40));
        let error = greet(&stream, "key", within).expect_err("a stranger");
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock));
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        Ok(())
    }

    #[test]
    fn keepers_that_call_while_too_many_are_unknown_wait_and_are_heard() -> io::Result<()> {
        const MANY: usize = 3;
        let (to, events) = channel();
        let board = Switchboard::open(false, to, Arc::new(Deaf)).expect("a port");
        let contact = board.contact(None).expect("an address");
        let (key, address) = contact.split_once(' ').expect("key and address");
        let silent = (0..STRANGERS).map(|_| TcpStream::connect(address));
        let silent: Vec<TcpStream> = silent.collect::<io::Result<_>>()?;
        board.answer();
        let mut calls = Vec::new();
        for rank in 0..MANY {
            let (version, host) = (env!("CARGO_PKG_VERSION").to_owned(), "a".to_owned());
            let key = key.to_owned();
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(MAGIC)?;
            Frame::Hello(Keeper { version, key, rank, world: MANY, host, pid: 7 })
                .write(&mut stream)?;
            calls.push(stream);
        }
        board.answer();
        drop(silent);
        let (begin, mut came) = (Instant::now(), 0);
        while came < MANY {
            board.answer();
            came += events.try_iter().filter(|event| matches!(event, Event::Came { .. })).count();
            assert!(begin.elapsed() < Duration::from_secs(20), "{came} of {MANY} came");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
