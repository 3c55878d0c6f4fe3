//! Ranks that did not come to be.

use super::super::children::ended;
use super::super::frames::FINISH;
use super::super::hints::hints;
use super::super::keeper::GRACE;
use super::super::line::Event;
use super::super::signals::Requests;
use super::super::start::Start;
use super::super::{environment, judge};
use super::{Outcome, TICK, World};
use std::process::Child;
use std::sync::mpsc::Receiver;
use std::time::Instant;

impl World<'_> {
    /// Whether all that came were ended by who started them, and none failed: as `mpirun` ends all
    /// where it can't start one.
    pub(super) fn is_abandoned(&self) -> bool {
        judge(&self.ends).is_some_and(|verdict| verdict.cause.told)
    }

    /// What `mpirun` says of ranks that it did not start: it says it when the others are gone.
    pub(super) fn abandoned(
        &mut self,
        missing: &[usize],
        events: &Receiver<Event>,
        children: &mut [Child],
        requests: &Requests,
    ) -> Outcome {
        self.order(FINISH);
        let (until, mut gone) = (Instant::now() + GRACE, false);
        while Instant::now() < until {
            match events.recv_timeout(TICK) {
                Ok(Event::Said(line)) => self.aside.push(line),
                Ok(_) => {}
                // Its last words are read once more after its end.
                Err(_) if gone => break,
                Err(_) => gone = children.iter_mut().all(|child| ended(child).is_some()),
            }
        }
        self.aside.iter().for_each(|line| self.voice.aside(line));
        self.not_started(missing, children, requests)
    }

    pub(super) fn not_started(
        &self,
        missing: &[usize],
        children: &mut [Child],
        requests: &Requests,
    ) -> Outcome {
        let signal = requests.signal();
        if signal != 0 {
            return Outcome::Signal(signal);
        }
        let codes: Vec<i32> = children.iter_mut().filter_map(ended).collect();
        let code = codes.iter().copied().find(|&code| code != 0).unwrap_or(0);
        let (who, hints) = match &self.launch.start {
            Start::MpiRun(run) => ("mpirun", hints(run, missing, &self.launch.emb, &environment)),
            Start::Here => ("their keepers", Vec::new()),
        };
        let named = self.named(missing);
        let mut what = if codes.is_empty() {
            format!("{who} did not start {named}")
        } else {
            format!("{who} ended with exit code {code} before {named} started")
        };
        for hint in hints {
            what.push_str("; ");
            what.push_str(&hint);
        }
        // Nothing was done, whatever it says itself.
        Outcome::NotStarted(what, u8::try_from(code.max(1)).unwrap_or(1))
    }
}
