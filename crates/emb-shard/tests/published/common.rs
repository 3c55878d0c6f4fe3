//! One point of a simulation.

use emb_shard::{
    CostModel, Estimate, Objective, Planner, Preset, RankEstimate, StepModel, Task, Topology,
    Workload,
};

/// A simulated step.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) samples_per_second: f64,
    pub(crate) step: Estimate,
    /// Bytes of the fullest rank, and what a rank has.
    pub(crate) peak: f64,
    pub(crate) memory: f64,
}

impl Point {
    /// `workload` on `gpus` ranks of the machines of all presets, planned by `planner`.
    pub(crate) fn of(
        preset: &Preset,
        workload: &Workload,
        gpus: u32,
        replicas: Option<u32>,
        planner: &dyn Planner,
    ) -> Self {
        let machines = Preset::machines(gpus).expect("whole nodes");
        let constraints = preset.constraints(replicas);
        let objective = Objective::StepSeconds;
        let task = Task { workload, topology: &machines, constraints, objective };
        let plan = planner.plan(&task).expect("the planner's own bytes fit");
        let model: StepModel = Preset::model();
        let step = model.estimate(&plan, workload, &machines).expect("belongs together");
        Self::from_step(workload, &machines, step)
    }

    fn from_step(workload: &Workload, machines: &Topology, step: Estimate) -> Self {
        let samples = workload.batch().global(machines.world()).expect("fits") as f64;
        let peak = step.fullest().map_or(0.0, |rank: &RankEstimate| rank.peak.total());
        Self {
            samples_per_second: samples / step.step_seconds(),
            step,
            peak,
            memory: machines.memory().get() as f64,
        }
    }

    pub(crate) fn fits(&self) -> bool {
        self.peak <= self.memory
    }

    /// Part of the step in which tables' ids, sums and gradients travel and nothing else is done.
    pub(crate) fn exchange_share(&self) -> f64 {
        self.step.parts.exchange() / self.step.step_seconds()
    }

    pub(crate) fn sync_share(&self) -> f64 {
        self.step.parts.replica_sync / self.step.step_seconds()
    }

    /// The longest part of the step: what a faster machine would have to be faster at.
    pub(crate) fn longest(&self) -> &'static str {
        let parts = self.step.parts.named();
        parts.into_iter().fold(("", 0.0), |a, b| if b.1 > a.1 { b } else { a }).0
    }
}

/// `value` is within a part of what was published.
pub(crate) fn near(what: &str, value: f64, published: f64, part: f64) {
    let off = value / published - 1.0;
    assert!(off.abs() <= part, "{what}: {value:.3}, published {published}, {:.1} %", off * 100.0);
}

/// `value` is within a difference of what was published.
pub(crate) fn close(what: &str, value: f64, published: f64, difference: f64) {
    let off = value - published;
    assert!(off.abs() <= difference, "{what}: {value:.3}, published {published}");
}
