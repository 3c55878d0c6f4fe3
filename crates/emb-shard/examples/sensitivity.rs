//! How far published figures move when one hardware constant of the presets is a fifth less or a
//! fifth more.

use emb_shard::{
    CostModel, EmbarkPlanner, Objective, Planner, Preset, Result, StepModel, TableRowWise, Task,
    Topology, TopologySpec, TorchRec,
};
use std::error::Error;
use std::io::Write;

/// A change of one constant.
type Change = fn(&mut Machines, f64);

struct Machines {
    model: StepModel,
    /// Part of the network left to an all-to-all among nodes, and at 1,024 GPUs.
    left: [f64; 2],
}

const CONSTANTS: [(&str, Change); 6] = [
    ("memory efficiency", |machines, by| machines.model.options.memory_efficiency *= by),
    ("link efficiency", |machines, by| machines.model.options.link_efficiency *= by),
    ("compute efficiency", |machines, by| machines.model.options.compute_efficiency *= by),
    ("all-to-all, 15 others", |machines, by| machines.left[0] *= by),
    ("all-to-all, 1,023 others", |machines, by| machines.left[1] *= by),
    ("straggling", |machines, by| machines.model.options.straggling *= by),
];

impl Machines {
    fn topology(&self, gpus: u32) -> Result<Topology> {
        let mut spec = TopologySpec::from(Preset::machines(gpus)?);
        if let [_, network] = &mut spec.levels[..] {
            let parts = network.all_to_all.iter_mut().zip(self.left);
            parts.for_each(|((_, part), by)| *part *= by);
        }
        Topology::new(spec)
    }

    /// Samples a second, and the part of the step in which tables' rows and sums travel.
    fn run(
        &self,
        preset: &Preset,
        gpus: u32,
        replicas: u32,
        planner: &dyn Planner,
    ) -> Result<(f64, f64)> {
        let (workload, topology) = (preset.workload()?, self.topology(gpus)?);
        let (constraints, objective) = (preset.constraints(Some(replicas)), Objective::StepSeconds);
        let task = Task { workload: &workload, topology: &topology, constraints, objective };
        let plan = planner.plan(&task)?;
        let step = self.model.estimate(&plan, &workload, &topology)?;
        let samples = workload.batch().global(gpus)? as f64;
        Ok((samples / step.step_seconds(), step.parts.exchange() / step.step_seconds()))
    }

    /// `exfm` on 1,024 GPUs in one group and in four, on 4,096 in 16, over 256; `ctr-256` with
    /// M = 4 over 1; percent of communication on 8 and 128 GPUs, and the gain of `embark`.
    fn figures(&self) -> Result<[f64; 7]> {
        let torchrec = TorchRec::default();
        let (exfm, ctr) = (Preset::named("exfm")?, Preset::named("ctr-256")?);
        let rate = |preset, gpus, replicas| Ok(self.run(preset, gpus, replicas, &torchrec)?.0);
        let base = rate(&exfm, 256, 1)?;
        let mut figures = [
            rate(&exfm, 1024, 1)? / base,
            rate(&exfm, 1024, 4)? / base,
            rate(&exfm, 4096, 16)? / base,
            rate(&ctr, 256, 4)? / rate(&ctr, 256, 1)?,
            0.0,
            0.0,
            0.0,
        ];
        for name in ["embark-dcnv2", "embark-t180", "embark-t200", "embark-t510"] {
            let preset = Preset::named(name)?;
            let before = self.run(&preset, 128, 1, &TableRowWise)?;
            figures[4] += 25.0 * self.run(&preset, 8, 1, &TableRowWise)?.1;
            figures[5] += 25.0 * before.1;
            figures[6] += self.run(&preset, 128, 1, &EmbarkPlanner::default())?.0 / before.0 / 4.0;
        }
        Ok(figures)
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:33} exfm 1D    exfm 2D             ctr     EMBark", "")?;
    writeln!(out, "{:33} 1024     1024   4096      M 4/1   8 %  128 %  embark", "")?;
    let mut line = |what: &str, [one, four, sixteen, ctr, eight, all, embark]: [f64; 7]| {
        writeln!(
            out,
            "{what:<33} {one:4.2}     {four:4.2}  {sixteen:5.2}       {ctr:4.2}  {eight:4.1}   \
             {all:4.1}    {embark:4.2}"
        )
    };
    line("published", [3.19, 3.84, 14.4, 1.74, 25.0, 51.0, 1.5])?;
    let machines = || Machines { model: Preset::model(), left: [1.0, 1.0] };
    line("as set", machines().figures()?)?;
    for (name, change) in CONSTANTS {
        for (by, what) in [(0.8, "-20 %"), (1.2, "+20 %")] {
            let mut changed = machines();
            change(&mut changed, by);
            line(&format!("{name} {what}"), changed.figures()?)?;
        }
    }
    Ok(())
}
