//! `emb doctor`.

use crate::args::DoctorArgs;
use crate::output::{json, out};
use crate::progress::Told;
use crate::text::{bytes, counted, seconds, table};
use emb_comm::Collective;
use emb_dlrm::calibrate::{Job, Over, Places, over};
use emb_dlrm::doctor::{
    Check, Exchanged, Pairs, System, Verdict, examine, exchange, gather, usable_cores,
};
use emb_dlrm::{Error, Result};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

/// What is printed.
#[derive(Serialize)]
struct Report {
    hosts: Vec<Host>,
    problems: usize,
    warnings: usize,
    exchange: Option<Exchanged>,
    /// Why there is no exchange, where one was asked for.
    #[serde(skip)]
    alone: bool,
}

#[derive(Serialize)]
struct Host {
    host: String,
    checks: Vec<Check>,
}

/// What every rank does.
struct Doctor<'a> {
    checks: &'a [Check],
    budget: Duration,
    told: Told,
}

impl Job for Doctor<'_> {
    type Output = (Vec<Host>, Option<Exchanged>);

    fn on<C: Collective>(&self, ranks: &mut C, places: &Places) -> Result<Self::Output> {
        let hosts = gather(ranks, places, self.checks)?;
        let hosts = hosts.into_iter().map(|(host, checks)| Host { host, checks }).collect();
        let tells = ranks.rank() == 0;
        let told = |what: &str, done| {
            if tells {
                self.told.tell(what, done);
            }
        };
        let exchanged = if self.budget.is_zero() || ranks.world() == 1 {
            None
        } else {
            Some(exchange(ranks, places, self.budget, &told)?)
        };
        Ok((hosts, exchanged))
    }
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let system = System::this();
    let checks = examine(&system);
    let cores = usable_cores(&system).unwrap_or(2).clamp(2, 4);
    let chosen = Over::found(args.world.map(|world| world as usize), cores);
    let doctor = Doctor {
        checks: &checks,
        budget: Duration::from_secs_f64(args.seconds),
        told: Told::new(),
    };
    let done = match chosen {
        // What contradicts itself on the command line is nothing that a machine lacks.
        Err(error @ Error::Config(_)) => return Err(error),
        chosen => chosen.and_then(|chosen| over(chosen, &doctor)),
    };
    doctor.told.finish();
    let report = match done {
        // Another rank's process prints.
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some((hosts, exchanged))) => {
            let alone = exchanged.is_none() && args.seconds > 0.0;
            Report { alone, ..report(hosts, exchanged) }
        }
        // What a machine lacks is what is looked for.
        Err(error) => {
            let failed = Check {
                area: "exchange".to_owned(),
                name: "all ranks".to_owned(),
                verdict: Verdict::Problem,
                found: error.to_string(),
                fix: Some(
                    "what is said of the launcher, the network and /dev/shm comes first".to_owned(),
                ),
            };
            let checks = checks.into_iter().chain([failed]).collect();
            report(vec![Host { host: "this host".to_owned(), checks }], None)
        }
    };
    if args.json {
        json(&report)?;
    } else {
        out(&text(&report))?;
    }
    Ok(if report.problems > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn report(hosts: Vec<Host>, exchange: Option<Exchanged>) -> Report {
    let count = |verdict| {
        let checks = hosts.iter().flat_map(|host| &host.checks);
        checks.filter(|check| check.verdict == verdict).count()
    };
    let (wrong, slow) =
        exchange.as_ref().map_or((0, 0), |exchange| (exchange.wrong.len(), exchange.slow.len()));
    let (problems, warnings) = (count(Verdict::Problem) + wrong, count(Verdict::Warning) + slow);
    Report { hosts, problems, warnings, exchange, alone: false }
}

fn text(report: &Report) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (number, host) in report.hosts.iter().enumerate() {
        // All of the first host; of others what is not as it should be.
        let shown = |check: &&Check| number == 0 || check.verdict > Verdict::Unknown;
        let checks: Vec<&Check> = host.checks.iter().filter(shown).collect();
        let head = if report.hosts.len() > 1 { format!("{}\n", host.host) } else { String::new() };
        if checks.is_empty() {
            parts.push(format!("{head}nothing to fix"));
        } else {
            parts.push(head + &checked(&checks));
        }
    }
    if let Some(exchanged) = &report.exchange {
        parts.push(operations(exchanged));
        parts.extend(pairs(&exchanged.pairs));
        for line in &exchanged.slow {
            parts.push(format!("slow: {line}"));
        }
        for line in &exchanged.wrong {
            parts.push(format!("WRONG: {line}"));
        }
        if exchanged.wrong.is_empty() {
            parts.push("contents: all as sent".to_owned());
        }
    }
    if report.alone {
        parts.push("1 rank: nothing to exchange; --world 2 or more does".to_owned());
    }
    parts.push(format!(
        "{}, {}",
        counted(report.problems as u64, "problem"),
        counted(report.warnings as u64, "warning")
    ));
    parts.join("\n\n")
}

/// A line a check, and one below it where there is something to do.
fn checked(checks: &[&Check]) -> String {
    let width = |of: fn(&Check) -> usize| checks.iter().map(|check| of(check)).max().unwrap_or(0);
    let (area, name) = (width(|check| check.area.len()), width(|check| check.name.len()));
    let verdict = width(|check| check.verdict.word().len());
    let mut lines = Vec::new();
    for check in checks {
        let Check { area: of, name: what, found, .. } = check;
        let word = check.verdict.word();
        lines.push(format!("{word:<verdict$}  {of:<area$}  {what:<name$}  {found}"));
        if let Some(fix) = &check.fix {
            lines.push(format!("{:verdict$}  {:area$}  {:name$}  -> {fix}", "", "", ""));
        }
    }
    lines.join("\n")
}

fn operations(exchanged: &Exchanged) -> String {
    let rows = exchanged.operations.iter().map(|row| {
        let (size, rate) = match row.bytes {
            0 => ("-".to_owned(), "-".to_owned()),
            size => (bytes(size), format!("{:.3}", row.rate / 1e9)),
        };
        let times = [row.min, row.median, row.max].map(seconds);
        let [min, median, max] = times;
        vec![row.operation.to_owned(), size, row.samples.to_string(), min, median, max, rate]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let head = ["operation", "bytes", "samples", "min", "median", "max", "GB/s a rank"];
    let ranks = counted(exchanged.hosts.len() as u64, "rank");
    format!("{ranks}\n{}", table(&head, &rows))
}

fn pairs(pairs: &Pairs) -> Option<String> {
    if pairs.rates.is_empty() {
        return None;
    }
    let mut head = vec!["GB/s".to_owned()];
    head.extend((0..pairs.rates.len()).map(|rank| rank.to_string()));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let row = |(rank, rates): (usize, &Vec<f64>)| {
        let cell = |(other, rate): (usize, &f64)| {
            if other == rank { "-".to_owned() } else { format!("{:.2}", rate / 1e9) }
        };
        let mut cells = vec![format!("rank {rank}")];
        cells.extend(rates.iter().enumerate().map(cell));
        cells
    };
    let rows: Vec<Vec<String>> = pairs.rates.iter().enumerate().map(row).collect();
    let kinds = [("one host", pairs.same_host), ("different hosts", pairs.other_host)];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, rate)| Some(format!("ranks of {kind}: {:.2} GB/s", rate? / 1e9)))
        .collect();
    Some(format!("pairs, 1 MiB each way\n{}\n{}", table(&head, &rows), kinds.join(", ")))
}
