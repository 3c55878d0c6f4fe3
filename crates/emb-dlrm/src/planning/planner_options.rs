//! Which planner, and what it may not do, from flags: [`PlannerOptions`], [`ReplicaOptions`].

use super::Machines;
use super::planners::{DEFAULT_PLANNER, Solver, planner};
use super::words::{joined_word, parse_bytes, word};
use crate::config::LayoutKind;
use crate::{Error, Result};
use emb_shard::{Bytes, Constraints, CostOptions, Kind, Layout, Objective, Preset, StepModel};
use std::collections::BTreeMap;

/// The planner and its constraints.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct PlannerOptions {
    /// Who plans [default: lattice; for a preset of a workload, who its figures were published with]
    #[arg(long, value_name = "NAME", help_heading = "Planner")]
    pub planner: Option<String>,
    /// What is to be small: seconds of a step, bytes between nodes, bytes of the fullest rank [default: step-seconds]
    #[arg(long, value_name = "step-seconds|inter-node-bytes|memory", help_heading = "Planner", value_parser = word::<Objective>)]
    pub objective: Option<Objective>,
    /// The only kinds of placement: table-wise, row-wise, column-wise, data-parallel, table-row-wise, grid [default: all]
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', help_heading = "Planner", value_parser = joined_word::<Kind>)]
    pub kinds: Vec<Kind>,
    /// Only what emb train executes, priced as it executes it: with its collectives and all the bytes that it counts.
    #[arg(long, help_heading = "Planner")]
    pub for_training: bool,
    /// A table that stays whole on one position of each sharding group; may be given often.
    #[arg(long, value_name = "TABLE=POSITION", help_heading = "Planner", value_parser = pin)]
    pub pin: Vec<(String, u32)>,
    /// Fewest columns of a block of columns [default: the planner's own]
    #[arg(long, value_name = "N", help_heading = "Planner")]
    pub min_columns: Option<usize>,
    /// Bytes of every rank that tables may not use, as 4GiB [default: 0]
    #[arg(long, value_name = "BYTES", help_heading = "Planner", value_parser = parse_bytes)]
    pub reserve_bytes: Option<u64>,
    /// Most bytes of weights and optimizer state of a rank [default: all that buffers leave]
    #[arg(long, value_name = "BYTES", help_heading = "Planner", value_parser = parse_bytes)]
    pub table_bytes: Option<u64>,
}

/// How many replicas tables have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct ReplicaOptions {
    /// Most replicas of a table that is not data-parallel [default: what pays]
    #[arg(long, value_name = "M", help_heading = "Planner", conflicts_with = "replicas", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_replicas: Option<u32>,
    /// Exactly so many replicas of every table that is not data-parallel [default: what pays]
    #[arg(long, value_name = "M", help_heading = "Planner", value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: Option<u32>,
    /// With --replicas, the ranks of a sharding group: every M-th, or neighbours [default: strided]
    #[arg(
        long,
        value_name = "strided|contiguous",
        help_heading = "Planner",
        requires = "replicas"
    )]
    pub layout: Option<LayoutKind>,
}

impl ReplicaOptions {
    /// The constraints with what is said of replicas.
    #[must_use]
    pub fn of(&self, constraints: Constraints) -> Constraints {
        Constraints {
            max_replicas: self.max_replicas,
            replicas: self.replicas.map(|replicas| (replicas, layout(self.layout))),
            ..constraints
        }
    }
}

/// Strided where nothing is said.
pub(super) fn layout(kind: Option<LayoutKind>) -> Layout {
    match kind {
        None | Some(LayoutKind::Strided) => Layout::Strided,
        Some(LayoutKind::Contiguous) => Layout::Contiguous,
    }
}

impl PlannerOptions {
    /// The planner by its name.
    ///
    /// # Errors
    /// An unknown name, with the nearest and all known ones.
    pub fn planner(&self, preset: Option<&Preset>, machines: &Machines) -> Result<Box<dyn Solver>> {
        let usual = preset.map_or(DEFAULT_PLANNER, Preset::planner);
        planner(self.planner.as_deref().unwrap_or(usual), self.model(machines))
    }

    /// What prices a step: with the collectives of `emb train` where the plan is for it, with what
    /// published machines reach of their peaks.
    pub fn model(&self, machines: &Machines) -> StepModel {
        if machines.are_published() && !self.for_training {
            return Preset::model();
        }
        let options =
            if self.for_training { CostOptions::of_emb_train() } else { CostOptions::default() };
        StepModel { options }
    }

    /// Whether the planner is the one that a preset's figures were published with: it may not
    /// place tables in ways that it did not have.
    fn is_published(&self, preset: Option<&Preset>) -> bool {
        let planner = self.planner.as_deref();
        preset.is_some_and(|preset| planner.is_none_or(|planner| planner == preset.planner()))
    }

    /// What is to be small.
    pub fn objective(&self) -> Objective {
        self.objective.unwrap_or_default()
    }

    /// What plans may not do, replicas apart.
    ///
    /// # Errors
    /// A table that is pinned to two positions.
    pub fn constraints(&self, preset: Option<&Preset>) -> Result<Constraints> {
        let published = preset.map(|preset| preset.constraints(None)).unwrap_or_default();
        let mut pinned = BTreeMap::new();
        for (table, position) in &self.pin {
            if let Some(other) = pinned.insert(table.clone(), *position) {
                return Err(Error::Config(format!(
                    "--pin {table}={position}: it is pinned to {other}, too"
                )));
            }
        }
        Ok(Constraints {
            kinds: match self.kinds.as_slice() {
                [] if self.is_published(preset) => published.kinds,
                [] => None,
                kinds => Some(kinds.iter().copied().collect()),
            },
            pinned,
            min_columns: self.min_columns,
            reserved: Bytes::new(self.reserve_bytes.unwrap_or(0)),
            table_bytes: self.table_bytes.map(Bytes::new).or(published.table_bytes),
            ..Constraints::default()
        })
    }
}

/// `table=position`; a name may hold `=` itself.
fn pin(text: &str) -> Result<(String, u32), String> {
    let parts = text.rsplit_once('=').filter(|(table, _)| !table.is_empty());
    let position = parts.and_then(|(table, position)| Some((table, position.parse().ok()?)));
    position
        .map(|(table, position)| (table.to_owned(), position))
        .ok_or_else(|| "must be TABLE=POSITION, as ads=3".to_owned())
}
