//! What a user may ask of an update rule: [`OptimizerConfig`], and which of it is refused.

use std::{fmt, str::FromStr};

use crate::{Error, GroupGradient, Optimizer, ReplicaRule, ReplicaScaling, Result, RuleKind};

/// How weight decay acts; both act on touched rows only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decay {
    /// `weight_decay * w` joins the gradient before the rule sees it.
    L2,
    /// The weight is multiplied by `1 - lr * weight_decay` and the rule sees the gradient alone
    /// (Loshchilov and Hutter, arXiv 1711.05101).
    Decoupled,
}

impl Decay {
    /// The name used in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Decoupled => "decoupled",
        }
    }
}

impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Decay {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::L2, Self::Decoupled].into_iter().find(|decay| decay.name() == text).ok_or_else(
            || Error::UnknownName { what: "decay", name: text.to_owned(), known: "l2, decoupled" },
        )
    }
}

/// The options of an update rule; [`build`](Self::build) makes an [`Optimizer`] or says what is
/// wrong.
///
/// `None` means the default. Naming an option that the rule has no use for is refused even at its
/// default value, so that a configuration never says more than what happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerConfig {
    /// The rule.
    pub kind: RuleKind,
    /// Added after the square root; default [`Optimizer::DEFAULT_EPS`].
    pub eps: Option<f64>,
    /// Decay of the first moment; default 0.9.
    pub beta1: Option<f64>,
    /// Decay of the second moment; default 0.999.
    pub beta2: Option<f64>,
    /// Start value of the sums of squares; default 0.
    pub initial_accumulator: Option<f64>,
    /// Strength of weight decay; needs `decay`. Default 0.
    pub weight_decay: Option<f64>,
    /// How weight decay acts; needs `weight_decay`.
    pub decay: Option<Decay>,
    /// Clamp of each element of an incoming gradient to `[-c, c]` before duplicates are summed;
    /// default none.
    pub max_gradient: Option<f64>,
    /// Longest Euclidean norm of a row after its step; default none.
    pub max_norm: Option<f64>,
    /// Replicas of the table and what the rule does about them.
    pub replica: ReplicaScaling,
}

impl OptimizerConfig {
    /// The rule `kind` with every option at its default.
    pub const fn new(kind: RuleKind) -> Self {
        Self {
            kind,
            eps: None,
            beta1: None,
            beta2: None,
            initial_accumulator: None,
            weight_decay: None,
            decay: None,
            max_gradient: None,
            max_norm: None,
            replica: ReplicaScaling {
                rule: ReplicaRule::None,
                replicas: 1,
                gradients: GroupGradient::Mean,
            },
        }
    }

    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for an option that the rule does not honour, [`Error::OutOfRange`] for
    /// a value outside its range (also when it is not finite as `f32`), [`Error::Contradiction`] for
    /// `weight_decay` without `decay` and the like.
    pub fn build(self) -> Result<Optimizer> {
        self.refuse_options_of_other_rules()?;
        check("eps", self.eps, "0 or more, finite in f32", |x| x >= 0.0)?;
        check("beta1", self.beta1, "0 or more, below 1 in f32", |x| (0.0..1.0).contains(&x))?;
        check("beta2", self.beta2, "0 or more, below 1 in f32", |x| (0.0..1.0).contains(&x))?;
        check("initial_accumulator", self.initial_accumulator, "0 or more, finite in f32", |x| {
            x >= 0.0
        })?;
        check("weight_decay", self.weight_decay, "0 or more, finite in f32", |x| x >= 0.0)?;
        check("max_gradient", self.max_gradient, "above 0, finite in f32", |x| x > 0.0)?;
        check("max_norm", self.max_norm, "above 0, finite in f32", |x| x > 0.0)?;
        self.check_decay()?;
        self.check_replicas()?;
        Ok(Optimizer::from_checked(self))
    }

    fn refuse_options_of_other_rules(&self) -> Result<()> {
        let kind = self.kind;
        let refuse = |option: &str, reason| {
            Err(Error::Unsupported { rule: kind, option: option.to_owned(), reason })
        };
        if self.eps.is_some() && !kind.has_eps() {
            return refuse("eps", "it has no denominator");
        }
        if self.beta1.is_some() && !kind.has_betas() {
            return refuse("beta1", "it keeps no moving average of the gradient");
        }
        if self.beta2.is_some() && !kind.has_betas() {
            return refuse("beta2", "it keeps no moving average of the squared gradient");
        }
        if self.initial_accumulator.is_some() && !kind.has_accumulator() {
            return refuse("initial_accumulator", "it keeps no sum of squares");
        }
        Ok(())
    }

    fn check_decay(&self) -> Result<()> {
        match (self.weight_decay, self.decay) {
            (Some(strength), None) if strength != 0.0 => Err(Error::Contradiction {
                option: "weight_decay",
                problem: "without decay: say decay = l2 or decay = decoupled",
            }),
            (None, Some(_)) => Err(Error::Contradiction {
                option: "decay",
                problem: "without weight_decay: say how strong it is",
            }),
            _ => Ok(()),
        }
    }

    fn check_replicas(&self) -> Result<()> {
        let ReplicaScaling { rule, replicas, gradients } = self.replica;
        check("replicas", Some(f64::from(replicas)), "1 or more", |x| x >= 1.0)?;
        let refuse = |reason| {
            let option = match gradients {
                GroupGradient::Mean => format!("replica rule {rule}"),
                GroupGradient::Sum => format!("replica rule {rule} with summed gradients"),
            };
            Err(Error::Unsupported { rule: self.kind, option, reason })
        };
        match (self.kind, rule, gradients) {
            (RuleKind::Sgd, ReplicaRule::Lr, GroupGradient::Sum) => {}
            (RuleKind::Sgd, ReplicaRule::Lr, GroupGradient::Mean) => {
                return refuse("mean gradients need no other learning rate; use none");
            }
            (RuleKind::Sgd, _, GroupGradient::Sum) => {
                return refuse("averaging would divide the step by the replicas; use lr");
            }
            (_, _, GroupGradient::Sum) => {
                return refuse("adaptive rules are defined on mean gradients");
            }
            (RuleKind::Sgd, ReplicaRule::Moment | ReplicaRule::History, _) => {
                return refuse("it keeps no sum of squares; use none or exact");
            }
            (RuleKind::Adam | RuleKind::RowWiseAdam, ReplicaRule::Lr | ReplicaRule::History, _) => {
                return refuse("its moments are moving averages; use none, moment or exact");
            }
            _ => {}
        }
        if rule == ReplicaRule::Lr && self.weight_decay.is_some_and(|strength| strength != 0.0) {
            return Err(Error::Contradiction {
                option: "weight_decay",
                problem: "with replica rule lr: the decay would be multiplied by the replicas too",
            });
        }
        Ok(())
    }
}

/// Checks a value as it will be used: as `f32`.
fn check(
    option: &'static str,
    value: Option<f64>,
    valid: &'static str,
    accept: impl Fn(f64) -> bool,
) -> Result<()> {
    match value {
        Some(value) => {
            let used = f64::from(value as f32);
            // Both: a negative value may round to -0.0, which compares as 0.
            if used.is_finite() && accept(used) && accept(value) {
                Ok(())
            } else {
                Err(Error::OutOfRange { option, value, valid })
            }
        }
        None => Ok(()),
    }
}
