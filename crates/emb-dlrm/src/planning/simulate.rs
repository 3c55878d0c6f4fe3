//! A workload planned and priced on ever more ranks: [`Simulator`].

use super::DEFAULT_PLANNER;
use super::planner_options::layout;
use super::{Machines, Outcome, Solver, make_plan};
use crate::config::LayoutKind;
use crate::{Error, Result};
use emb_shard::{
    Constraints, Estimate, Objective, Parts, Preset, StepModel, Task, Topology, Workload,
};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How many replicas the points of a line have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Replicas {
    /// What the planner finds.
    Auto,
    /// So many.
    Exactly(u32),
}

/// What is simulated.
#[derive(Debug)]
pub struct Simulator<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The machines.
    pub machines: &'a Machines,
    /// Who plans.
    pub planner: &'a dyn Solver,
    /// What prices a step.
    pub model: StepModel,
    /// What plans may not do; numbers of replicas displace what it says of them.
    pub constraints: Constraints,
    /// What is to be small.
    pub objective: Objective,
    /// The published model that is simulated: as many replicas as it had are those of
    /// [`Replicas::Auto`], where the planner does not look for a number itself.
    pub preset: Option<&'a Preset>,
    /// The ranks of a sharding group where the replicas are given.
    pub layout: Option<LayoutKind>,
}

/// All points, in the order in which they were asked for: every number of ranks with every number
/// of replicas.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// Name of the workload.
    pub workload: String,
    /// Who planned.
    pub planner: String,
    /// The points.
    pub points: Vec<Point>,
}

/// One number of ranks with one number of replicas. What only a plan has is absent where none
/// fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Ranks.
    pub gpus: u32,
    /// Replicas, as found where they were not given.
    pub replicas: Option<u32>,
    /// The line of a chart that it belongs to.
    #[serde(skip)]
    pub line: Replicas,
    /// Whether there is a plan that fits.
    pub feasible: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Samples a second, of all ranks together.
    pub samples_per_second: Option<f64>,
    /// Samples a second over those of the first point that fits.
    pub scaling: Option<f64>,
    /// Seconds of a step.
    pub step_seconds: Option<f64>,
    /// The same by part, of the slowest rank in each.
    pub step_parts: Option<Parts>,
    /// Part of the step in which ids, rows, sums and gradients of tables are exchanged.
    pub comm_share: Option<f64>,
    /// Part of the step in which replicas of tables are made equal.
    pub sync_share: Option<f64>,
    /// Seconds of the tables on the busiest rank over those of the mean rank.
    pub max_over_mean: Option<f64>,
    /// Bytes of memory of the fullest rank.
    pub peak_bytes: Option<f64>,
    /// What takes most of the step, or `memory` where no plan fits.
    pub limit: String,
    /// Seconds that planning took.
    pub planning_seconds: Option<f64>,
}

impl FromStr for Replicas {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(count) if count > 0 => Ok(Self::Exactly(count)),
            _ => Err("must be auto, or whole numbers of 1 or more".into()),
        }
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(count) => write!(f, "{count}"),
        }
    }
}

impl Simulator<'_> {
    /// Plans and prices every number of ranks with every number of replicas; `told` gets each
    /// point when it is done.
    ///
    /// # Errors
    /// Machines that there are not so many of; constraints that can't be met. A plan that does
    /// not fit is a point, not an error.
    pub fn run(
        &self,
        gpus: &[u32],
        replicas: &[Replicas],
        mut told: impl FnMut(&Point),
    ) -> Result<Simulation> {
        let mut points: Vec<Point> = Vec::with_capacity(gpus.len() * replicas.len());
        let mut first = None;
        for &gpus in gpus {
            let topology = self.machines.of_ranks(gpus)?;
            for &line in replicas {
                let mut point = self.point(&topology, line)?;
                first = first.or(point.samples_per_second);
                point.scaling = point.samples_per_second.zip(first).map(|(own, first)| own / first);
                told(&point);
                points.push(point);
            }
        }
        let (workload, planner) = (self.workload.name().to_owned(), self.planner.name().to_owned());
        Ok(Simulation { workload, planner, points })
    }

    fn point(&self, topology: &Topology, line: Replicas) -> Result<Point> {
        let gpus = topology.world();
        let mut constraints = self.constraints.clone();
        let searches = self.planner.name() == DEFAULT_PLANNER;
        if let (Replicas::Auto, Some(preset), false) = (line, self.preset, searches) {
            constraints.replicas = Some((preset.replicas(gpus), layout(self.layout)));
        }
        if let Replicas::Exactly(replicas) = line {
            if !gpus.is_multiple_of(replicas) {
                let reason = format!("{gpus} ranks do not split into {replicas} groups");
                return Ok(Point::without_plan(gpus, line, reason, "replicas"));
            }
            constraints.replicas = Some((replicas, layout(self.layout)));
            constraints.max_replicas = None;
        }
        let (workload, objective) = (self.workload, self.objective);
        let task = Task { workload, topology, constraints, objective };
        match make_plan(self.planner, &task, &self.model) {
            Ok(outcome) => {
                let samples = workload.batch().global(gpus)?;
                Ok(Point::of(&outcome, line, samples, topology))
            }
            Err(Error::Infeasible(reason)) => Ok(Point::without_plan(gpus, line, reason, "memory")),
            Err(error) => Err(error),
        }
    }
}

