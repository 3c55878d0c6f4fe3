//! A run as pictures: the Chrome trace format, one process a rank.
//!
//! `chrome://tracing` and <https://ui.perfetto.dev> show such files. Times are microseconds.

use crate::{Error, Result};
use emb_comm::{Lane, Span};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Names of lanes, in the order in which they are shown: a rank's phases, its collectives, and those
/// on threads beside: syncs of replicas where there are any, sums of dense gradients.
const LANES: [&str; 4] = ["phases", "collectives", "beside", "beside too"];

/// Position of a lane; more than two threads beside share the last.
fn place(lane: Lane) -> usize {
    match lane {
        Lane::Phases => 0,
        Lane::Collectives => 1,
        Lane::Beside(number) => (2 + usize::from(number)).min(LANES.len() - 1),
    }
}

/// An event of the format: complete (`X`) or about a process or thread (`M`).
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: usize,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    args: Args<'a>,
}

#[derive(Default, Serialize)]
struct Args<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Microseconds in which the rank waited for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<f64>,
}

/// Tries that the file can be written, before anything is trained.
pub(super) fn prepare(path: &Path) -> Result<()> {
    File::create(path).map(drop).map_err(Error::io("creating", path))
}

/// The events of a rank as text, one a line, without what stands around them.
pub(super) fn events(rank: usize, spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::new();
    let name = format!("rank {rank}");
    put(&mut out, &about("process_name", rank, 0, &name));
    let last = spans.iter().map(|span| place(span.lane)).max().unwrap_or(0);
    for (tid, name) in LANES.iter().enumerate().take(last + 1) {
        put(&mut out, &about("thread_name", rank, tid, name));
    }
    for span in spans {
        let tid = place(span.lane);
        let moved = span.lane != Lane::Phases;
        let args = Args {
            step: Some(span.step),
            bytes: moved.then_some(span.bytes),
            waited: moved.then_some(span.waited),
            ..Args::default()
        };
        let event = Event {
            name: span.name,
            ph: "X",
            pid: rank,
            tid,
            cat: Some(LANES[tid]),
            ts: Some(span.start),
            dur: Some(span.duration),
            args,
        };
        put(&mut out, &event);
    }
    out
}

/// Writes the events of every rank.
pub(super) fn write(path: &Path, ranks: &[Vec<u8>]) -> Result<()> {
    let file = File::create(path).map_err(Error::io("creating", path))?;
    let mut out = BufWriter::new(file);
    let written = write_all(&mut out, ranks).and_then(|()| out.flush());
    written.map_err(Error::io("writing", path))
}

fn write_all(out: &mut impl Write, ranks: &[Vec<u8>]) -> std::io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
    for (rank, events) in ranks.iter().enumerate() {
        if rank > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(events)?;
    }
    out.write_all(b"]}\n")
}

/// Gives a process or thread its name.
fn about<'a>(what: &'a str, pid: usize, tid: usize, name: &'a str) -> Event<'a> {
    let args = Args { name: Some(name), ..Args::default() };
    Event { name: what, ph: "M", pid, tid, cat: None, ts: None, dur: None, args }
}

fn put(out: &mut Vec<u8>, event: &Event<'_>) {
    if !out.is_empty() {
        out.extend_from_slice(b",\n");
    }
    serde_json::to_writer(out, event).expect("invariant: numbers and names become JSON");
}
