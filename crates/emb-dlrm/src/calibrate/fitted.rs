//! From times to a topology, and how far it can be trusted: [`Calibration`].

use super::{LevelTimes, NcclTable, NcclTest, Places, Point, Times};
use crate::{Error, Result};
use emb_shard::{LevelSpec, LinkFit, Topology, TopologySpec, UnitRanks};

/// What a rank has beside links.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Name of the topology.
    pub name: String,
    /// Bytes of memory of one rank.
    pub memory_bytes: u64,
    /// Bytes a second between a rank and its memory.
    pub memory_bandwidth: f64,
    /// Floating-point operations a second of one rank.
    pub flops: f64,
}

/// A measured size, and what the topology says of it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Residual {
    /// Level.
    pub level: String,
    /// Bytes that a rank sends to others.
    pub bytes: u64,
    /// Seconds measured.
    pub measured: f64,
    /// Seconds that the topology predicts.
    pub predicted: f64,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// Whether the fit has not seen it.
    pub held_out: bool,
}

/// A topology with its residuals.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// What planners read.
    pub topology: TopologySpec,
    /// By level and size.
    pub residuals: Vec<Residual>,
    /// What could not be measured, in words.
    pub notes: Vec<String>,
}

impl Calibration {
    /// The largest relative error among held-out sizes, or among the others; `None` without any.
    pub fn worst(&self, held_out: bool) -> Option<f64> {
        let errors = self.residuals.iter().filter(|residual| residual.held_out == held_out);
        errors.map(|residual| residual.error.abs()).reduce(f64::max)
    }

    /// The topology as a file that `emb plan --topology` reads.
    ///
    /// # Errors
    /// A number that TOML can't hold.
    pub fn to_toml(&self) -> Result<String> {
        let text = toml::to_string(&self.topology)
            .map_err(|error| Error::Config(format!("topology as TOML: {error}")))?;
        let worst = |held_out| match self.worst(held_out) {
            Some(error) => format!("{:.1} %", 100.0 * error),
            None => "none".to_owned(),
        };
        let mut head = format!(
            "# Measured by emb calibrate. Largest error of sizes that were fitted: {}; of sizes held out: {}.\n",
            worst(false),
            worst(true)
        );
        for note in &self.notes {
            head.extend(["# ", note, "\n"]);
        }
        Ok(head + &text)
    }
}

/// The topology of measured ranks.
///
/// # Errors
/// A world of one rank; times that no link explains.
pub fn from_times(times: &Times, places: &Places, machine: &Machine) -> Result<Calibration> {
    if times.levels.is_empty() {
        let what = "one rank exchanges nothing: --world 2 or more, or more processes";
        return Err(Error::Config(what.to_owned()));
    }
    let world = places.world() as u32;
    let nodes: Vec<u32> = places.nodes().iter().map(|node| node.len() as u32).collect();
    let node_ranks = if nodes.iter().all(|&ranks| ranks == nodes[0]) {
        UnitRanks::Equal(nodes[0])
    } else {
        UnitRanks::Each(nodes)
    };
    build(times, machine, world, node_ranks)
}

/// The topology of machines on which the tests of nccl-tests have run.
///
/// # Errors
/// Tables that do not say what a level is, by file; sizes that no link explains.
pub fn from_tables(tables: &[NcclTable], machine: &Machine) -> Result<Calibration> {
    let mut inside: Vec<&NcclTable> = tables.iter().filter(|table| table.nodes() == 1).collect();
    let mut outside: Vec<&NcclTable> = tables.iter().filter(|table| table.nodes() > 1).collect();
    let (Some(most), Some(first)) = (tables.iter().map(NcclTable::ranks).max(), tables.first())
    else {
        return Err(Error::Config("--from: no tables".to_owned()));
    };
    let node = inside.iter().map(|table| table.ranks()).max();
    let node = outside.iter().map(|table| table.node_ranks()).chain(node).max().unwrap_or(1);
    if inside.is_empty() && node > 1 {
        return Err(Error::Config(format!(
            "{}: ranks of {} hosts, {node} on each: how fast those of one host are among \
             themselves isn't in it: give a table of one host as well",
            first.path.display(),
            first.nodes()
        )));
    }
    if let Some(other) = outside.iter().max_by_key(|table| table.node_ranks())
        && other.node_ranks() < node
    {
        return Err(Error::Config(format!(
            "{}: {} on each host, a table of one host has {node}: give an alltoall_perf table of \
             several hosts with {node} ranks on each, or leave one of the two out",
            other.path.display(),
            other.node_ranks()
        )));
    }
    let mut levels = Vec::new();
    for (name, tables) in [("node", &mut inside), ("cluster", &mut outside)] {
        if !tables.is_empty() {
            levels.push(of_tables(name, tables)?);
        }
    }
    let times = Times { levels };
    let mut calibration = build(&times, machine, most as u32, UnitRanks::Equal(node as u32))?;
    let sums = tables.iter().filter(|table| table.test == NcclTest::AllReduce);
    let wrong = tables.iter().filter(|table| table.wrong > 0);
    calibration.notes.extend(wrong.map(|table| {
        format!(
            "{}: {} elements arrived WRONG (#wrong): see to that first",
            table.path.display(),
            table.wrong
        )
    }));
    calibration.notes.extend(sums.map(|table| {
        format!(
            "{}: a sum takes {} messages one after the other; the latency is that of one, and so much \
             was taken from the seconds measured",
            table.path.display(),
            table.hops()
        )
    }));
    Ok(calibration)
}

