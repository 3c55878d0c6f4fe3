//! Update rules and schedules from options: embedding and dense parts share what they share.

use super::Options;
use super::words::{DecayKind, DenseKind, OptimizerKind};
use crate::{Error, Result};
use emb_optim::{
    Decay, DenseOptimizer, Extent, Optimizer, OptimizerConfig, PolynomialDecay, RuleKind, Schedule,
    StepDecay,
};

/// The optimizers of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizers {
    /// Default rule of the tables.
    pub tables: Optimizer,
    /// Default learning rate of the tables.
    pub lr: f64,
    /// Rule of the dense part.
    pub dense: DenseOptimizer,
    /// Learning rate of the dense part.
    pub dense_lr: f64,
    /// Factor of every learning rate at each step.
    pub schedule: Schedule,
}

impl Optimizers {
    /// Reads the optimizer options.
    ///
    /// # Errors
    /// An option that neither rule takes, a value out of range, a decay rule that can't be read.
    pub(super) fn from_options(options: &Options) -> Result<Self> {
        let kind = options.optimizer.unwrap_or(OptimizerKind::RowWiseAdaGrad);
        if options.decay.is_some() && options.weight_decay.is_none_or(|decay| decay == 0.0) {
            return Err(Error::Config(
                "--decay says how weight decay acts, but there is none: give --weight-decay".into(),
            ));
        }
        let dense_kind = options.dense_optimizer.unwrap_or(DenseKind::AdaGrad);
        Ok(Self {
            tables: table_optimizer(options, kind)?,
            lr: rate("lr", options.lr)?,
            dense: dense_optimizer(options, kind, dense_kind)?,
            dense_lr: rate("dense-lr", options.dense_lr)?,
            schedule: schedule(options)?,
        })
    }
}

fn rate(name: &str, value: Option<f64>) -> Result<f64> {
    let value = value.unwrap_or(0.01);
    if value.is_finite() && value >= 0.0 && (value as f32).is_finite() {
        return Ok(value);
    }
    Err(Error::Config(format!("--{name} is {value}, valid: 0 or more, finite")))
}

/// The rule of a table: `kind` with the shared options.
///
/// # Errors
/// An option that the rule does not take, by name.
pub(super) fn table_optimizer(options: &Options, kind: OptimizerKind) -> Result<Optimizer> {
    let rule = match kind {
        OptimizerKind::RowWiseAdaGrad => RuleKind::RowWiseAdaGrad,
        OptimizerKind::AdaGrad => RuleKind::AdaGrad,
        OptimizerKind::Sgd => RuleKind::Sgd,
        OptimizerKind::Adam => RuleKind::Adam,
        OptimizerKind::RowWiseAdam => RuleKind::RowWiseAdam,
    };
    let decay = options.weight_decay.filter(|&decay| decay != 0.0);
    let kind_of_decay = match options.decay.unwrap_or(DecayKind::L2) {
        DecayKind::L2 => Decay::L2,
        DecayKind::Decoupled => Decay::Decoupled,
    };
    let config = OptimizerConfig {
        eps: shared(options.eps, rule.has_eps()),
        initial_accumulator: shared(options.initial_accumulator, rule.has_accumulator()),
        weight_decay: decay,
        decay: decay.map(|_| kind_of_decay),
        max_gradient: options.max_gradient,
        max_norm: options.max_norm,
        ..OptimizerConfig::new(rule)
    };
    Ok(config.build()?)
}

/// Bytes of state that a rule keeps, all options at their defaults.
#[cfg(feature = "cli")]
pub(crate) fn state_bytes_of(kind: OptimizerKind) -> Result<emb_shard::StateBytes> {
    Ok(state_bytes(&table_optimizer(&Options::default(), kind)?))
}

/// Bytes of state that a rule keeps: every slot is `f32`.
pub(super) fn state_bytes(optimizer: &Optimizer) -> emb_shard::StateBytes {
    let mut state = emb_shard::StateBytes::default();
    for slot in optimizer.slots() {
        match slot.extent {
            Extent::Row => state.per_row += 4,
            Extent::Element => state.per_element += 4,
        }
    }
    state
}

fn dense_optimizer(
    options: &Options,
    tables: OptimizerKind,
    kind: DenseKind,
) -> Result<DenseOptimizer> {
    let rule = match kind {
        DenseKind::AdaGrad => RuleKind::AdaGrad,
        DenseKind::Sgd => RuleKind::Sgd,
        DenseKind::Adam => RuleKind::Adam,
    };
    let default_used =
        options.table.is_empty() || options.table.iter().any(|table| table.optimizer.is_none());
    let no_table = |takes: fn(OptimizerKind) -> bool| {
        let mut own = options.table.iter().filter_map(|table| table.optimizer);
        !(own.any(takes) || default_used && takes(tables))
    };
    if options.eps.is_some() && !rule.has_eps() && no_table(|kind| kind != OptimizerKind::Sgd) {
        return Err(Error::Config("--eps has no effect: sgd has no denominator".into()));
    }
    let accumulates = |kind| matches!(kind, OptimizerKind::AdaGrad | OptimizerKind::RowWiseAdaGrad);
    if options.initial_accumulator.is_some() && !rule.has_accumulator() && no_table(accumulates) {
        return Err(Error::Config(
            "--initial-accumulator has no effect: no rule here is an AdaGrad".into(),
        ));
    }
    let config = OptimizerConfig {
        eps: shared(options.eps, rule.has_eps()),
        initial_accumulator: shared(options.initial_accumulator, rule.has_accumulator()),
        ..OptimizerConfig::new(rule)
    };
    Ok(DenseOptimizer::new(config.build()?)?)
}

/// An option that goes to every rule which takes it.
fn shared(value: Option<f64>, taken: bool) -> Option<f64> {
    value.filter(|_| taken)
}

/// The factor of every learning rate: warm-up to 1, then the decay.
fn schedule(options: &Options) -> Result<Schedule> {
    let text = options.lr_decay.as_deref().unwrap_or("constant");
    let unreadable = || {
        Error::Config(format!(
            "--lr-decay {text:?}: expected constant, poly:START:STEPS:POWER or step:EVERY:FACTOR"
        ))
    };
    let parts: Vec<&str> = text.split(':').collect();
    let count = |word: &str| word.parse::<u64>().map_err(|_| unreadable());
    let number = |word: &str| word.parse::<f64>().map_err(|_| unreadable());
    let decayed = match parts[..] {
        ["constant"] => Schedule::constant(1.0)?,
        ["poly", start, steps, power] => Schedule::polynomial(
            1.0,
            PolynomialDecay {
                start: count(start)?,
                steps: count(steps)?,
                power: number(power)?,
                end: 0.0,
            },
        )?,
        ["step", every, factor] => {
            let decay = StepDecay { every: count(every)?, factor: number(factor)? };
            Schedule::step_decay(1.0, decay)?
        }
        _ => return Err(unreadable()),
    };
    Ok(match options.lr_warmup {
        None | Some(0) => decayed,
        Some(steps) => decayed.with_warm_up(steps, 0.0)?,
    })
}
