//! `emb calibrate`.

use crate::args::CalibrateArgs;
use crate::output::{json, out, refuse_unwritable, write_file};
use crate::progress::Told;
use crate::text::{bytes, counted, seconds, table};
use emb_comm::Collective;
use emb_dlrm::calibrate::{
    Calibration, Job, Machine, Over, Places, from_tables, from_times, measure, over, read_table,
};
use emb_dlrm::doctor::{System, usable_bytes, usable_cores};
use emb_dlrm::planning::Machines;
use emb_dlrm::{Error, Result};
use emb_shard::Topology;
use serde::Serialize;
use std::time::Duration;

/// An error of sizes held out that a quiet machine does not show: it predicts them to a few percent.
const LARGE: f64 = 0.1;

/// What is printed for machines.
#[derive(Serialize)]
struct Report<'a> {
    out: String,
    topology: &'a emb_shard::TopologySpec,
    residuals: &'a [emb_dlrm::calibrate::Residual],
    worst_fitted: Option<f64>,
    worst_held_out: Option<f64>,
    notes: &'a [String],
}

/// What every rank does.
struct Measure<'a> {
    name: &'a str,
    cores: usize,
    memory_bytes: u64,
    budget: Duration,
    told: Told,
}

impl Job for Measure<'_> {
    type Output = Calibration;

    fn on<C: Collective>(&self, ranks: &mut C, places: &Places) -> Result<Calibration> {
        let tells = ranks.rank() == 0;
        let told = |what: &str, done| {
            if tells {
                self.told.tell(what, done);
            }
        };
        let most = places.most();
        let threads = (self.cores / most).max(1);
        let (times, rates) = measure(ranks, places, threads, self.budget, &told)?;
        let machine = Machine {
            name: self.name.to_owned(),
            memory_bytes: self.memory_bytes / most as u64,
            memory_bandwidth: rates.lookup,
            flops: rates.flops,
        };
        from_times(&times, places, &machine)
    }
}

pub(crate) fn run(args: &CalibrateArgs) -> Result<()> {
    // Before minutes are spent on what can't be written.
    refuse_unwritable(&args.out)?;
    if args.name.trim().is_empty() {
        return Err(Error::Config("--name is empty: a topology needs a name".to_owned()));
    }
    let calibration = match &args.like {
        Some(like) => Some(read(args, like)?),
        None => measured(args)?,
    };
    // Another rank's process writes.
    let Some(calibration) = calibration else { return Ok(()) };
    write_file(&args.out, &calibration.to_toml()?)?;
    if args.json {
        return json(&Report {
            out: args.out.display().to_string(),
            topology: &calibration.topology,
            residuals: &calibration.residuals,
            worst_fitted: calibration.worst(false),
            worst_held_out: calibration.worst(true),
            notes: &calibration.notes,
        });
    }
    out(&text(args, &calibration)?)
}

fn measured(args: &CalibrateArgs) -> Result<Option<Calibration>> {
    let system = System::this();
    let cores = usable_cores(&system).unwrap_or(2);
    let memory_bytes = usable_bytes(&system).ok_or_else(|| {
        Error::Config("how much memory there is can't be read from /proc/meminfo".to_owned())
    })?;
    let chosen = Over::found(args.world.map(|world| world as usize), cores.clamp(2, 4))?;
    let work = Measure {
        name: &args.name,
        cores,
        memory_bytes,
        budget: Duration::from_secs_f64(args.seconds),
        told: Told::new(),
    };
    let done = over(chosen, &work);
    work.told.finish();
    done
}

fn read(args: &CalibrateArgs, like: &str) -> Result<Calibration> {
    let named = |error: Error| match error {
        Error::Config(what) => Error::Config(what.replacen("--topology", "--like", 1)),
        other => other,
    };
    // Rates are those of one rank: of any number of them.
    let like = match Machines::read(like).map_err(named)? {
        Machines::Open(name) => Topology::preset(&format!("{name}:1"))?,
        machines => machines.all().map_err(named)?,
    };
    let machine = Machine {
        name: args.name.clone(),
        memory_bytes: like.memory().get(),
        memory_bandwidth: like.memory_bandwidth(),
        flops: like.flops(),
    };
    let tables: Result<Vec<_>> = args.from.iter().map(|path| read_table(path)).collect();
    from_tables(&tables?, &machine)
}

fn text(args: &CalibrateArgs, calibration: &Calibration) -> Result<String> {
    let rows = calibration.residuals.iter().map(|residual| {
        vec![
            residual.level.clone(),
            bytes(residual.bytes),
            seconds(residual.measured),
            seconds(residual.predicted),
            format!("{:+.1} %", 100.0 * residual.error),
            if residual.held_out { "held out" } else { "fitted" }.to_owned(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let head = ["level", "bytes sent", "measured", "predicted", "error", "used"];
    let worst = |held_out, what| match calibration.worst(held_out) {
        Some(error) => format!("{:.1} % of sizes {what}", 100.0 * error),
        None => format!("no sizes {what}"),
    };
    let topology = Topology::new(calibration.topology.clone())?;
    let bent: Vec<String> = calibration
        .topology
        .levels
        .iter()
        .filter(|level| !level.transfers.is_empty())
        .map(|level| {
            let points = counted(level.transfers.len() as u64, "measured size");
            format!("{}: no line explains it, {points} kept", level.name)
        })
        .collect();
    let mut parts = vec![table(&head, &rows)];
    parts.push(format!("largest error: {}, {}", worst(false, "fitted"), worst(true, "held out")));
    if calibration.worst(true).is_some_and(|error| error > LARGE) {
        parts.push(format!(
            "sizes held out are missed by more than {:.0} %: measure again where nothing else runs, or \
             longer (--seconds)",
            100.0 * LARGE
        ));
    }
    parts.push(topology.to_string());
    parts.extend(bent);
    parts.extend(calibration.notes.iter().cloned());
    parts.push(format!(
        "written to {0}; next: emb plan --topology {0} --workload FILE (of emb profile --out FILE)",
        args.out.display()
    ));
    Ok(parts.join("\n\n"))
}