impl Point {
    fn of(outcome: &Outcome, line: Replicas, samples: u64, topology: &Topology) -> Self {
        let estimate = &outcome.estimate;
        let step = estimate.step_seconds();
        let share = |seconds: f64| if step > 0.0 { seconds / step } else { 0.0 };
        Self {
            gpus: topology.world(),
            replicas: Some(match line {
                Replicas::Auto => outcome.replicas(),
                Replicas::Exactly(replicas) => replicas,
            }),
            line,
            feasible: true,
            reason: None,
            samples_per_second: Some(samples as f64 / step),
            scaling: None,
            step_seconds: Some(step),
            step_parts: Some(estimate.parts),
            comm_share: Some(share(estimate.parts.exchange())),
            sync_share: Some(share(estimate.parts.replica_sync)),
            max_over_mean: Some(estimate.max_over_mean()),
            peak_bytes: Some(outcome.peak_bytes().max_rank),
            limit: limit(estimate, topology),
            planning_seconds: Some(outcome.planning_seconds),
        }
    }

    fn without_plan(gpus: u32, line: Replicas, reason: String, limit: &str) -> Self {
        Self {
            gpus,
            replicas: match line {
                Replicas::Auto => None,
                Replicas::Exactly(replicas) => Some(replicas),
            },
            line,
            feasible: false,
            reason: Some(reason),
            samples_per_second: None,
            scaling: None,
            step_seconds: None,
            step_parts: None,
            comm_share: None,
            sync_share: None,
            max_over_mean: None,
            peak_bytes: None,
            limit: limit.to_owned(),
            planning_seconds: None,
        }
    }
}

/// What takes most of the step.
fn limit(estimate: &Estimate, topology: &Topology) -> String {
    let parts = estimate.parts;
    let uses = [
        (parts.exchange(), exchange_limit(estimate, topology)),
        (parts.lookup + parts.update, "memory bandwidth of rows".to_owned()),
        (parts.dense, "dense model".to_owned()),
        (parts.dense_sync, "sync of the dense model".to_owned()),
        (parts.replica_sync, "sync of replicas".to_owned()),
    ];
    let most = uses.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or_else(String::new, |(_, name)| name)
}

/// The level whose bandwidth exchanges take longest, or latency where bandwidth explains less than
/// half of them.
fn exchange_limit(estimate: &Estimate, topology: &Topology) -> String {
    let levels = topology.levels().iter().enumerate().map(|(number, level)| {
        let seconds = estimate.ranks.iter().filter_map(|rank| {
            let bytes = rank.exchanged.get(number)?;
            let bytes = bytes.sent.max(bytes.received);
            Some(bytes / level.bandwidth_at(bytes))
        });
        (seconds.fold(0.0, f64::max), level.name())
    });
    let levels: Vec<(f64, &str)> = levels.collect();
    let by_bandwidth: f64 = levels.iter().map(|(seconds, _)| seconds).sum();
    let slowest = levels.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    match slowest {
        Some((_, name)) if by_bandwidth >= 0.5 * estimate.parts.exchange() => {
            format!("exchange, bandwidth of the {name}")
        }
        Some((_, name)) => format!("exchange, latency or contention of the {name}"),
        None => "exchange".to_owned(),
    }
}
