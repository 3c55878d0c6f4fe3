//! Published figures of 2D sparse parallelism and `EMBark` beside what the simulator says of the
//! presets, and beside the null model: twice the ranks, twice the samples.

use emb_shard::{
    CostModel, EmbarkPlanner, Estimate, Lattice, Objective, Planner, Preset, Result, TableRowWise,
    Task, TorchRec, Workload,
};
use std::error::Error;
use std::io::Write;

/// Published samples a second of `exfm` over those on 256 GPUs: one group, groups of 256.
const EXFM: [(u32, Option<f64>, Option<f64>); 7] = [
    (512, Some(1.91), Some(2.02)),
    (1024, Some(3.19), Some(3.84)),
    (2048, None, Some(7.61)),
    (4096, None, Some(14.4)),
    (8192, None, None),
    (16_384, None, None),
    (32_768, None, None),
];

struct Point {
    samples_per_second: f64,
    step: Estimate,
    peak: f64,
    fits: bool,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    inputs(&mut out)?;
    exfm(&mut out)?;
    ctr(&mut out)?;
    lattice(&mut out)?;
    embark(&mut out, "dense gradients summed beside the embeddings' backward pass", 0)?;
    embark(&mut out, "dense gradients of 2 bytes a weight behind the dense model alone", 2)
}

fn inputs(out: &mut impl Write) -> std::result::Result<(), Box<dyn Error>> {
    writeln!(out, "hardware of all presets")?;
    for input in Preset::hardware() {
        writeln!(out, "  {input}")?;
    }
    for name in Preset::names() {
        let preset = Preset::named(name)?;
        writeln!(out, "{name}: {}", preset.title())?;
        for input in preset.inputs() {
            writeln!(out, "  {input}")?;
        }
    }
    Ok(())
}

fn simulate(
    preset: &Preset,
    workload: &Workload,
    gpus: u32,
    replicas: Option<u32>,
    planner: &dyn Planner,
) -> Result<Point> {
    let topology = Preset::machines(gpus)?;
    let (constraints, objective) = (preset.constraints(replicas), Objective::StepSeconds);
    let task = Task { workload, topology: &topology, constraints, objective };
    let plan = planner.plan(&task)?;
    let step = Preset::model().estimate(&plan, workload, &topology)?;
    let samples = workload.batch().global(gpus)? as f64;
    let peak = step.fullest().map_or(0.0, |rank| rank.peak.total());
    let fits = peak <= topology.memory().get() as f64;
    Ok(Point { samples_per_second: samples / step.step_seconds(), step, peak, fits })
}

/// The memory, or the longest part of the step.
fn limit(point: &Point) -> &'static str {
    let parts = point.step.parts.named();
    let longest = parts.into_iter().fold(("", 0.0), |a, b| if b.1 > a.1 { b } else { a }).0;
    if point.fits { longest } else { "memory" }
}

fn error(value: f64, published: Option<f64>) -> String {
    published.map_or("-".into(), |known| format!("{:+.1} %", 100.0 * (value / known - 1.0)))
}

fn exfm(out: &mut impl Write) -> std::result::Result<(), Box<dyn Error>> {
    let preset = Preset::named("exfm")?;
    let workload = preset.workload()?;
    let point =
        |gpus, replicas| simulate(&preset, &workload, gpus, Some(replicas), &TorchRec::default());
    let base = point(256, 1)?;
    writeln!(out, "\nexfm, 256 GPUs: {:.3e} samples a second", base.samples_per_second)?;
    writeln!(
        out,
        "   gpus   M  published  simulated    error  linear    error  sync %  peak GB  limit"
    )?;
    for (gpus, one_group, groups) in EXFM {
        let replicas = preset.replicas(gpus);
        for (replicas, published) in [(1, one_group), (replicas, groups)] {
            let point = match point(gpus, replicas) {
                Err(emb_shard::Error::DoesNotFit(_)) => {
                    writeln!(out, "{gpus:7} {replicas:3}  no plan fits the memory")?;
                    continue;
                }
                point => point?,
            };
            let ratio = point.samples_per_second / base.samples_per_second;
            let linear = f64::from(gpus) / 256.0;
            let known = published.map_or("-".into(), |known| format!("{known}"));
            let sync = 100.0 * point.step.parts.replica_sync / point.step.step_seconds();
            writeln!(
                out,
                "{gpus:7} {replicas:3}  {known:>9}  {ratio:9.2}  {:>7}  {linear:6}  {:>7}  {sync:6.1}  {:7.1}  {}",
                error(ratio, published),
                error(linear, published),
                point.peak / 1e9,
                limit(&point)
            )?;
        }
    }
    for gpus in [1024, 2048] {
        let (four, eight) = (point(gpus, 4)?, point(gpus, 8)?);
        let ratio = eight.samples_per_second / four.samples_per_second;
        writeln!(out, "{gpus} GPUs, M = 8 over M = 4: {ratio:.3}")?;
    }
    let one = point(1024, 1)?.step;
    let seconds = one.parts.output_exchange + one.parts.backward_exchange;
    let buffers = one.fullest().map_or(0.0, |rank| rank.peak.buffers);
    writeln!(
        out,
        "1,024 GPUs, one group: all-to-all of {seconds:.3} s (published: over 0.6), activations of \
         {:.1} GB (about 15)",
        buffers / 1e9
    )?;
    Ok(())
}

