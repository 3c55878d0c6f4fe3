//! From a validated configuration to the [`Rule`] of one step: [`Optimizer`].

use std::fmt;

use crate::{
    AdaGrad, Adam, BiasCorrection, Decay, OptimizerConfig, ReplicaRule, ReplicaScaling,
    ReplicaSync, Result, RowWiseAdaGrad, RowWiseAdam, Rule, RuleKind, Sgd, Slot,
};

/// An update rule with all its options, every one of them valid and honoured.
///
/// The learning rate and the step come from outside, one value a step, so a schedule reaches every
/// table and every dense parameter by the same way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    config: OptimizerConfig,
}

impl Optimizer {
    /// Default of `eps`, for embeddings and dense parameters alike.
    pub const DEFAULT_EPS: f64 = 1e-8;
    /// Default of `beta1`.
    pub const DEFAULT_BETA1: f64 = 0.9;
    /// Default of `beta2`.
    pub const DEFAULT_BETA2: f64 = 0.999;

    /// The rule `kind` with every option at its default, which is always valid.
    pub const fn new(kind: RuleKind) -> Self {
        Self { config: OptimizerConfig::new(kind) }
    }

    /// As [`OptimizerConfig::build`].
    ///
    /// # Errors
    /// As [`OptimizerConfig::build`].
    pub fn from_config(config: OptimizerConfig) -> Result<Self> {
        config.build()
    }

    pub(crate) const fn from_checked(config: OptimizerConfig) -> Self {
        Self { config }
    }

    /// Which rule it is.
    pub const fn kind(&self) -> RuleKind {
        self.config.kind
    }

    /// The configuration it was built from.
    pub const fn config(&self) -> &OptimizerConfig {
        &self.config
    }

    /// Added after the square root; 0 for a rule without a denominator.
    pub fn eps(&self) -> f64 {
        let default = if self.kind().has_eps() { Self::DEFAULT_EPS } else { 0.0 };
        self.config.eps.unwrap_or(default)
    }

    /// `(beta1, beta2)`; meaningful for the Adam rules.
    pub fn betas(&self) -> (f64, f64) {
        (
            self.config.beta1.unwrap_or(Self::DEFAULT_BETA1),
            self.config.beta2.unwrap_or(Self::DEFAULT_BETA2),
        )
    }

    /// Kind and strength of weight decay, if there is any.
    pub fn decay(&self) -> Option<(Decay, f64)> {
        let strength = self.config.weight_decay.filter(|&strength| strength != 0.0)?;
        self.config.decay.map(|decay| (decay, strength))
    }

    /// Replica rule and count.
    pub const fn replica(&self) -> ReplicaScaling {
        self.config.replica
    }

    /// What a sync of replicas has to do with weights and state.
    pub const fn replica_sync(&self) -> ReplicaSync {
        match self.config.replica.rule {
            ReplicaRule::Exact => ReplicaSync::Gradients,
            ReplicaRule::History => ReplicaSync::MeanWithHistory,
            ReplicaRule::None | ReplicaRule::Moment | ReplicaRule::Lr => ReplicaSync::Mean,
        }
    }

    /// Whether a step needs all columns of a row at once (`max_norm`); an owner of a column cut
    /// must refuse such an optimizer.
    pub const fn needs_whole_row(&self) -> bool {
        self.config.max_norm.is_some()
    }

