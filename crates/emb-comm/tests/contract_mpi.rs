//! The failure contract of `Mpi`: every fault of a rank, and of its process.
//!
//! Not under a launcher, this program starts `mpirun -n 4` of itself for each case.

#[path = "contract/processes.rs"]
mod processes;
#[path = "contract/rows.rs"]
mod rows;

use emb_comm::conformance::contract::{CULPRIT, Case, Fault, Sets, Told, WORLD, judge, now, play};
use emb_comm::{Mpi, MpiOptions};
use processes::{Job, SHORT, file};
use rows::Row;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The timeout of ranks that are told; never reached.
const LONG: Duration = Duration::from_secs(30);
/// Until when ranks are told that need not wait, and how much later than the timeout the others.
const SOON: Duration = Duration::from_secs(1);
/// Until when a job is over of which a process ended.
const NOTICED: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let case = std::env::var(processes::CASE).ok().and_then(|name| Case::named(&name));
    if let (Some(case), Some(rank)) = (case, processes::rank()) {
        return one(case, rank);
    }
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    if let Err(error) = Command::new("mpirun").arg("--version").output() {
        eprintln!("skipped: mpirun does not start: {error}");
        return ExitCode::SUCCESS;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |case: &Case| only.as_ref().is_none_or(|only| case.name().contains(only));
    let cases: Vec<Case> = cases().into_iter().filter(wanted).collect();
    eprintln!("limits are {:.1} times those of a quiet machine", processes::slowness());
    let rows: Vec<Row> = cases.into_iter().map(played).collect();
    rows::assert_kept(&rows);
    eprintln!("test result: ok. {} passed; 0 failed", rows.len());
    ExitCode::SUCCESS
}

/// Every fault in one dimension, and in two within a group or a replica set in turn.
fn cases() -> Vec<Case> {
    let faults = [&Fault::OF_RANKS[..], &Fault::OF_PROCESSES[..]].concat();
    let turn = |case: &Case| faults.iter().position(|&fault| fault == case.fault).unwrap_or(0);
    let wanted = |case: &Case| match case.sets {
        Sets::World => true,
        // What happens before there are sets happens in one dimension and in two alike.
        Sets::Group => turn(case) % 2 == 0 || case.fault == Fault::NeverCalls,
        _ => turn(case) % 2 == 1,
    };
    let joins = |case: &Case| match case.fault {
        Fault::NeverJoins | Fault::EndsBeforeJoining => case.sets == Sets::World,
        _ => true,
    };
    Case::of(&faults).into_iter().filter(wanted).filter(joins).collect()
}

/// A limit on this machine as busy as it is.
fn soon(limit: Duration) -> Duration {
    limit.mul_f64(processes::slowness())
}

/// One rank of a case, in its process.
fn one(case: Case, rank: usize) -> ExitCode {
    let fault = case.fault;
    if rank == CULPRIT && [Fault::NeverJoins, Fault::EndsBeforeJoining].contains(&fault) {
        falls(fault);
        return ExitCode::SUCCESS;
    }
    let timeout = if fault.takes_the_timeout() { SHORT } else { LONG };
    let late = [Fault::NeverJoins, Fault::EndsBeforeJoining].contains(&fault);
    let meeting = if late { SHORT } else { LONG };
    let mpi = match Mpi::start(&MpiOptions::default().with_timeout(timeout).with_meeting(meeting)) {
        Ok(mpi) => mpi,
        Err(error) => {
            processes::write("start", rank, &format!("{} {error}", now().as_micros()));
            return ExitCode::FAILURE;
        }
    };
    let told = play(mpi, case, &|| falls(fault));
    if let Some(told) = &told {
        processes::write("told", rank, &told.to_line());
    }
    ExitCode::from(u8::from(told.is_some()))
}

/// The moment, and for faults of a process what is meant by it.
fn falls(fault: Fault) {
    let itself = std::process::id().to_string();
    processes::write("process", CULPRIT, &itself);
    processes::write("fell", CULPRIT, &now().as_micros().to_string());
    let signal = |signal: &str| {
        // More than once: the first may be caught by whoever wants to say where it came from.
        for _ in 0..3 {
            let sent = Command::new("kill").args([signal, &itself]).status();
            sent.expect("the system has `kill`");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    match fault {
        Fault::Stalls | Fault::NeverCalls | Fault::NeverJoins => std::thread::sleep(3 * SHORT),
        Fault::ExitsWell | Fault::EndsBeforeJoining => std::process::exit(0),
        Fault::Exits => std::process::exit(3),
        Fault::IsKilled => signal("-KILL"),
        Fault::IsStopped => signal("-STOP"),
        Fault::Aborts => std::process::abort(),
        Fault::Crashes => signal("-SEGV"),
        _ => {}
    }
}

/// Starts the processes of a case and looks at what they and the launcher say.
fn played(case: Case) -> Row {
    let job = Job::run(case);
    let told: Vec<Option<Told>> =
        (0..WORLD).map(|rank| Told::from_line(&job.read("told", rank)?)).collect();
    let fell = job.time(&file("fell", CULPRIT));
    let mut findings = job.findings();
    let row = match case.fault {
        Fault::IsKilled | Fault::Aborts | Fault::Crashes => {
            // The launcher ends the survivors, and says of which rank.
            let after = job.ended.saturating_sub(fell);
            if after > soon(NOTICED) {
                findings.push(format!("the job is over after {after:?}"));
            }
            let line = job.launcher_names(CULPRIT);
            if line.is_none() {
                findings.push(format!("the launcher does not name rank {CULPRIT}: {}", job.said));
            }
            Row { transport: "mpi", case, after: Some(after), message: line, findings }
        }
        Fault::NeverJoins | Fault::EndsBeforeJoining => {
            // The first process that gives up takes the job with it: one says why, or more.
            let starts: Vec<String> =
                (0..CULPRIT).filter_map(|rank| job.read("start", rank)).collect();
            // The launcher may see first that a process ended without a start, and end the others.
            let launcher = job.launcher_names(CULPRIT);
            let ended = case.fault == Fault::EndsBeforeJoining && launcher.is_some();
            let says = |line: &String| line.contains("not all processes of the job came");
            if !ended && !starts.iter().any(says) {
                findings.push(format!("no rank says why it did not start: {}", job.said));
            }
            let after = job.ended.saturating_sub(fell);
            if after > SHORT + soon(NOTICED) {
                findings.push(format!("the job is over after {after:?}"));
            }
            let message = starts.first().and_then(|line| line.split_once(' '));
            let message = message.map(|(_, message)| message.to_owned()).or(launcher);
            Row { transport: "mpi", case, after: Some(after), message, findings }
        }
        fault => {
            let limit = match fault {
                fault if fault.takes_the_timeout() => SHORT + soon(SOON),
                Fault::ExitsWell | Fault::Exits => soon(NOTICED),
                _ => soon(SOON),
            };
            let stays = !fault.takes_a_process()
                && ![Fault::Leaves, Fault::Panics].contains(&fault)
                && !fault.takes_the_timeout();
            let there: Vec<usize> = (0..WORLD).filter(|&rank| rank != CULPRIT || stays).collect();
            findings.extend(judge(case, &told, &there, fell, limit));
            Row::of("mpi", case, &told, fell, findings)
        }
    };
    row.write();
    row
}
