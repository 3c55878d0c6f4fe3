//! The machines, from a preset or a file: [`Machines`].

use crate::config::{json_file, toml_file};
use crate::{Error, Result};
use emb_shard::{Preset, Topology, TopologySpec, UnitRanks};
use std::path::Path;

/// Machines whose number may be open: a preset without a count, or a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Machines {
    /// A preset by name, such as `dgx-h100`, without its count.
    Open(String),
    /// A preset with its count.
    Counted(Box<Topology>),
    /// Those that all presets of workloads are simulated on, without their number.
    Published,
    /// As a file says.
    File(Box<TopologySpec>),
}

impl Machines {
    /// Reads `text`: `published:GPUS`, `dgx-h100:NODES`, `dgx-a100:NODES`, `cpu:RANKS`, one of them without the
    /// number, or a file that ends with .toml or .json.
    ///
    /// # Errors
    /// An unknown preset, with the nearest; by line and column: a file that can't be read.
    pub fn read(text: &str) -> Result<Self> {
        let path = Path::new(text);
        let spec = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml" | "json") if !path.is_file() => {
                return Err(Error::Config(format!("--topology: there is no file {text}")));
            }
            Some("toml") => toml_file(path)?,
            Some("json") => json_file(path)?,
            _ if text == PUBLISHED => return Ok(Self::Published),
            _ if text.starts_with(PUBLISHED) => {
                let gpus = text.strip_prefix(PUBLISHED).and_then(|text| text.strip_prefix(':'));
                let gpus = gpus.and_then(|gpus| gpus.parse().ok()).ok_or_else(|| {
                    Error::Config(format!("--topology {text}: must be {PUBLISHED}:GPUS, as 128"))
                })?;
                return Ok(Self::Counted(Box::new(published(gpus)?)));
            }
            _ if text.contains(':') => return Ok(Self::Counted(Box::new(preset(text)?))),
            _ => {
                // With any count it is a preset, or the error names those there are.
                preset(&format!("{text}:1"))?;
                return Ok(Self::Open(text.to_owned()));
            }
        };
        Ok(Self::File(Box::new(spec)))
    }

    /// All of them, as they are.
    ///
    /// # Errors
    /// A preset without its number; what [`Topology::new`] refuses.
    pub fn all(self) -> Result<Topology> {
        match self {
            Self::Counted(topology) => Ok(*topology),
            Self::File(spec) => checked(*spec),
            Self::Published => {
                Err(Error::Config(format!("--topology: how many? As in {PUBLISHED}:128")))
            }
            Self::Open(name) => {
                Err(Error::Config(format!("--topology {name}: how many? As in {name}:2")))
            }
        }
    }

    /// The same machines in any number, where there may be any.
    #[must_use]
    pub fn uncounted(&self) -> Self {
        match self {
            Self::Counted(topology) if self.are_published() => {
                debug_assert!(topology.world() > 0, "a topology has ranks");
                Self::Published
            }
            Self::Counted(topology) => {
                let name = topology.name();
                Self::Open(name.split_once(':').map_or(name, |(name, _)| name).to_owned())
            }
            other => other.clone(),
        }
    }

    /// Ranks that come and go together; `None` where their number is fixed.
    pub fn ranks_of_node(&self) -> Option<u32> {
        match self {
            Self::Open(name) => preset(&format!("{name}:1")).ok().map(|one| one.world()),
            Self::Published => published(8).ok()?.node_ranks(),
            Self::Counted(_) => None,
            Self::File(spec) => match (&spec.levels.first()?.ranks, spec.levels.len()) {
                (UnitRanks::Equal(ranks), 2) => Some(*ranks),
                _ => None,
            },
        }
    }

    /// So many ranks of them: whole nodes of a preset; of a file, as many units as give that many
    /// ranks, where all units of a level are equal.
    ///
    /// # Errors
    /// Ranks that are no whole number of nodes; a file of unequal units and other ranks.
    pub fn of_ranks(&self, ranks: u32) -> Result<Topology> {
        match self {
            Self::Open(name) => {
                let node = preset(&format!("{name}:1"))?.world();
                if ranks == 0 || !ranks.is_multiple_of(node) {
                    return Err(Error::Config(format!(
                        "--gpus {ranks}: a node of {name} has {node} ranks"
                    )));
                }
                preset(&format!("{name}:{}", ranks / node))
            }
            Self::Published => published(ranks),
            Self::Counted(topology) if topology.world() == ranks => Ok((**topology).clone()),
            Self::Counted(topology) => Err(Error::Config(format!(
                "--gpus {ranks}: {} has {} ranks: leave its number away",
                topology.name(),
                topology.world()
            ))),
            Self::File(spec) if spec.ranks == ranks => checked((**spec).clone()),
            Self::File(spec) => grown(spec, ranks),
        }
    }
}

/// What the machines of all presets of workloads are called.
const PUBLISHED: &str = "published";

impl Machines {
    /// Whether they are those of the presets, of which it is assumed how much of their peaks is
    /// reached.
    pub fn are_published(&self) -> bool {
        match self {
            Self::Published => true,
            Self::Counted(topology) => topology.name().starts_with(PUBLISHED),
            Self::Open(_) | Self::File(_) => false,
        }
    }
}

fn published(gpus: u32) -> Result<Topology> {
    let refuse = |error| Error::Config(format!("{PUBLISHED}:{gpus}: {error}"));
    let mut spec = TopologySpec::from(Preset::machines(gpus).map_err(refuse)?);
    spec.name = format!("{PUBLISHED}:{gpus}");
    checked(spec)
}

/// The same levels over another number of ranks.
fn grown(spec: &TopologySpec, ranks: u32) -> Result<Topology> {
    let mut spec = spec.clone();
    spec.ranks = ranks;
    if spec.levels.len() == 1 {
        return Err(Error::Config(format!(
            "--gpus {ranks}: the topology has one level, a node, and no links between nodes: only \
             as many ranks as it has can be simulated"
        )));
    }
    if let Some(level) = spec.levels.iter().find(|level| matches!(level.ranks, UnitRanks::Each(_)))
    {
        return Err(Error::Config(format!(
            "--gpus {ranks}: level {:?} of the topology lists its units one by one: only as many \
             ranks as it has can be simulated",
            level.name
        )));
    }
    if let Some(last) = spec.levels.last_mut() {
        last.ranks = UnitRanks::Equal(ranks);
    }
    checked(spec)
}

fn preset(text: &str) -> Result<Topology> {
    Topology::preset(text).map_err(|error| Error::Config(format!("--{error}")))
}

fn checked(spec: TopologySpec) -> Result<Topology> {
    Topology::new(spec).map_err(|error| Error::Config(format!("--{error}")))
}