fn ctr(out: &mut impl Write) -> std::result::Result<(), Box<dyn Error>> {
    let preset = Preset::named("ctr-256")?;
    let workload = preset.workload()?;
    writeln!(out, "\nctr-256, published: 1.53e6 and, with M = 4, 2.66e6 samples a second,")?;
    writeln!(out, "peak of 72.4 and 54.7 % of the memory, imbalance of 5.70 and 1.57")?;
    writeln!(out, "  M  samples/s  over M = 1  peak %  imbalance  sync %  limit")?;
    let mut base = None;
    for replicas in [1, 2, 4, 8] {
        let point = simulate(&preset, &workload, 256, Some(replicas), &TorchRec::default())?;
        let first = *base.get_or_insert(point.samples_per_second);
        writeln!(
            out,
            "{replicas:3}  {:9.3e}  {:10.2}  {:6.1}  {:9.2}  {:6.1}  {}",
            point.samples_per_second,
            point.samples_per_second / first,
            100.0 * point.peak / 80e9,
            point.step.max_over_mean(),
            100.0 * point.step.parts.replica_sync / point.step.step_seconds(),
            limit(&point)
        )?;
    }
    Ok(())
}

/// What the default planner makes of the same models, with all kinds of placement.
fn lattice(out: &mut impl Write) -> std::result::Result<(), Box<dyn Error>> {
    let lattice = Lattice { model: Preset::model(), tries: None };
    for (name, gpus, replicas) in [("ctr-256", 256, 4), ("exfm", 1024, 4), ("exfm", 4096, 16)] {
        let preset = Preset::named(name)?;
        let (workload, topology) = (preset.workload()?, Preset::machines(gpus)?);
        let torchrec = simulate(&preset, &workload, gpus, Some(replicas), &TorchRec::default())?;
        let planned = lattice.solve(&Task::new(&workload, &topology))?;
        let seconds = planned.estimate.step_seconds();
        let cut = planned.plan.placed().iter().flat_map(|(_, table)| &table.tiers);
        let groups = cut.map(|tier| tier.mesh.replicas()).filter(|&copies| copies < gpus).max();
        writeln!(
            out,
            "\nlattice, {name} on {gpus} GPUs: M = {}, {:.2} times as fast as torchrec with M = \
             {replicas}, no plan below {:.3} of it",
            groups.unwrap_or(gpus),
            torchrec.step.step_seconds() / seconds,
            planned.lower_bound_seconds / seconds
        )?;
    }
    Ok(())
}

/// Shares are of the exchange of ids, sums and gradients of tables; in brackets with the sum of
/// dense gradients.
fn embark(
    out: &mut impl Write,
    what: &str,
    gradient_bytes: u64,
) -> std::result::Result<(), Box<dyn Error>> {
    writeln!(out, "\nEMBark, {what}")?;
    writeln!(out, "published: 25 % on 8, 51 % on 128; embark 1.5 in the mean, 1.77 at most")?;
    writeln!(out, "  model         8 GPUs %    128 GPUs %  embark  lattice")?;
    let lattice = Lattice { model: Preset::model(), tries: None };
    let mut sums = [0.0; 6];
    let models = ["embark-dcnv2", "embark-t180", "embark-t200", "embark-t510"];
    for name in models {
        let preset = Preset::named(name)?;
        let mut spec = preset.spec().clone();
        // Eight bytes of memory a weight.
        spec.dense_model.gradient_bytes = spec.dense_model.memory_bytes / 8 * gradient_bytes;
        let workload = Workload::new(spec)?;
        let on = |gpus, replicas, planner: &dyn Planner| {
            simulate(&preset, &workload, gpus, replicas, planner)
        };
        let (eight, all) = (on(8, Some(1), &TableRowWise)?, on(128, Some(1), &TableRowWise)?);
        let embark = on(128, Some(1), &EmbarkPlanner::default())?;
        let lattice = on(128, None, &lattice)?;
        let share = |point: &Point, and: f64| {
            100.0 * (point.step.parts.exchange() + and) / point.step.step_seconds()
        };
        let row = [
            share(&eight, 0.0),
            share(&eight, eight.step.parts.dense_sync),
            share(&all, 0.0),
            share(&all, all.step.parts.dense_sync),
            embark.samples_per_second / all.samples_per_second,
            lattice.samples_per_second / all.samples_per_second,
        ];
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value / models.len() as f64;
        }
        line(out, name, row, if eight.fits { "" } else { "  (8 GPUs: memory)" })?;
    }
    line(out, "mean", sums, "")?;
    Ok(())
}

fn line(out: &mut impl Write, name: &str, row: [f64; 6], note: &str) -> std::io::Result<()> {
    let [eight, eight_all, all, all_all, embark, lattice] = row;
    writeln!(
        out,
        "  {name:<12}  {eight:4.1} ({eight_all:4.1})   {all:4.1} ({all_all:4.1})  {embark:6.2}  \
         {lattice:7.2}{note}"
    )
}
