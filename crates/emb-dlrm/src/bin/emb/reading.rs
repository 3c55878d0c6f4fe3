//! What a person sees while data is read.

use crate::output::note;
use crate::text::count;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Seconds between two lines where there is no terminal to draw on.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Draws a spinner on a terminal and prints a line now and then elsewhere.
#[derive(Debug)]
pub(crate) struct Reading {
    spinner: Option<ProgressBar>,
    since: Instant,
    last_line: Instant,
}

impl Reading {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                spinner.set_style(style);
            }
            spinner
        });
        Self { spinner, since: now, last_line: now }
    }

    /// Tells how many samples were read.
    pub(crate) fn samples(&mut self, samples: u64) {
        let every = if self.spinner.is_some() { Duration::from_millis(200) } else { LINE_EVERY };
        if self.last_line.elapsed() < every {
            return;
        }
        self.last_line = Instant::now();
        let speed = samples as f64 / self.since.elapsed().as_secs_f64().max(1e-9);
        let line = format!("{} samples read, {} a second", count(samples), count(speed as u64));
        match &self.spinner {
            Some(spinner) => {
                spinner.tick();
                spinner.set_message(line);
            }
            None => note(&line),
        }
    }

    /// Removes the spinner; seconds since the beginning.
    pub(crate) fn finish(&self) -> f64 {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        self.since.elapsed().as_secs_f64()
    }
}