/// The tables of one level, as if its parts had been measured.
fn of_tables(name: &str, tables: &mut [&NcclTable]) -> Result<LevelTimes> {
    tables.sort_by_key(|table| table.peers());
    let same = tables.windows(2).find(|pair| pair[0].peers() == pair[1].peers());
    if let Some([first, second]) = same {
        return Err(Error::Config(format!(
            "{} and {}: both measure the {name} with equally many peers: give one",
            first.path.display(),
            second.path.display()
        )));
    }
    let mut parts = Vec::new();
    let (mut points, mut peers) = (Vec::new(), 0);
    for table in tables.iter() {
        let at = |error| Error::Config(format!("{}: {error}", table.path.display()));
        let (sent, hops) = (table.sent()?, table.hops());
        let seconds: Vec<(u64, f64)> =
            table.points.iter().zip(sent).map(|(point, sent)| (sent, point.1)).collect();
        let fit = LinkFit::of(&seconds).map_err(at)?;
        let least = LinkFit::FEWEST * 2 - 1;
        // Of a test that takes several hops, what one of them takes: the latency beyond the first is
        // not the link's.
        let beyond = fit.latency * (1.0 - 1.0 / hops);
        let point = |(number, &(bytes, seconds)): (usize, &(u64, f64))| Point {
            bytes,
            seconds: (seconds - beyond).max(seconds * 1e-3),
            held_out: is_held_out(number, table.points.len(), least),
        };
        points = seconds.iter().enumerate().map(point).collect();
        peers = table.peers();
        let large = seconds[seconds.len() - 1].0;
        parts.push((peers, large, fit.latency + large as f64 / fit.bandwidth));
    }
    Ok(LevelTimes { name: name.to_owned(), peers, points, parts })
}

/// Every second size, unless too few would be left; the last is always fitted.
fn is_held_out(number: usize, sizes: usize, least: usize) -> bool {
    sizes >= least && (sizes - 1 - number) % 2 == 1
}

fn build(
    times: &Times,
    machine: &Machine,
    world: u32,
    node_ranks: UnitRanks,
) -> Result<Calibration> {
    let mut notes = Vec::new();
    let mut levels = Vec::new();
    if times.levels[0].name != "node" {
        notes.push("no host has two ranks: nothing travels over the links of its level".to_owned());
        levels.push(LevelSpec {
            name: "node".to_owned(),
            ranks: node_ranks.clone(),
            bandwidth: machine.memory_bandwidth,
            latency: 0.0,
            all_to_all: Vec::new(),
            transfers: Vec::new(),
        });
    }
    for level in &times.levels {
        let ranks = if level.name == "node" { node_ranks.clone() } else { UnitRanks::Equal(world) };
        levels.push(link(level, ranks)?);
    }
    let topology = TopologySpec {
        name: machine.name.clone(),
        ranks: world,
        memory_bytes: machine.memory_bytes,
        memory_bandwidth: round(machine.memory_bandwidth),
        flops: round(machine.flops),
        levels,
    };
    let checked = Topology::new(topology.clone())?;
    let mut residuals = Vec::new();
    for level in &times.levels {
        let Some(links) = checked.levels().iter().find(|links| links.name() == level.name) else {
            continue;
        };
        residuals.extend(level.points.iter().map(|point| {
            let predicted = links.exchange_seconds(level.peers, point.bytes as f64);
            Residual {
                level: level.name.clone(),
                bytes: point.bytes,
                measured: point.seconds,
                predicted,
                error: predicted / point.seconds - 1.0,
                held_out: point.held_out,
            }
        }));
    }
    Ok(Calibration { topology, residuals, notes })
}

/// One level: the fit of the sizes, and the part of the bandwidth that is left with more peers.
fn link(level: &LevelTimes, ranks: UnitRanks) -> Result<LevelSpec> {
    let fitted = level.points.iter().filter(|point| !point.held_out);
    let fitted: Vec<(u64, f64)> = fitted.map(|point| (point.bytes, point.seconds)).collect();
    let fit = LinkFit::of(&fitted)
        .map_err(|error| Error::Config(format!("level {:?}: {error}", level.name)))?;
    let mut all_to_all: Vec<(u32, f64)> = Vec::new();
    let rate = |&(_, bytes, seconds): &(u32, u64, f64)| {
        bytes as f64 / (seconds - fit.latency).max(seconds * 1e-3)
    };
    let (mut first, mut before) = (None, 1.0_f64);
    for part in &level.parts {
        let rate = rate(part);
        // More peers are no help: where they seem to be, it is noise.
        let left = (rate / *first.get_or_insert(rate)).min(before);
        let left = (left * 1000.0).round().max(1.0) / 1000.0;
        if all_to_all.last().is_none_or(|&(peers, _)| peers < part.0) {
            all_to_all.push((part.0, left));
            before = left;
        }
    }
    if all_to_all.len() < 2 {
        all_to_all.clear();
    }
    // The sizes were measured with all ranks: what is left for them is not taken away twice.
    let left = all_to_all.last().map_or(1.0, |&(_, left)| left);
    Ok(LevelSpec {
        name: level.name.clone(),
        ranks,
        bandwidth: round(fit.bandwidth / left),
        latency: round(fit.latency),
        all_to_all,
        transfers: fit
            .transfers
            .iter()
            .map(|&(bytes, seconds)| (bytes, round(seconds * left)))
            .collect(),
    })
}

/// Six digits: more are not measured.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
