//! How ranks of several processes agree before data move: a header from each to each.
//!
//! A header says what its rank calls, with which counts, and in which step; or that the rank takes
//! no further part, and why. All ranks see the same headers and come to the same verdict. The
//! headers are sent pairwise, so that those that did arrive tell who is missing.
//!
//! ```text
//!   word 0        1..5                  5     6     7              8..32         32..
//!   mark | kind   call (step in 4)      rank  step  bytes of text  text          counts sent to
//!                                                                                each rank, then
//!                                                                                expected from each
//! ```

use super::link::{Link, failed, until};
use crate::arguments::same_count;
use crate::failure::{Failure, FailureKind};
use crate::local::{Call, Turn};
use crate::{Error, Host, Operation, Result};
use emb_cuda::{Buffer, Kept, Stream};
use std::time::{Duration, Instant};

/// Marks a header that has arrived; no memory that was cleared looks like one.
const MARK: u64 = 0x656d_6268 << 32;

/// Bytes of the text that says why a rank takes no further part.
const TEXT: usize = 24 * 8;

/// Words before the counts.
const FIXED: usize = 8 + TEXT / 8;

/// How long a rank that gives up waits for peers to be told.
const GRACE: Duration = Duration::from_secs(1);

/// Kinds of failure, by their number in a header; 0 is none.
const KINDS: [FailureKind; 6] = [
    FailureKind::Missing,
    FailureKind::Mismatch,
    FailureKind::Error,
    FailureKind::Panic,
    FailureKind::Left,
    FailureKind::Aborted,
];

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
        let failed = (0..self.world).find_map(|rank| told(self.header(rank)));
        if let Some(failure) = failed {
            return Err(turn.told(failure));
        }
        turn.compare(|rank| self.call(rank))?;
        if !with_counts {
            return Ok(());
        }
        let name = turn.operation().name();
        for to in 0..self.world {
            for from in 0..self.world {
                let sent = self.header(from)[FIXED + to] as usize;
                let expected = self.header(to)[FIXED + self.world + from] as usize;
                same_count(name, turn.member(from), turn.member(to), sent, expected)
                    .map_err(|error| turn.refused_by(to, error))?;
            }
        }
        Ok(())
    }

    /// Tells peers that this rank takes no further part, if they are still to be told.
    pub(super) fn part(&mut self, link: &mut Link, failure: &Failure) {
        if std::mem::replace(&mut self.parted, true) {
            return;
        }
        let own = &mut self.said;
        own.fill(0);
        let kind = KINDS.iter().position(|&kind| kind == failure.kind()).map_or(0, |at| at + 1);
        let text = shortened(&failure.to_string());
        own[0] = MARK | kind as u64;
        own[5] = failure.ranks().first().map_or(u64::MAX, |&rank| rank as u64);
        own[6] = failure.step();
        own[7] = text.len() as u64;
        bytemuck::cast_slice_mut::<u64, u8>(&mut own[8..FIXED])[..text.len()]
            .copy_from_slice(text.as_bytes());
        let deadline = Instant::now() + GRACE;
        let late = || if Instant::now() > deadline { Err(stopped()) } else { Ok(()) };
        // Whoever is not there to be told finds out by waiting.
        let _ = self.share(link, late);
    }

    /// Sends this rank's header to all and receives theirs, or says who is missing.
    fn share_watched(&mut self, turn: &Turn<'_, Host>, link: &mut Link) -> Result<()> {
        let watch = || if turn.is_late() { Err(stopped()) } else { turn.go_on() };
        let Err(error) = self.share(link, watch) else { return Ok(()) };
        link.give_up();
        self.parted = true;
        if turn.failure().is_some() {
            return Err(failed(turn, error));
        }
        // What did arrive tells who is missing, also where a peer gave up waiting before this one.
        let arrived = link.stream.is_done() == Ok(true)
            && link.stream.download(self.all.whole(), &mut self.host).is_ok();
        let is_missing =
            |rank: &usize| *rank != self.me && !(arrived && self.header(*rank)[0] & MARK == MARK);
        let missing: Vec<usize> = (0..self.world).filter(is_missing).collect();
        if missing.is_empty() {
            return Err(failed(turn, error));
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
            until(|| Ok(stream.is_done()?), || turn.go_on())?;
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

/// The failure that a header tells of.
fn told(header: &[u64]) -> Option<Failure> {
    let number = (header[0] & !MARK) as usize;
    let kind = *KINDS.get(number.checked_sub(1)?)?;
    let ranks = if header[5] == u64::MAX { Vec::new() } else { vec![header[5] as usize] };
    let bytes = bytemuck::cast_slice::<u64, u8>(&header[8..FIXED]);
    let text = bytes.get(..header[7] as usize).unwrap_or(bytes);
    let text = String::from_utf8_lossy(text).into_owned();
    Some(Failure::new(kind, ranks, None::<Operation>, header[6], text))
}

/// What fits into a header.
fn shortened(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let end = (0..=TEXT - 3).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// Marks the end of waiting; it is replaced by who is missing.
fn stopped() -> Error {
    Error::Space("the time is over".to_owned())
}
