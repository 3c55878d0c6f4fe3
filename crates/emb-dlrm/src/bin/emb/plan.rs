//! `emb plan`.

use crate::args::{DiffArgs, MakeArgs, PlanArgs, PlanCommand};
use crate::output::{json, note, out, write_file};
use crate::text::{bytes, count, counted, pairs, percent, seconds, table};
use emb_dlrm::planning::{
    Machines, PlanDiff, PlanReport, Simulator, TableDiff, WhatIf, make_plan, read_plan,
};
use emb_dlrm::{Error, Result};
use emb_shard::{Bytes, Estimate, Task, Topology, Workload, explain};

pub(crate) fn run(args: &PlanArgs) -> Result<()> {
    match (&args.command, &args.make) {
        (Some(PlanCommand::Diff(args)), _) => diff(args),
        (None, Some(args)) => make(args),
        (None, None) => Err(Error::Config("emb plan: give --workload and --topology".into())),
    }
}

fn make(args: &MakeArgs) -> Result<()> {
    let preset = args.workload.preset();
    let (workload, machines) = (args.workload.load()?, Machines::read(&args.topology)?);
    let planner = args.planner.planner(preset.as_ref(), &machines)?;
    let model = args.planner.model(&machines);
    let topology = machines.clone().all()?;
    let task = Task {
        workload: &workload,
        topology: &topology,
        constraints: args.replicas.of(args.planner.constraints(preset.as_ref())?),
        objective: args.planner.objective(),
    };
    let outcome = match make_plan(planner.as_ref(), &task, &model) {
        Err(Error::Infeasible(reason)) if args.json => {
            json(&serde_json::json!({
                "workload": workload.name(),
                "topology": topology.name(),
                "planner": planner.name(),
                "feasible": false,
                "reason": reason,
            }))?;
            return Err(Error::Infeasible(reason));
        }
        other => other?,
    };
    let untrained = outcome.not_for_training();
    if let (true, Some(reason)) = (args.planner.for_training, &untrained) {
        return Err(Error::Config(format!(
            "--for-training: {reason}; choose another --planner than {}",
            planner.name()
        )));
    }
    if let Some(path) = &args.out {
        write_file(path, &outcome.plan.to_file().to_string())?;
        if let Some(reason) = untrained {
            note(&format!("emb train can't execute this plan ({reason}): give --for-training"));
        }
    }
    for line in outcome.notes() {
        note(&line);
    }
    let mut report = outcome.report(planner.name(), &task)?;
    if args.explain {
        let simulator = Simulator {
            workload: &workload,
            machines: &machines.uncounted(),
            planner: planner.as_ref(),
            model,
            constraints: task.constraints.clone(),
            objective: task.objective,
            preset: preset.as_ref(),
            layout: Some(outcome.layout()),
        };
        report.what_if = Some(WhatIf::new(&simulator, topology.world())?);
        report.explanation = Some(explain(&model, &task, &outcome.plan)?);
    }
    if args.json {
        return json(&report);
    }
    out(&summary(args, &report, &workload, &topology))?;
    if let (Some(what_if), Some(explanation)) = (&report.what_if, &report.explanation) {
        let plan = &outcome.plan;
        out(&format!("\n{topology}\n\n{}\n\n{plan}\n{explanation}", parts(&outcome.estimate)))?;
        out(&others(what_if, report.step_seconds))?;
    }
    Ok(())
}

