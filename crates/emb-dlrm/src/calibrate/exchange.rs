//! Seconds of exchanges by level, size and number of peers: [`Times`].

use super::{Places, Progress, Sampler};
use crate::Result;
use emb_comm::Collective;
use std::time::Duration;

/// Powers of two of the bytes for one peer: from where only latency counts to where none does.
const POWERS: std::ops::RangeInclusive<u32> = 6..=22;

/// Most bytes that a rank sends: buffers of ranks on one host are in memory together.
const MOST_BYTES: usize = 16 << 20;

/// Bytes for all peers together where numbers of peers are compared.
const BYTES_OF_PEERS: usize = 4 << 20;

/// A size of messages and what it took.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// Bytes that a rank sends to others.
    pub bytes: u64,
    /// Seconds of the exchange, of the slowest rank, undisturbed.
    pub seconds: f64,
    /// Whether the fit does not see it.
    pub held_out: bool,
}

/// What was measured over one level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelTimes {
    /// `node` or `cluster`.
    pub name: String,
    /// Peers of a rank at these sizes.
    pub peers: u32,
    /// By ascending bytes.
    pub points: Vec<Point>,
    /// `(peers, bytes, seconds)` of exchanges of about equal bytes among parts of the ranks, all parts
    /// at work, ascending; the last with all ranks.
    pub parts: Vec<(u32, u64, f64)>,
}

/// What was measured over all levels, from the inside out.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Levels over which ranks talk.
    pub levels: Vec<LevelTimes>,
}

/// One exchange: the counts of this rank, and what the busiest rank sends.
struct Pattern {
    counts: Vec<usize>,
    /// Peers of the rank with most.
    peers: usize,
    bytes: usize,
}

impl Pattern {
    /// `each` bytes to every rank that `talks` says, as seen by `rank`.
    fn new(world: usize, rank: usize, each: usize, talks: impl Fn(usize, usize) -> bool) -> Self {
        let to = |from: usize| (0..world).filter(|&to| from != to && talks(from, to)).count();
        let peers = (0..world).map(to).max().unwrap_or(0);
        let count = |other| if other != rank && talks(rank, other) { each } else { 0 };
        Self { counts: (0..world).map(count).collect(), peers, bytes: peers * each }
    }
}

/// Which ranks talk to each other.
type Talks<'a> = Box<dyn Fn(usize, usize) -> bool + 'a>;

pub(super) fn measure<C: Collective>(
    ranks: &mut C,
    places: &Places,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<Times> {
    let mut levels = Vec::new();
    let (inside, outside) = (places.most() > 1, places.nodes().len() > 1);
    let share = if inside && outside { 0.5 } else { 1.0 };
    if inside {
        let group = |size: usize| -> Talks<'_> {
            Box::new(move |a, b| {
                let node = &places.nodes()[places.node_of(a)];
                node.contains(&b) && (a - node.start) / size == (b - node.start) / size
            })
        };
        let level = level(ranks, "node", places.most(), &group, budget.mul_f64(share), progress)?;
        levels.push(level);
    }
    if outside {
        let group = |size: usize| -> Talks<'_> {
            Box::new(move |a, b| {
                let (a, b) = (places.node_of(a), places.node_of(b));
                a != b && a / size == b / size
            })
        };
        let nodes = places.nodes().len();
        levels.push(level(ranks, "cluster", nodes, &group, budget.mul_f64(share), progress)?);
    }
    Ok(Times { levels })
}

/// Measures one level. `units` units talk to each other in groups of the size that `group` is given.
fn level<'a, C: Collective>(
    ranks: &mut C,
    name: &str,
    units: usize,
    group: &dyn Fn(usize) -> Talks<'a>,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<LevelTimes> {
    let (world, rank) = (ranks.world(), ranks.rank());
    let whole = group(units);
    let mut patterns = Vec::new();
    for power in POWERS {
        // Four sizes an octave, of which every second is fitted.
        for quarters in 4..8 {
            let each = quarters << (power - 2);
            let pattern = Pattern::new(world, rank, each, &whole);
            if pattern.bytes <= MOST_BYTES || patterns.len() < 8 {
                patterns.push(pattern);
            }
        }
    }
    // The last size is one that the fit sees.
    if patterns.len().is_multiple_of(2) {
        patterns.pop();
    }
    let sizes = patterns.len();
    let mut size = 2;
    while size <= units {
        patterns.push(of_peers(world, rank, &group(size)));
        size = if size < units && size * 2 > units { units } else { size * 2 };
    }
    let told = |done| progress(&format!("exchanges over the {name}"), done);
    let seconds = run(ranks, &patterns, budget, &told)?;
    let measured: Vec<(&Pattern, f64)> = patterns.iter().zip(seconds).collect();
    let (points, parts) = measured.split_at(sizes);
    let peers = points.first().map_or(0, |(pattern, _)| pattern.peers as u32);
    let point = |(number, (pattern, seconds)): (usize, &(&Pattern, f64))| Point {
        bytes: pattern.bytes as u64,
        seconds: *seconds,
        held_out: number % 2 == 1,
    };
    let part = |(pattern, seconds): &(&Pattern, f64)| {
        (pattern.peers as u32, pattern.bytes as u64, *seconds)
    };
    Ok(LevelTimes {
        name: name.to_owned(),
        peers,
        points: points.iter().enumerate().map(point).collect(),
        parts: parts.iter().map(part).collect(),
    })
}

/// Equally many bytes, among however many peers.
fn of_peers(world: usize, rank: usize, talks: &Talks<'_>) -> Pattern {
    let peers = Pattern::new(world, rank, 1, talks).peers.max(1);
    Pattern::new(world, rank, BYTES_OF_PEERS / peers, talks)
}

/// What each pattern takes.
fn run<C: Collective>(
    ranks: &mut C,
    patterns: &[Pattern],
    budget: Duration,
    told: &dyn Fn(f64),
) -> Result<Vec<f64>> {
    let total = |pattern: &Pattern| pattern.counts.iter().sum::<usize>();
    let room = patterns.iter().map(total).max().unwrap_or(0);
    let (send, mut recv) = (vec![1_u8; room], vec![0_u8; room]);
    let sampler = Sampler::run(ranks, patterns.len(), budget, told, |ranks, number| {
        let counts = &patterns[number].counts;
        let total = total(&patterns[number]);
        // What a rank sends to another it gets from it, too.
        ranks.all_to_all_v(&send[..total], counts, &mut recv[..total], counts)?;
        Ok(())
    })?;
    Ok(sampler.undisturbed())
}
