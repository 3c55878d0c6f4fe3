//! What was measured, as a table for people and as data for machines.

use crate::study::Apart;
use serde::Serialize;
use std::fmt::Write;

/// All runs of a study.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Study {
    /// The run that others are compared with, one a seed.
    pub(crate) one_process: Vec<OneProcess>,
    /// The others.
    pub(crate) runs: Vec<Run>,
}

/// A run in one process.
#[derive(Debug, Serialize)]
pub(crate) struct OneProcess {
    pub(crate) seed: u64,
    /// Normalized entropy.
    pub(crate) ne: f64,
    /// Normalized entropy of the teacher on the same samples.
    pub(crate) teacher: Option<f64>,
}

/// A run over replicas.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) replicas: u32,
    pub(crate) rule: String,
    /// Normalized entropy.
    pub(crate) ne: f64,
    #[serde(flatten)]
    pub(crate) apart: Apart,
}

impl Study {
    /// One line for each number of replicas and rule, in the order of the runs: means over seeds,
    /// with the sample standard deviation where there are several.
    pub(crate) fn table(&self) -> String {
        let mut text = "| M | rule | NE, % | distance | of the way | squares |\n".to_owned();
        text.push_str("|---:|---|---:|---:|---:|---:|");
        let mut keys = Vec::new();
        for run in &self.runs {
            let key = (run.replicas, &run.rule[..]);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for (replicas, rule) in keys {
            let same = |run: &&Run| (run.replicas, &run.rule[..]) == (replicas, rule);
            let column = |value: fn(&Apart) -> Option<f64>| -> Vec<f64> {
                self.runs.iter().filter(same).filter_map(|run| value(&run.apart)).collect()
            };
            let ne = spread(&column(|apart| Some(apart.ne_percent)), true);
            let distance = spread(&column(|apart| Some(apart.distance)), false);
            let way = spread(&column(|apart| Some(apart.of_the_way)), false);
            let squares = spread(&column(|apart| apart.accumulated), false);
            let cells = format!("{ne} | {distance} | {way} | {squares}");
            write!(text, "\n| {replicas} | `{rule}` | {cells} |").expect("a string takes all");
        }
        text
    }
}

/// Mean and sample standard deviation.
fn spread(values: &[f64], signed: bool) -> String {
    let n = values.len() as f64;
    if values.is_empty() {
        return "-".to_owned();
    }
    let mean = values.iter().sum::<f64>() / n;
    let shown = if signed { format!("{mean:+.3}") } else { format!("{mean:.3}") };
    if values.len() == 1 {
        return shown;
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    format!("{shown} ± {:.3}", variance.sqrt())
}

/// Normalized entropy by learning rate of the tables (down) and of the dense part, and the best.
pub(crate) fn grid(lrs: &[f64], dense_lrs: &[f64], ne: &[Vec<f64>]) -> String {
    let mut text = "| lr \\ dense lr |".to_owned();
    for dense_lr in dense_lrs {
        write!(text, " {dense_lr} |").expect("a string takes all");
    }
    write!(text, "\n|---:|{}", "---:|".repeat(dense_lrs.len())).expect("a string takes all");
    let mut best = (f64::INFINITY, 0.0, 0.0);
    for (lr, row) in lrs.iter().zip(ne) {
        write!(text, "\n| {lr} |").expect("a string takes all");
        for (dense_lr, &ne) in dense_lrs.iter().zip(row) {
            write!(text, " {ne:.5} |").expect("a string takes all");
            if ne < best.0 {
                best = (ne, *lr, *dense_lr);
            }
        }
    }
    let (ne, lr, dense_lr) = best;
    write!(text, "\n\nbest: NE {ne:.5} with lr {lr}, dense lr {dense_lr}").expect("as above");
    text
}
