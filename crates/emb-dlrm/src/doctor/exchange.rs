//! A timed exchange over all ranks, with its contents checked: [`exchange`].

use super::pairs::{self, Pairs};
use crate::Result;
use crate::calibrate::{Places, Progress, Sampler, median};
use emb_comm::Collective;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Bytes of messages, as far as the time allows.
const SIZES: [usize; 6] = [8, 512, 32 << 10, 1 << 20, 16 << 20, 64 << 20];

/// Operations of each size.
const OPERATIONS: [&str; 4] = ["all_to_all_v", "all_reduce", "all_gather_v", "broadcast"];

/// Calls of an operation that are planned for: two of each of the rounds that there are at least.
const PLANNED_CALLS: f64 = 12.0;

/// One operation at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operated {
    /// Which.
    pub operation: &'static str,
    /// Bytes that a rank sends to others (receives, of a gather and a broadcast; has, of a sum).
    pub bytes: u64,
    /// Samples.
    pub samples: usize,
    /// Seconds of the fastest.
    pub min: f64,
    /// Seconds of the median.
    pub median: f64,
    /// Seconds of the slowest.
    pub max: f64,
    /// Bytes a second of a rank, of the median.
    pub rate: f64,
}

/// What an exchange over all ranks has shown; the same on all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchanged {
    /// The host of each rank.
    pub hosts: Vec<String>,
    /// By size and operation.
    pub operations: Vec<Operated>,
    /// Bytes a second between two ranks while all others are idle.
    pub pairs: Pairs,
    /// Bytes a second of a copy within the memory of each rank, all at work.
    pub copies: Vec<f64>,
    /// Ranks whose own times stick out, each in words.
    pub slow: Vec<String>,
    /// Contents that did not arrive as sent, each in words.
    pub wrong: Vec<String>,
}

/// An operation by its place among [`OPERATIONS`], and bytes.
type Cell = (usize, usize);

/// Buffers of one rank.
struct Buffers {
    send: Vec<u8>,
    recv: Vec<u8>,
    values: Vec<f32>,
    counts: Vec<usize>,
}

