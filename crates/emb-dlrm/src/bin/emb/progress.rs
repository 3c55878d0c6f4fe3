//! What a person sees while a model trains.

use crate::health::line;
use crate::output::note;
use crate::text::{bytes, count};
use emb_dlrm::metrics::EvalReport;
use emb_dlrm::train::{Event, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds between two lines where there is no terminal to draw on.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Draws a bar on a terminal and prints a line now and then elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    terminal: bool,
    since: Instant,
    last_line: Instant,
    samples_then: u64,
    window: Window,
}

/// Sums since the last line.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    loss: f64,
    rows: f64,
    positives: f64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            bar: ProgressBar::hidden(),
            terminal: std::io::stderr().is_terminal(),
            since: now,
            last_line: now,
            samples_then: 0,
            window: Window::default(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn message(&mut self, samples: u64) -> String {
        let seconds = self.since.elapsed().as_secs_f64().max(1e-9);
        let speed = samples.saturating_sub(self.samples_then) as f64 / seconds;
        let Window { loss, rows, positives } = self.window;
        // NE of the window: mean loss over the entropy of its base rate.
        let rate = positives / rows.max(1.0);
        let entropy = -(rate * rate.ln() + (1.0 - rate) * (1.0 - rate).ln());
        let ne = loss / rows.max(1.0) / entropy;
        let ne = if ne.is_finite() { format!("{ne:.4}") } else { "-".to_owned() };
        let text =
            format!("{} samples/s  loss {:.4}  NE {ne}", count(speed as u64), loss / rows.max(1.0));
        self.window = Window::default();
        self.since = Instant::now();
        self.samples_then = samples;
        text
    }
}

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start { steps, .. } => {
                self.since = Instant::now();
                self.last_line = self.since;
                if self.terminal {
                    self.bar = steps.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
                    let style = match steps {
                        Some(_) => "{bar:30} {pos}/{len} steps  {msg}  eta {eta}",
                        None => "{spinner} {pos} steps  {msg}",
                    };
                    if let Ok(style) = ProgressStyle::with_template(style) {
                        self.bar.set_style(style);
                    }
                }
            }
            Event::Step { step, samples, loss_sum, rows, positives, rates } => {
                self.window.loss += loss_sum;
                self.window.rows += rows as f64;
                self.window.positives += positives;
                self.bar.set_position(step);
                let every = if self.terminal { Duration::from_millis(500) } else { LINE_EVERY };
                if self.last_line.elapsed() >= every {
                    self.last_line = Instant::now();
                    let message = self.message(samples);
                    if self.terminal {
                        self.bar.set_message(message);
                    } else {
                        note(&format!(
                            "step {:>8}  {message}  lr tables {:.3e} dense {:.3e}",
                            count(step),
                            rates.tables,
                            rates.dense
                        ));
                    }
                }
            }
            Event::Evaluated { step, report } => {
                let line = format!("step {:>8}  eval: {}", count(step), in_words(report));
                self.bar.suspend(|| note(&line));
            }
            Event::Saved { step, bytes: file, memory, seconds } => {
                let (file, memory) = (bytes(file), bytes(memory));
                let line = format!(
                    "step {:>8}  saved: {file} in {seconds:.2} s, through {memory} of memory",
                    count(step)
                );
                self.bar.suspend(|| note(&line));
            }
            Event::Health(health) => {
                let line = format!("step {:>8}  {}", count(health.step), line(health));
                self.bar.suspend(|| note(&line));
            }
        }
    }
}

/// How far something with several parts is: a bar on a terminal, elsewhere a line a part.
#[derive(Debug)]
pub(crate) struct Told {
    bar: ProgressBar,
    terminal: bool,
    last: Mutex<String>,
}

/// Steps of the bar.
const STEPS: u64 = 1000;

impl Told {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
            bar.set_style(style);
        }
        Self { bar, terminal, last: Mutex::new(String::new()) }
    }

    /// `done` of `what`, `0..=1`.
    pub(crate) fn tell(&self, what: &str, done: f64) {
        self.bar.set_position((done * STEPS as f64) as u64);
        let Ok(mut last) = self.last.lock() else { return };
        if *last != what {
            what.clone_into(&mut last);
            self.bar.set_message(what.to_owned());
            if !self.terminal {
                note(what);
            }
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// An evaluation in one line.
pub(crate) fn in_words(report: &EvalReport) -> String {
    let number =
        |value: Option<f64>| value.map_or("undefined".into(), |value| format!("{value:.4}"));
    let why = if report.auc.is_some() {
        String::new()
    } else {
        format!(
            " (AUC needs both classes: {} positive, {} negative rows)",
            count(report.positives),
            count(report.negatives)
        )
    };
    format!(
        "{} rows  AUC {}{why}  NE {}",
        count(report.rows),
        number(report.auc),
        number(report.normalized_entropy)
    )
}