fn summary(
    args: &MakeArgs,
    report: &PlanReport,
    workload: &Workload,
    topology: &Topology,
) -> String {
    let weights = workload.tables().weight_bytes().map_or(u64::MAX, Bytes::get);
    let peak = report.peak_bytes;
    let whole = |value: f64| bytes(value as u64);
    let mut rows = vec![
        (
            "workload",
            format!(
                "{}: {} tables, {} of weights, batch {}",
                report.workload,
                report.tables.len(),
                bytes(weights),
                count(report.batch)
            ),
        ),
        (
            "topology",
            format!(
                "{}, {}, {}",
                topology.name(),
                counted(u64::from(topology.world()), "rank"),
                counted(u64::from(topology.nodes()), "node")
            ),
        ),
        ("planner", format!("{}, {}", report.planner, seconds(report.planning_seconds))),
        (
            "step",
            format!(
                "{}{}, tables max/mean {:.2}",
                seconds(report.step_seconds),
                report.lower_bound_seconds.map_or_else(String::new, |bound| format!(
                    " (no plan is below {})",
                    seconds(bound)
                )),
                report.max_over_mean
            ),
        ),
        (
            "exchange",
            format!(
                "{} between nodes, {} inside, of the busiest rank in a step",
                whole(report.inter_node_bytes_per_rank),
                whole(report.intra_node_bytes_per_rank)
            ),
        ),
        (
            "memory",
            format!(
                "{} of {} on the fullest rank: {} weights, {} state, {} buffers, {} dense",
                whole(peak.max_rank),
                bytes(topology.memory().get()),
                whole(peak.weights),
                whole(peak.state),
                whole(peak.buffers),
                whole(peak.dense)
            ),
        ),
        ("replicas", report.replicas.to_string()),
    ];
    if let Some(path) = &args.out {
        rows.push(("plan", format!("written to {}", path.display())));
    }
    pairs(&rows)
}

/// What would be with other replicas and on fewer machines.
fn others(what_if: &WhatIf, step_seconds: f64) -> String {
    let rows: Vec<Vec<String>> = what_if
        .replicas
        .iter()
        .map(|point| {
            let cell = |value: Option<f64>, text: &dyn Fn(f64) -> String| {
                value.map_or_else(|| "-".to_owned(), text)
            };
            let change = |step: f64| format!("{:+.1} %", 100.0 * (step / step_seconds - 1.0));
            vec![
                point.replicas.map_or_else(String::new, |count| count.to_string()),
                cell(point.step_seconds, &seconds),
                cell(point.step_seconds, &change),
                cell(point.sync_share, &percent),
                cell(point.max_over_mean, &|value| format!("{value:.2}")),
                point
                    .peak_bytes
                    .map_or_else(|| "does not fit".to_owned(), |value| bytes(value as u64)),
            ]
        })
        .collect();
    let mut text = String::new();
    if !rows.is_empty() {
        let titles = ["what if replicas", "step", "change", "sync", "max/mean", "memory"];
        text = table(&titles, &rows);
    }
    if let Some(ranks) = what_if.smallest_world {
        text = format!("{text}\n\nsmallest world that fits: {}", counted(u64::from(ranks), "rank"));
    }
    text
}

/// Seconds of the parts of a step.
fn parts(estimate: &Estimate) -> String {
    let total = estimate.step_seconds();
    let rows: Vec<Vec<String>> = estimate
        .parts
        .named()
        .iter()
        .map(|&(name, value)| {
            let share = if total > 0.0 { value / total } else { 0.0 };
            vec![name.to_owned(), seconds(value), percent(share)]
        })
        .collect();
    table(&["part of a step", "time", "share"], &rows)
}

fn diff(args: &DiffArgs) -> Result<()> {
    let diff = PlanDiff::new(&read_plan(&args.first)?, &read_plan(&args.second)?)?;
    if args.json {
        return json(&diff);
    }
    if diff.tables.is_empty() && diff.world[0] == diff.world[1] {
        return out(&format!("{} tables, all placed alike", count(diff.alike as u64)));
    }
    let mut head = Vec::new();
    for (name, [first, second]) in [("ranks", diff.world), ("ranks of a node", diff.node_ranks)] {
        if first != second {
            head.push((name, format!("{first} -> {second}")));
        }
    }
    head.push(("placed alike", count(diff.alike as u64)));
    head.push(("placed differently", count(diff.tables.len() as u64)));
    let width = |cell: fn(&TableDiff) -> &String| {
        diff.tables.iter().map(|table| cell(table).chars().count()).max().unwrap_or(0)
    };
    let (names, firsts) = (width(|table| &table.table), width(|table| &table.first));
    let lines = diff
        .tables
        .iter()
        .map(|one| format!("{:<names$}  {:<firsts$}  ->  {}", one.table, one.first, one.second));
    out(&format!("{}\n\n{}", pairs(&head), lines.collect::<Vec<_>>().join("\n")))
}