/// Times all operations for about `budget`. Called by every rank.
///
/// # Errors
/// A collective that fails.
pub fn exchange<C: Collective>(
    ranks: &mut C,
    places: &Places,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<Exchanged> {
    let world = ranks.world();
    let mut buffers = Buffers::new(world);
    let (cells, wrong) = probe(ranks, &mut buffers, budget.mul_f64(0.6))?;
    let told = |done| progress("operations over all ranks", done);
    // The last of them is the barrier.
    let sampler =
        Sampler::run(ranks, cells.len() + 1, budget.mul_f64(0.6), &told, |ranks, at| match cells
            .get(at)
        {
            Some(&(operation, bytes)) => buffers.call(ranks, operation, bytes),
            None => Ok(ranks.barrier()?),
        })?;
    let named = cells.iter().map(|&(operation, bytes)| (OPERATIONS[operation], bytes));
    let operations = named.chain([("barrier", 0)]).zip(&sampler.slowest).map(operated).collect();
    let copies = copies(ranks, &buffers, budget.mul_f64(0.1), progress)?;
    let pairs = pairs::measure(ranks, places, budget.mul_f64(0.3), progress)?;
    let mut slow = slow_copies(&copies, places);
    slow.extend(pairs.slow(places));
    let hosts = (0..world).map(|rank| places.host(rank).to_owned()).collect();
    Ok(Exchanged { hosts, operations, pairs, copies, slow, wrong })
}

fn operated(((operation, bytes), times): ((&'static str, usize), &Vec<f64>)) -> Operated {
    let median = median(times);
    Operated {
        operation,
        bytes: bytes as u64,
        samples: times.len(),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        median,
        max: times.iter().copied().fold(0.0, f64::max),
        rate: bytes as f64 / median,
    }
}

/// Calls each operation once, ascending in size, checks what arrived, and stops at the size that
/// would take too long. Returns operations with bytes, and what was wrong.
fn probe<C: Collective>(
    ranks: &mut C,
    buffers: &mut Buffers,
    budget: Duration,
) -> Result<(Vec<Cell>, Vec<String>)> {
    let (mut cells, mut wrong, mut used) = (Vec::new(), Vec::new(), 0.0);
    for size in SIZES {
        let before = cells.len();
        for (operation, name) in OPERATIONS.iter().enumerate() {
            buffers.prepare(ranks.rank(), operation, size);
            ranks.barrier()?;
            let start = Instant::now();
            buffers.call(ranks, operation, size)?;
            let seconds = start.elapsed().as_secs_f64();
            let bad = buffers.wrong(ranks.rank(), operation, size);
            let all = gathered(ranks, [seconds, bad as f64])?;
            used += PLANNED_CALLS * all.iter().map(|told| told[0]).fold(0.0, f64::max);
            let told = all.iter().enumerate().filter(|(_, told)| told[1] > 0.0);
            wrong.extend(told.map(|(rank, told)| {
                format!(
                    "{name} of {size} bytes: {} elements on rank {rank} are not what was sent",
                    told[1]
                )
            }));
            cells.push((operation, size));
        }
        if used > budget.as_secs_f64() && before > 0 {
            cells.truncate(before);
            break;
        }
    }
    Ok((cells, wrong))
}

/// Two numbers of every rank.
fn gathered<C: Collective>(ranks: &mut C, own: [f64; 2]) -> Result<Vec<[f64; 2]>> {
    let world = ranks.world();
    let mut all = vec![0.0; 2 * world];
    ranks.all_gather_v(&own, &mut all, &vec![2; world])?;
    Ok(all.chunks_exact(2).map(|two| [two[0], two[1]]).collect())
}

impl Buffers {
    fn new(world: usize) -> Self {
        Self { send: Vec::new(), recv: Vec::new(), values: Vec::new(), counts: vec![0; world] }
    }

    /// Elements for or from each other rank.
    fn each(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.counts.len().saturating_sub(1).max(1))
    }

    /// Fills what is sent, so that every element tells where it is from and where it belongs.
    fn prepare(&mut self, rank: usize, operation: usize, bytes: usize) {
        let (world, each) = (self.counts.len(), self.each(bytes));
        self.send.resize(self.send.len().max(each * world), 0);
        self.recv.resize(self.recv.len().max(each * world), 0);
        self.values.resize(self.values.len().max(bytes.div_ceil(4)), 0.0);
        match operation {
            0 => {
                // Parts for the others alone, marked by their number among them.
                for (to, part) in self.send[..each * world].chunks_exact_mut(each).enumerate() {
                    part.iter_mut().enumerate().for_each(|(at, value)| *value = mark(rank, to, at));
                }
            }
            1 => {
                let values = self.values[..bytes.div_ceil(4)].iter_mut().enumerate();
                values.for_each(|(at, value)| *value = (rank + 1) as f32 * (at % 8 + 1) as f32);
            }
            2 => {
                let part = self.send[..each].iter_mut().enumerate();
                part.for_each(|(at, value)| *value = mark(rank, 0, at));
            }
            _ => {
                let part = self.recv[..bytes].iter_mut().enumerate();
                part.for_each(|(at, value)| *value = if rank == 0 { mark(0, 1, at) } else { 0 });
            }
        }
    }

    fn call<C: Collective>(&mut self, ranks: &mut C, operation: usize, bytes: usize) -> Result<()> {
        let (world, each, rank) = (self.counts.len(), self.each(bytes), ranks.rank());
        match operation {
            0 => {
                // What stays on the rank is no exchange.
                self.counts.fill(each);
                self.counts[rank] = 0;
                let others = each * (world - 1);
                let (send, recv) = (&self.send[..others], &mut self.recv[..others]);
                ranks.all_to_all_v(send, &self.counts, recv, &self.counts)?;
            }
            1 => ranks.all_reduce(&mut self.values[..bytes.div_ceil(4)])?,
            2 => {
                self.counts.fill(each);
                let recv = &mut self.recv[..each * world];
                ranks.all_gather_v(&self.send[..each], recv, &self.counts)?;
            }
            _ => ranks.broadcast(&mut self.recv[..bytes], 0)?,
        }
        Ok(())
    }

    /// Elements that are not what was sent.
    fn wrong(&self, rank: usize, operation: usize, bytes: usize) -> usize {
        let (world, each) = (self.counts.len(), self.each(bytes));
        let differ = |part: &[u8], from: usize, to: usize| {
            part.iter().enumerate().filter(|&(at, &value)| value != mark(from, to, at)).count()
        };
        match operation {
            0 => {
                let others = (0..world).filter(|&other| other != rank);
                let parts = self.recv[..each * (world - 1)].chunks_exact(each);
                // What a rank sends to the n-th of its others is marked by n.
                let place = |from: usize| if rank > from { rank - 1 } else { rank };
                others.zip(parts).map(|(from, part)| differ(part, from, place(from))).sum()
            }
            1 => {
                let sum = (world * (world + 1) / 2) as f32;
                let values = self.values[..bytes.div_ceil(4)].iter().enumerate();
                values.filter(|&(at, &value)| value != sum * (at % 8 + 1) as f32).count()
            }
            2 => {
                let parts = self.recv[..each * world].chunks_exact(each);
                parts.enumerate().map(|(from, part)| differ(part, from, 0)).sum()
            }
            _ => differ(&self.recv[..bytes], 0, 1),
        }
    }
}

/// What element `at` of a message is.
fn mark(from: usize, to: usize, at: usize) -> u8 {
    (from * 31 + to * 7 + at) as u8
}

/// Bytes a second that each rank copies within its memory while all do.
fn copies<C: Collective>(
    ranks: &mut C,
    buffers: &Buffers,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<Vec<f64>> {
    const BYTES: usize = 4 << 20;
    let from = vec![buffers.send.first().copied().unwrap_or(1); BYTES];
    let mut to = vec![0_u8; BYTES];
    let world = ranks.world();
    let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); world];
    let begin = Instant::now();
    loop {
        ranks.barrier()?;
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        let own = [start.elapsed().as_secs_f64(), begin.elapsed().as_secs_f64()];
        let all = gathered(ranks, own)?;
        for (rank, told) in all.iter().enumerate() {
            rounds[rank].push(told[0]);
        }
        let used = all.iter().map(|told| told[1]).fold(0.0, f64::max) / budget.as_secs_f64();
        progress("copies of each rank", used.min(1.0));
        if rounds[0].len() >= 200 || (used >= 1.0 && rounds[0].len() >= 5) {
            break;
        }
    }
    Ok(rounds.iter().map(|times| 2.0 * BYTES as f64 / median(times)).collect())
}

/// A rank that copies at less than two thirds of the typical rate is slow by itself.
pub(super) fn slow_copies(copies: &[f64], places: &Places) -> Vec<String> {
    let mut sorted = copies.to_vec();
    sorted.sort_by(f64::total_cmp);
    let typical = sorted[sorted.len() / 2];
    let slow = copies.iter().enumerate().filter(|(_, rate)| **rate < typical * 2.0 / 3.0);
    slow.map(|(rank, rate)| {
        format!(
            "rank {rank} on {} copies its own memory at {:.1} GB/s, others at {:.1} GB/s: another \
             process, a lower clock or another NUMA node holds it back",
            places.host(rank),
            rate / 1e9,
            typical / 1e9
        )
    })
    .collect()
}