    /// The state that the rule keeps for each row.
    pub fn slots(&self) -> &'static [Slot] {
        self.rule(0.0, 1).slots()
    }

    /// The value that every scalar of `slot` starts with: `initial_accumulator` for `sum`, else 0.
    pub fn initial_state(&self, slot: Slot) -> f32 {
        if slot.name == "sum" { self.config.initial_accumulator.unwrap_or(0.0) as f32 } else { 0.0 }
    }

    /// The rule of step `step` (1 for the first) at learning rate `lr`, which a
    /// [`Schedule`](crate::Schedule) gives.
    ///
    /// # Panics
    /// When `step` is 0.
    pub fn rule(&self, lr: f64, step: u64) -> Rule {
        assert!(step >= 1, "steps are counted from 1");
        let lr = lr * self.replica().lr_scale();
        match self.kind() {
            RuleKind::Sgd => Rule::Sgd(self.sgd(lr)),
            RuleKind::AdaGrad => Rule::AdaGrad(self.adagrad(lr)),
            RuleKind::RowWiseAdaGrad => Rule::RowWiseAdaGrad(self.rowwise_adagrad(lr)),
            RuleKind::Adam => Rule::Adam(self.adam(lr, step)),
            RuleKind::RowWiseAdam => Rule::RowWiseAdam(self.rowwise_adam(lr, step)),
        }
    }

    fn sgd(&self, lr: f64) -> Sgd {
        // For SGD both kinds of decay are the same factor on the weight.
        let strength = self.decay().map_or(0.0, |(_, strength)| strength);
        Sgd {
            lr: lr as f32,
            keep: (1.0 - lr * strength) as f32,
            max_gradient: self.max_gradient(),
            max_norm: self.max_norm(),
        }
    }

    fn adagrad(&self, lr: f64) -> AdaGrad {
        let (l2, keep) = self.l2_and_keep(lr);
        AdaGrad {
            lr: lr as f32,
            eps: self.eps() as f32,
            l2,
            keep,
            square_scale: self.replica().square_scale() as f32,
            history: self.replica().rule == ReplicaRule::History,
            max_gradient: self.max_gradient(),
            max_norm: self.max_norm(),
        }
    }

    fn rowwise_adagrad(&self, lr: f64) -> RowWiseAdaGrad {
        let (l2, keep) = self.l2_and_keep(lr);
        RowWiseAdaGrad {
            lr: lr as f32,
            eps: self.eps() as f32,
            l2,
            keep,
            square_scale: self.replica().square_scale(),
            history: self.replica().rule == ReplicaRule::History,
            max_gradient: self.max_gradient(),
            max_norm: self.max_norm(),
        }
    }

    fn adam(&self, lr: f64, step: u64) -> Adam {
        let (beta1, beta2) = self.betas();
        let (l2, keep) = self.l2_and_keep(lr);
        Adam {
            gain2: ((1.0 - beta2) * self.replica().square_scale()) as f32,
            l2,
            keep,
            max_gradient: self.max_gradient(),
            max_norm: self.max_norm(),
            ..Adam::new(lr, (beta1, beta2), self.eps(), BiasCorrection::at(beta1, beta2, step))
        }
    }

    fn rowwise_adam(&self, lr: f64, step: u64) -> RowWiseAdam {
        let (beta1, beta2) = self.betas();
        let (l2, keep) = self.l2_and_keep(lr);
        RowWiseAdam {
            gain2: (1.0 - beta2) * self.replica().square_scale(),
            l2,
            keep,
            max_gradient: self.max_gradient(),
            max_norm: self.max_norm(),
            ..RowWiseAdam::new(
                lr,
                (beta1, beta2),
                self.eps(),
                BiasCorrection::at(beta1, beta2, step),
            )
        }
    }

    fn l2_and_keep(&self, lr: f64) -> (f32, f32) {
        match self.decay() {
            None => (0.0, 1.0),
            Some((Decay::L2, strength)) => (strength as f32, 1.0),
            Some((Decay::Decoupled, strength)) => (0.0, (1.0 - lr * strength) as f32),
        }
    }

    fn max_gradient(&self) -> Option<f32> {
        self.config.max_gradient.map(|limit| limit as f32)
    }

    fn max_norm(&self) -> Option<f32> {
        self.config.max_norm.map(|limit| limit as f32)
    }
}

/// Rule and every option that it honours, with effective values: what a run prints and a test
/// compares.
impl fmt::Display for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        write!(f, "{kind}")?;
        if kind.has_eps() {
            write!(f, " eps={:e}", self.eps())?;
        }
        if kind.has_betas() {
            let (beta1, beta2) = self.betas();
            write!(f, " beta1={beta1} beta2={beta2}")?;
        }
        if kind.has_accumulator() {
            let start = self.config.initial_accumulator.unwrap_or(0.0);
            write!(f, " initial_accumulator={start}")?;
        }
        if let Some((decay, strength)) = self.decay() {
            write!(f, " weight_decay={strength} decay={decay}")?;
        }
        if let Some(limit) = self.config.max_gradient {
            write!(f, " max_gradient={limit}")?;
        }
        if let Some(limit) = self.config.max_norm {
            write!(f, " max_norm={limit}")?;
        }
        let ReplicaScaling { rule, replicas, .. } = self.replica();
        if rule != ReplicaRule::None || replicas != 1 {
            write!(f, " replica={rule} replicas={replicas}")?;
        }
        Ok(())
    }
}
