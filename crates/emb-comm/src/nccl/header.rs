//! How ranks of several processes agree before data move: a header from each to each.
//!
//! A header says what its rank calls, with which counts, and in which step; or that the rank takes
//! no further part, and why. All ranks see the same headers and come to the same verdict. The
//! headers are sent pairwise, so that those that did arrive tell who is missing.
//!
//! ```text
//!   word 0   1..5               5..38     38..
//!   mark     call (step in 4)   failure   counts sent to each rank, then expected from each
//! ```

use super::link::{Link, until};
use crate::failure::Failure;
use crate::header::{BEFORE_TEXT, put, told, verdict};
use crate::local::{Call, Turn};
use crate::{Error, Host, Result};
use emb_cuda::{Buffer, Kept, Stream};
use std::time::{Duration, Instant};

/// Marks a header that has arrived; no memory that was cleared looks like one.
const MARK: u64 = 0x656d_6268 << 32;

/// Words before the failure.
const CALL: usize = 5;

/// Words before the counts. The text that says why a rank takes no further part has up to 192
/// bytes.
const FIXED: usize = CALL + BEFORE_TEXT + 24;

/// How long a rank that gives up waits for peers to be told.
const GRACE: Duration = Duration::from_secs(1);

/// Headers of one set of ranks, and the memory that they travel through.
pub(super) struct Headers {
    me: usize,
    world: usize,
    own: Buffer<u64>,
    all: Buffer<u64>,
    /// This rank's header.
    said: Vec<u64>,
    /// All headers, by rank.
    host: Vec<u64>,
    /// Counts on their way: sent, received.
    counts: [Kept<u64>; 2],
    /// Counts on the host.
    numbers: Vec<u64>,
    /// Whether the ranks of this set know that the world has failed.
    parted: bool,
}

impl Headers {
    pub(super) fn new(stream: &Stream, me: usize, world: usize) -> Result<Self> {
        let words = FIXED + 2 * world;
        let own = stream.zeros(words)?;
        let all = stream.zeros(words * world)?;
        let (said, host) = (vec![0; words], vec![0; words * world]);
        let (counts, numbers) = (<[Kept<u64>; 2]>::default(), Vec::new());
        Ok(Self { me, world, own, all, said, host, counts, numbers, parted: false })
    }

    /// Ranks compare what they call, and whether each sends to each what that one expects.
    pub(super) fn agree(
        &mut self,
        turn: &mut Turn<'_, Host>,
        link: &mut Link,
        sends: &[usize],
        expects: &[usize],
    ) -> Result<()> {
        let own = &mut self.said;
        own.fill(0);
        own[0] = MARK;
        own[1..5].copy_from_slice(&turn.call());
        let counts = sends.iter().chain(expects).map(|&count| count as u64);
        own[FIXED..].iter_mut().zip(counts).for_each(|(word, count)| *word = count);
        let began = Instant::now();
        let shared = self.share_watched(turn, link);
        turn.waited_for(began.elapsed());
        shared?;
        let verdict = self.verdict(turn, !expects.is_empty());
        // All have come to the same.
        self.parted |= verdict.is_err();
        verdict
    }

    fn verdict(&self, turn: &Turn<'_, Host>, with_counts: bool) -> Result<()> {
        let failed = (0..self.world).find_map(|rank| told(&self.header(rank)[CALL..FIXED]));
        if let Some(failure) = failed {
            return Err(turn.told(failure));
        }
        let counts = |rank: usize| &self.header(rank)[FIXED..];
        verdict(turn, |rank| self.call(rank), with_counts.then_some(counts))
    }

    /// Tells peers that this rank takes no further part, if they are still to be told.
    pub(super) fn part(&mut self, link: &mut Link, failure: &Failure) {
        if std::mem::replace(&mut self.parted, true) {
            return;
        }
        if let Some(member) = &link.member {
            return member.tell();
        }
        let own = &mut self.said;
        own.fill(0);
        own[0] = MARK;
        put(failure, &mut own[CALL..FIXED]);
        let deadline = Instant::now() + GRACE;
        let late = || if Instant::now() > deadline { Err(stopped()) } else { Ok(()) };
        // Whoever is not there to be told finds out by waiting.
        let _ = self.share(link, late);
    }

