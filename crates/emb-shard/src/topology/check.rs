//! What a topology must be to exist.

use super::level::Level;
use super::spec::{LevelSpec, TopologySpec, UnitRanks};
use crate::{Error, MAX_WORLD, Result};

/// The levels of `spec`, once all of it is checked.
pub(super) fn levels(spec: &TopologySpec) -> Result<Vec<Level>> {
    let bad = |what| Error::BadTopology { topology: spec.name.clone(), what };
    whole(spec).map_err(bad)?;
    let mut levels: Vec<Level> = Vec::with_capacity(spec.levels.len());
    for level in &spec.levels {
        let of_level = |what| bad(format!("level {:?}: {what}", level.name));
        links(level).map_err(of_level)?;
        let starts = starts(&level.ranks, spec.ranks).map_err(of_level)?;
        if let Some(inside) = levels.last() {
            let cut = starts.iter().find(|start| inside.starts().binary_search(start).is_err());
            if let Some(start) = cut {
                let what = format!("a unit begins at rank {start}, inside a {}", inside.name());
                return Err(of_level(what));
            }
        }
        levels.push(Level::new(level.clone(), starts));
    }
    match levels.last() {
        None => Err(bad("needs at least one level".into())),
        Some(last) if last.units() > 1 => {
            let what =
                format!("the last level {:?} has {} units: must be one", last.name(), last.units());
            Err(bad(what))
        }
        Some(_) => Ok(levels),
    }
}

fn whole(spec: &TopologySpec) -> Result<(), String> {
    if spec.name.is_empty() {
        return Err("needs a name".into());
    }
    if !(1..=MAX_WORLD).contains(&spec.ranks) {
        return Err(format!("{} ranks: must be in 1..={MAX_WORLD}", spec.ranks));
    }
    if spec.memory_bytes == 0 {
        return Err("a rank without memory".into());
    }
    rate("a memory bandwidth", "bytes a second", spec.memory_bandwidth)?;
    rate("a compute rate", "operations a second", spec.flops)
}

fn links(level: &LevelSpec) -> Result<(), String> {
    if level.name.is_empty() {
        return Err("needs a name".into());
    }
    rate("a bandwidth", "bytes a second", level.bandwidth)?;
    if !(level.latency.is_finite() && level.latency >= 0.0) {
        let latency = level.latency;
        return Err(format!("a latency of {latency} seconds: must be finite and at least 0"));
    }
    let (mut peers_before, mut part_before) = (0, 1.0);
    for &(peers, part) in &level.all_to_all {
        if peers <= peers_before {
            return Err(format!(
                "an all-to-all with {peers} peers after {peers_before}: must ascend from 1"
            ));
        }
        if !(part > 0.0 && part <= part_before) {
            return Err(format!(
                "an all-to-all with {peers} peers at {part} of the bandwidth: must be above 0 and \
                 at most {part_before}"
            ));
        }
        (peers_before, part_before) = (peers, part);
    }
    transfers(&level.transfers)
}

/// More bytes take longer.
fn transfers(points: &[(u64, f64)]) -> Result<(), String> {
    let (mut bytes_before, mut seconds_before) = (0, 0.0);
    for &(bytes, seconds) in points {
        if bytes <= bytes_before {
            return Err(format!(
                "a transfer of {bytes} bytes after {bytes_before}: must ascend from 1"
            ));
        }
        if !(seconds > seconds_before && seconds.is_finite()) {
            return Err(format!(
                "a transfer of {bytes} bytes in {seconds} seconds: must be finite and above \
                 {seconds_before}"
            ));
        }
        (bytes_before, seconds_before) = (bytes, seconds);
    }
    Ok(())
}

fn rate(what: &str, unit: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(format!("{what} of {value} {unit}: must be finite and above 0"))
}

/// First rank of every unit, then `world`.
fn starts(units: &UnitRanks, world: u32) -> Result<Vec<u32>, String> {
    let ranks = match units {
        UnitRanks::Equal(0) => return Err("a unit without ranks".into()),
        UnitRanks::Equal(ranks) if world.is_multiple_of(*ranks) => {
            return Ok((0..=world / ranks).map(|unit| unit * ranks).collect());
        }
        UnitRanks::Equal(ranks) => {
            return Err(format!("{world} ranks do not split into units of {ranks}"));
        }
        UnitRanks::Each(ranks) => ranks,
    };
    let mut starts = vec![0_u32];
    let mut sum = 0_u64;
    for (unit, &ranks) in ranks.iter().enumerate() {
        if ranks == 0 {
            return Err(format!("unit {unit} has no ranks"));
        }
        sum += u64::from(ranks);
        if sum > u64::from(world) {
            return Err(format!("units 0..={unit} have {sum} ranks, there are {world}"));
        }
        starts.push(sum as u32);
    }
    if sum < u64::from(world) {
        return Err(format!("all units have {sum} ranks together, there are {world}"));
    }
    Ok(starts)
}
