//! `emb simulate`.

use crate::args::SimulateArgs;
use crate::output::{json, note, out, write_file};
use crate::text::{bytes, count, counted, pairs, percent, seconds, table};
use emb_dlrm::planning::{Machines, Point, Replicas, Simulation, Simulator, scaling_chart};
use emb_dlrm::{Error, Result};
use emb_shard::{Input, Preset};

pub(crate) fn run(args: &SimulateArgs) -> Result<()> {
    if args.layout.is_some() && args.replicas.iter().all(|&replicas| replicas == Replicas::Auto) {
        return Err(Error::Config("--layout has no effect: give numbers of --replicas".into()));
    }
    let (workload, preset) = (args.workload.load()?, args.workload.preset());
    let topology = args.topology.as_deref().or_else(|| preset.as_ref().map(|_| "published"));
    let Some(topology) = topology else {
        return Err(Error::Config("--topology is missing: as in --topology dgx-h100".into()));
    };
    let machines = Machines::read(topology)?;
    let planner = args.planner.planner(preset.as_ref(), &machines)?;
    let simulator = Simulator {
        workload: &workload,
        machines: &machines,
        planner: planner.as_ref(),
        model: args.planner.model(&machines),
        constraints: args.planner.constraints(preset.as_ref())?,
        objective: args.planner.objective(),
        preset: preset.as_ref(),
        layout: args.layout,
    };
    let total = args.gpus.len() * args.replicas.len();
    let mut done = 0;
    let simulation = simulator.run(&args.gpus, &args.replicas, |point| {
        done += 1;
        note(&format!("{done}/{total}  {}", in_words(point)));
    })?;
    if let Some(path) = &args.chart {
        write_file(path, &scaling_chart(&simulation)?)?;
    }
    if args.json {
        return json(&simulation);
    }
    out(&report(args, topology, &simulation))?;
    preset.map_or(Ok(()), |preset| out(&inputs(&preset)))
}

fn in_words(point: &Point) -> String {
    let step = point.step_seconds.map_or_else(|| "no plan fits".to_owned(), seconds);
    format!("{}: {step}", place(point))
}

/// `256 ranks, 2 replicas`.
fn place(point: &Point) -> String {
    let ranks = counted(u64::from(point.gpus), "rank");
    match point.replicas {
        Some(replicas) => format!("{ranks}, {}", counted(u64::from(replicas), "replica")),
        None => ranks,
    }
}

fn replicas(point: &Point) -> String {
    point.replicas.map_or_else(|| "auto".to_owned(), |replicas| replicas.to_string())
}

fn report(args: &SimulateArgs, topology: &str, simulation: &Simulation) -> String {
    let mut head = vec![
        ("workload", simulation.workload.clone()),
        ("topology", topology.to_owned()),
        ("planner", simulation.planner.clone()),
    ];
    if let Some(path) = &args.chart {
        head.push(("chart", format!("written to {}", path.display())));
    }
    let mut text = format!("{}\n\n{}", pairs(&head), points(simulation));
    if simulation.points.iter().any(|point| point.feasible) {
        text = format!("{text}\n\n{}", parts(simulation));
    }
    for point in &simulation.points {
        if let Some(reason) = &point.reason {
            text = format!("{text}\n\n{}: {reason}", place(point));
        }
    }
    text
}

fn points(simulation: &Simulation) -> String {
    let number =
        |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), text);
    let width = simulation.points.iter().map(|point| point.limit.len()).max().unwrap_or(0);
    let rows: Vec<Vec<String>> = simulation
        .points
        .iter()
        .map(|point| {
            vec![
                count(u64::from(point.gpus)),
                replicas(point),
                number(point.step_seconds, seconds),
                number(point.samples_per_second, |value| count(value as u64)),
                number(point.scaling, |value| format!("{value:.2}")),
                number(point.comm_share, percent),
                number(point.sync_share, percent),
                number(point.max_over_mean, |value| format!("{value:.2}")),
                number(point.peak_bytes, |value| bytes(value as u64)),
                // Words stand to the left.
                format!("{:<width$}", point.limit),
            ]
        })
        .collect();
    let limit = format!("{:<width$}", "limit");
    let titles = [
        "gpus",
        "replicas",
        "step",
        "samples/s",
        "scaling",
        "exchange",
        "sync",
        "max/mean",
        "peak",
        &limit,
    ];
    table(&titles, &rows)
}

/// Every number that a preset and its machines are made of, and where it comes from.
fn inputs(preset: &Preset) -> String {
    let hardware = Preset::hardware();
    let all = || hardware.iter().chain(preset.inputs());
    let value = |input: &Input| match input.value {
        value if (1e-3..1e6).contains(&value) || value == 0.0 => format!("{value}"),
        value => format!("{value:e}"),
    };
    // Words stand to the left.
    let width = |text: fn(&Input) -> usize| all().map(text).max().unwrap_or(0);
    let (names, sources) = (width(|input| input.name.len()), width(|input| input.source.len()));
    let units = width(|input| input.unit.len());
    let line = |name: &str, value: String, unit: &str, is: &str, source: &str| {
        vec![
            format!("{name:<names$}"),
            value,
            format!("{unit:<units$}"),
            format!("{is:<9}"),
            format!("{source:<sources$}"),
        ]
    };
    let rows: Vec<Vec<String>> = all()
        .map(|input| {
            let is = if input.assumed { "assumed" } else { "published" };
            line(input.name, value(input), input.unit, is, input.source)
        })
        .collect();
    let titles = line("input", "value".to_owned(), "unit", "is", "source");
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    format!("\n{}, {}\n\n{}", preset.name(), preset.title(), table(&titles, &rows))
}

/// Seconds of a step by part.
fn parts(simulation: &Simulation) -> String {
    let mut titles = vec!["gpus", "replicas"];
    let mut rows = Vec::new();
    for point in &simulation.points {
        let Some(parts) = point.step_parts else { continue };
        let named = parts.named();
        titles.truncate(2);
        titles.extend(named.iter().map(|(name, _)| *name));
        let mut row = vec![count(u64::from(point.gpus)), replicas(point)];
        row.extend(named.iter().map(|(_, value)| seconds(*value)));
        rows.push(row);
    }
    table(&titles, &rows)
}