    /// Sends this rank's header to all and receives theirs, or says who is missing.
    fn share_watched(&mut self, turn: &Turn<'_, Host>, link: &mut Link) -> Result<()> {
        let alone = link.member.is_none();
        let watch = || if alone && turn.is_late() { Err(stopped()) } else { link.watch(turn) };
        let Err(error) = self.share(link, watch) else { return Ok(()) };
        self.parted = true;
        if !alone || turn.failure().is_some() {
            return Err(link.fail(turn, error));
        }
        link.give_up();
        // What did arrive tells who is missing, also where a peer gave up waiting before this one.
        let arrived = link.stream.is_done() == Ok(true)
            && link.stream.download(self.all.whole(), &mut self.host).is_ok();
        let is_missing =
            |rank: &usize| *rank != self.me && !(arrived && self.header(*rank)[0] == MARK);
        let missing: Vec<usize> = (0..self.world).filter(is_missing).collect();
        if missing.is_empty() {
            return Err(turn.broken(&error));
        }
        Err(turn.absent(&missing, &error.to_string()))
    }

    fn share(&mut self, link: &Link, mut watch: impl FnMut() -> Result<()>) -> Result<()> {
        let (me, words, stream) = (self.me, FIXED + 2 * self.world, &link.stream);
        let comm = link.comm()?;
        stream.clear(self.all.whole_mut())?;
        stream.upload(&self.said, self.own.whole_mut())?;
        let (own, mut all) = (self.own.whole(), self.all.whole_mut());
        comm.group(|group| {
            for peer in (0..self.world).filter(|&peer| peer != me) {
                group.send(own, peer, stream)?;
                group.recv(all.slice(peer * words..(peer + 1) * words), peer, stream)?;
            }
            Ok(())
        })?;
        until(|| comm.is_ready(), &mut watch)?;
        until(|| Ok(stream.is_done()?), || comm.is_ready().map(drop).and_then(|()| watch()))?;
        stream.download(self.all.whole(), &mut self.host)?;
        self.host[me * words..(me + 1) * words].copy_from_slice(&self.said);
        Ok(())
    }

    /// Sends equally many counts to each rank and receives as many from each.
    pub(super) fn exchange(
        &mut self,
        turn: &Turn<'_, Host>,
        link: &mut Link,
        send: &[usize],
        recv: &mut [usize],
    ) -> Result<()> {
        let (me, each) = (self.me, send.len() / self.world);
        if each == 0 {
            return Ok(());
        }
        let Self { world, counts, numbers, .. } = self;
        numbers.clear();
        numbers.extend(send.iter().map(|&count| count as u64));
        link.run(turn, &[], |link| {
            let [from, into] = counts;
            let stream = &link.stream;
            let mut from = from.room(stream, numbers.len())?.view_mut(0..numbers.len());
            let mut into = into.room(stream, numbers.len())?.view_mut(0..numbers.len());
            stream.upload(numbers, from.reborrow())?;
            let from = from.as_view();
            let part = |peer: usize| peer * each..(peer + 1) * each;
            link.group(turn, |group| {
                for peer in (0..*world).filter(|&peer| peer != me) {
                    group.send(from.slice(part(peer)), peer, stream)?;
                    group.recv(into.slice(part(peer)), peer, stream)?;
                }
                Ok(())
            })?;
            until(|| Ok(stream.is_done()?), || link.watch(turn))?;
            Ok(stream.download(into.as_view(), numbers)?)
        })?;
        let own = me * each..(me + 1) * each;
        recv.iter_mut().zip(numbers).for_each(|(to, count)| *to = *count as usize);
        recv[own.clone()].copy_from_slice(&send[own]);
        Ok(())
    }

    fn header(&self, rank: usize) -> &[u64] {
        let words = FIXED + 2 * self.world;
        &self.host[rank * words..(rank + 1) * words]
    }

    fn call(&self, rank: usize) -> Call {
        let header = self.header(rank);
        [1, 2, 3, 4].map(|word| header[word])
    }
}

/// Marks the end of waiting; it is replaced by who is missing.
fn stopped() -> Error {
    Error::Space("the time is over".to_owned())
}
