//! Published models by name: [`Preset`], workloads with the source of every number.
//!
//! ```text
//!   embark-*   published lists of tables and layers       planned by EMBark's planner
//!   exfm       bytes published, the rest assumed          planned by TorchRec's, in groups of 256
//!   ctr-256    assumed, to meet what was published        planned by TorchRec's, M = 1, 2, 4, 8
//!
//!   all        one set of hardware constants: Preset::machines, Preset::model
//! ```
//!
//! The published figures come without tables, batches or machines. What has to be assumed is kept
//! to fewer numbers than the figures that they must meet, and says so ([`Input::assumed`]).

mod embark;
mod hardware;
mod input;
mod replicas;

pub use input::Input;

use crate::nearest::unknown;
use crate::{
    Bytes, Constraints, Error, Kind, Layout, Result, StepModel, Topology, Workload, WorkloadSpec,
};

/// A published model: its workload, how it was planned, and where every number comes from.
///
/// ```
/// use emb_shard::{CostModel, Planner, Preset, Task, TorchRec};
///
/// let preset = Preset::named("exfm")?;
/// let (workload, machines) = (preset.workload()?, Preset::machines(1024)?);
/// let replicas = preset.replicas(1024);
/// assert_eq!(replicas, 4);
/// let mut task = Task::new(&workload, &machines);
/// task.constraints = preset.constraints(Some(replicas));
/// let plan = TorchRec::default().plan(&task)?;
/// let step = Preset::model().estimate(&plan, &workload, &machines)?;
/// // Replicas of the tables are made equal in a small part of a step.
/// assert!(step.parts.replica_sync < 0.05 * step.step_seconds());
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    title: &'static str,
    spec: WorkloadSpec,
    planner: &'static str,
    gpus: &'static [u32],
    group_ranks: Option<u32>,
    kinds: Option<&'static [Kind]>,
    table_bytes: Option<Bytes>,
    inputs: Vec<Input>,
}

impl Preset {
    /// The names of all presets.
    pub fn names() -> Vec<&'static str> {
        let models = embark::MODELS.iter().map(|model| model.name);
        [replicas::EXFM, replicas::CTR].into_iter().chain(models).collect()
    }

    /// The preset of a name.
    ///
    /// # Errors
    /// A name that is unknown, with the nearest known one.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            replicas::EXFM => return Ok(replicas::exfm()),
            replicas::CTR => return Ok(replicas::ctr()),
            _ => {}
        }
        let model = embark::MODELS.iter().find(|model| model.name == name);
        model.map(embark::Model::preset).ok_or_else(|| Error::BadWorkload {
            workload: name.to_owned(),
            what: unknown(name, &Self::names()),
        })
    }

    /// The machines that all presets are simulated on: DGX H100 nodes, as many as `gpus` ranks
    /// need, with an all-to-all that slows with its peers.
    ///
    /// # Errors
    /// No ranks; not whole nodes.
    pub fn machines(gpus: u32) -> Result<Topology> {
        hardware::machines(gpus)
    }

    /// What all presets assume of the machines beyond that: the parts of their peaks that are
    /// reached.
    pub fn model() -> StepModel {
        hardware::model()
    }

    /// The numbers of [`machines`](Self::machines) and [`model`](Self::model), the same for all
    /// presets.
    pub fn hardware() -> Vec<Input> {
        hardware::inputs()
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// What it is, in a few words.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// The workload, to be changed.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// The workload.
    ///
    /// # Errors
    /// None for the presets of this crate.
    pub fn workload(&self) -> Result<Workload> {
        Workload::new(self.spec.clone())
    }

    /// [Name](crate::Planner::name) of the planner that the published figures are compared with.
    pub fn planner(&self) -> &'static str {
        self.planner
    }

    /// Ranks that there are published figures of, and beyond.
    pub fn gpus(&self) -> &'static [u32] {
        self.gpus
    }

    /// Replicas of the tables on `gpus` ranks: as many groups as there are of the published size,
    /// 1 where none was published.
    pub fn replicas(&self, gpus: u32) -> u32 {
        self.group_ranks.map_or(1, |ranks| (gpus / ranks).max(1))
    }

    /// What plans may not do: with `replicas` of every table, close together
    /// ([`Layout::Strided`]), or as many as pay for `None`.
    pub fn constraints(&self, replicas: Option<u32>) -> Constraints {
        Constraints {
            kinds: self.kinds.map(|kinds| kinds.iter().copied().collect()),
            table_bytes: self.table_bytes,
            replicas: replicas.map(|replicas| (replicas, Layout::Strided)),
            ..Constraints::default()
        }
    }

    /// Where its numbers come from; the [hardware](Self::hardware) not among them.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }
}

#[cfg(test)]
mod tests;
