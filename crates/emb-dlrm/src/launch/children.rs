//! The children of this process: `mpirun`, or keepers.

use super::line::Event;
use super::signals::Requests;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Pause between two looks at them.
const PAUSE: Duration = Duration::from_millis(5);
/// Pause between two pokes.
const POKE: Duration = Duration::from_millis(50);
/// How long they may take to end after all ranks did, and then after they were told to.
const CHILDREN: Duration = Duration::from_secs(5);

/// Hands on what children print themselves, where that comes by pipes: lines of `mpirun`.
pub(super) fn listen(children: &mut [Child], to: &Sender<Event>) {
    fn begin(pipe: impl Read + Send + 'static, to: &Sender<Event>) {
        let to = to.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if to.send(Event::Said(line)).is_err() {
                    return;
                }
            }
        });
    }
    for child in children {
        if let Some(pipe) = child.stdout.take() {
            begin(pipe, to);
        }
        if let Some(pipe) = child.stderr.take() {
            begin(pipe, to);
        }
    }
}

/// The exit code of a child that has ended, as a shell has it.
pub(super) fn ended(child: &mut Child) -> Option<i32> {
    let status = child.try_wait().ok()??;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// The signal that a child was ended by.
pub(super) fn killed(child: &mut Child) -> Option<i32> {
    child.try_wait().ok()??.signal()
}

/// Waits for the children of this process, and ends those that stay. Where they have no reason to
/// end by themselves, they are told to at once; who is asked twice to end all kills them.
///
/// `mpirun` of Open MPI 4 may sleep a second or two before it kills what is gone already
/// (`odls_base_sigkill_timeout`). Any signal that it handles ends such a sleep, and the one to go on is
/// of no other consequence.
pub(super) fn end_children(children: &mut [Child], by_themselves: bool, requests: &Requests) {
    let mut patience = if by_themselves { CHILDREN } else { Duration::ZERO };
    let mut poked = Instant::now();
    for signal in [Some(Signal::TERM), Some(Signal::KILL), None] {
        let until = Instant::now() + patience;
        patience = CHILDREN;
        let waits =
            || Instant::now() < until && (signal != Some(Signal::KILL) || requests.times() < 2);
        while waits() && children.iter_mut().any(|child| ended(child).is_none()) {
            std::thread::sleep(PAUSE);
            if by_themselves && poked.elapsed() > POKE {
                poked = Instant::now();
                send(children, Signal::CONT);
            }
        }
        if let Some(signal) = signal {
            send(children, signal);
        }
    }
}

/// Sends a signal to the children that have not ended.
fn send(children: &mut [Child], signal: Signal) {
    for child in children {
        if ended(child).is_none()
            && let Some(pid) = Pid::from_raw(child.id().cast_signed())
        {
            let _ = kill_process(pid, signal);
        }
    }
}
