//! Seconds of exchanges by level, size and number of peers: [`Times`].

use super::{Places, Progress, Sampler};
use crate::Result;
use emb_comm::Collective;
use std::time::Duration;

/// Powers of two of the bytes for one peer: from where only latency counts to where none does.
const POWERS: std::ops::RangeInclusive<u32> = 6..=22;

/// Most bytes that a rank sends: buffers of ranks on one host are in memory together.
const MOST_BYTES: usize = 16 << 20;

/// What the largest messages have at least.
const LEAST_BYTES: usize = 64 << 10;

/// Seconds of a level that the largest messages need; with less time messages are smaller.
const ENOUGH_SECONDS: f64 = 2.0;

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
    let told = |done| progress(&format!("exchanges over the {name}"), done);
    let enough = (budget.as_secs_f64() / ENOUGH_SECONDS).min(1.0);
    let most = ((MOST_BYTES as f64 * enough) as usize).max(LEAST_BYTES);
    let sizes = sizes(ranks, &whole, most, budget.mul_f64(0.5), &|done| told(0.5 * done))?;
    let of_size = |&(each, _): &(usize, bool)| Pattern::new(world, rank, each, &whole);
    let mut patterns: Vec<Pattern> = sizes.iter().map(of_size).collect();
    let mut size = 2;
    while size <= units {
        patterns.push(of_peers(world, rank, most, &group(size)));
        size = if size < units && size * 2 > units { units } else { size * 2 };
    }
    let seconds = run(ranks, &patterns, budget.mul_f64(0.5), &|done| told(0.5 + 0.5 * done))?;
    let measured: Vec<(&Pattern, f64)> = patterns.iter().zip(seconds).collect();
    let (points, parts) = measured.split_at(sizes.len());
    let peers = points.first().map_or(0, |(pattern, _)| pattern.peers as u32);
    let point = |((pattern, seconds), &(_, held_out)): (&(&Pattern, f64), &(usize, bool))| Point {
        bytes: pattern.bytes as u64,
        seconds: *seconds,
        held_out,
    };
    let part = |(pattern, seconds): &(&Pattern, f64)| {
        (pattern.peers as u32, pattern.bytes as u64, *seconds)
    };
    Ok(LevelTimes {
        name: name.to_owned(),
        peers,
        points: points.iter().zip(&sizes).map(point).collect(),
        parts: parts.iter().map(part).collect(),
    })
}

/// Bytes for each peer, ascending, and whether they are held out: four sizes an octave, every second
/// one held out, and where seconds jump between two that are fitted, more of those.
fn sizes<C: Collective>(
    ranks: &mut C,
    talks: &Talks<'_>,
    most: usize,
    budget: Duration,
    told: &dyn Fn(f64),
) -> Result<Vec<(usize, bool)>> {
    let (world, rank) = (ranks.world(), ranks.rank());
    let mut sizes: Vec<(usize, bool)> = Vec::new();
    for power in POWERS {
        for quarters in 4..8 {
            let each = quarters << (power - 2);
            if Pattern::new(world, rank, each, talks).bytes <= most || sizes.len() < 8 {
                sizes.push((each, quarters % 2 == 1));
            }
        }
    }
    // The last size is one that the fit sees.
    while sizes.last().is_some_and(|&(_, held_out)| held_out) {
        sizes.pop();
    }
    let fitted = sizes.iter().filter(|&&(_, held_out)| !held_out).map(|&(each, _)| each);
    let mut known = times(ranks, fitted.collect(), talks, budget.mul_f64(0.5))?;
    let share = budget.mul_f64(0.5 / SEARCHES as f64);
    for search in 1..=SEARCHES {
        told(search as f64 / (SEARCHES + 1) as f64);
        let jumps = jumps(&known);
        if jumps.is_empty() {
            break;
        }
        sizes.extend(jumps.iter().map(|jump| (jump[1], false)));
        // Both ends once more: what is measured at another time is no comparison.
        let again = times(ranks, jumps.into_iter().flatten().collect(), talks, share)?;
        known.retain(|&(each, _)| again.iter().all(|&(other, _)| other != each));
        known.extend(again);
        known.sort_by_key(|&(each, _)| each);
    }
    sizes.sort_unstable();
    Ok(sizes)
}

/// Seconds of sizes, ascending, each once.
fn times<C: Collective>(
    ranks: &mut C,
    mut sizes: Vec<usize>,
    talks: &Talks<'_>,
    budget: Duration,
) -> Result<Vec<(usize, f64)>> {
    let (world, rank) = (ranks.world(), ranks.rank());
    sizes.sort_unstable();
    sizes.dedup();
    let patterns: Vec<Pattern> =
        sizes.iter().map(|&each| Pattern::new(world, rank, each, talks)).collect();
    let seconds = run(ranks, &patterns, budget, &|_| ())?;
    Ok(sizes.into_iter().zip(seconds).collect())
}

/// How often a jump is looked for in a part of where it was: five times leave a tenth of it.
const SEARCHES: usize = 5;

/// Part of the way between two sizes at which a jump is looked for. A half would often be a size that
/// is held out.
const INSIDE: f64 = 0.4;

/// Neighbours whose seconds differ by far more than those to both sides of them, where a protocol
/// switches, and a size between them.
fn jumps(points: &[(usize, f64)]) -> Vec<[usize; 3]> {
    let slope = |a: (usize, f64), b: (usize, f64)| (b.1 - a.1) / (b.0 - a.0) as f64;
    let mut inside = Vec::new();
    for (at, pair) in points.windows(2).enumerate() {
        let [(from, before), (to, behind)] = [pair[0], pair[1]];
        let left = at.checked_sub(1).map_or(0.0, |left| slope(points[left], pair[0]));
        let right = points.get(at + 2).map_or(0.0, |&right| slope(pair[1], right));
        let expected = left.max(right).max(0.0) * (to - from) as f64;
        let jumps = behind > 1.08 * before && behind - before > 3.0 * expected;
        // Between neighbours so close nothing is held out.
        if jumps && to - from > from / 32 + 8 {
            inside.push([from, from + ((to - from) as f64 * INSIDE) as usize, to]);
        }
    }
    inside
}

/// Equally many bytes, among however many peers.
fn of_peers(world: usize, rank: usize, most: usize, talks: &Talks<'_>) -> Pattern {
    let peers = Pattern::new(world, rank, 1, talks).peers.max(1);
    Pattern::new(world, rank, BYTES_OF_PEERS.min(most) / peers, talks)
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

#[cfg(test)]
mod tests;
