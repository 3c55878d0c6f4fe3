//! Published models as workloads.

mod embark;
mod hardware;
mod meta;

use crate::nearest::unknown;
use crate::{
    Bytes, Constraints, Error, Kind, Layout, Result, StepModel, Topology, Workload, WorkloadSpec,
};
use serde::Serialize;

/// An input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Input {
    /// What.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// Where from.
    pub source: &'static str,
    /// Assumed.
    pub assumed: bool,
}

/// A preset.
#[derive(Clone, Debug)]
pub struct Preset {
    title: &'static str,
    /// spec
    pub spec: WorkloadSpec,
    planner: &'static str,
    gpus: &'static [u32],
    group_ranks: Option<u32>,
    replicas: &'static [u32],
    kinds: Option<Vec<Kind>>,
    reserved: Bytes,
    inputs: Vec<Input>,
}

impl Input {
    fn known(name: &'static str, value: f64, unit: &'static str, source: &'static str) -> Self {
        Self { name, value, unit, source, assumed: false }
    }
}

impl Preset {
    /// named
    ///
    /// # Errors
    /// unknown.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "exfm" => return Ok(meta::exfm()),
            "ctr-256" => return Ok(meta::ctr()),
            _ => {}
        }
        embark::MODELS.iter().find(|model| model.name == name).map(embark::Model::preset).ok_or_else(
            || Error::BadWorkload {
                workload: name.to_owned(),
                what: unknown(name, &["exfm"]),
            },
        )
    }
    /// machines
    /// # Errors
    /// none
    pub fn machines(gpus: u32) -> Result<Topology> {
        hardware::machines(gpus)
    }
    /// model
    pub fn model() -> StepModel {
        hardware::model()
    }
    /// c
    pub fn constraints(&self, replicas: u32) -> Constraints {
        Constraints {
            kinds: self.kinds.as_ref().map(|kinds| kinds.iter().copied().collect()),
            reserved: self.reserved,
            replicas: Some((replicas, Layout::Strided)),
            ..Constraints::default()
        }
    }
}
