//! How an adaptive rule treats the gradient of one replica out of many.
//!
//! With `M` replicas each group steps with the mean gradient of its own samples (scale `M / B` for a
//! global batch `B`), and weights are averaged afterwards. Its square is too large: about `M` times
//! where noise dominates or where only one group touches a row. The rules here differ in what they
//! do about it; the accumulator itself is meant in one-process units, so that `M` may change when a
//! run is resumed (`none` does not achieve this, which is why the other rules exist).

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// What happens to the squared gradient of one replica out of `M`.
///
/// `s` is `sum(g^2) / D` for row-wise rules and `g_d^2` for element-wise ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplicaRule {
    /// `v += s`: the rule of one process on the group's gradient.
    #[default]
    None,
    /// `v += s / M`: equal to `v / M` inside the root (momentum-scaled row-wise `AdaGrad`,
    /// arXiv 2508.03854).
    Moment,
    /// `v += s` with the learning rate times `M`.
    Lr,
    /// `v = h + a`, where each step does `a += s / M^2` and each sync `h += sum of a`, `a = 0`:
    /// closest to one process without exchanging gradients.
    History,
    /// Gradients (scale `1 / B`) are summed over the replicas before one step everywhere: equals one
    /// process. The caller sums; the rule itself is that of one process.
    Exact,
}

impl ReplicaRule {
    /// All rules, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::None, Self::Moment, Self::Lr, Self::History, Self::Exact];

    /// The name used in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Moment => "moment",
            Self::Lr => "lr",
            Self::History => "history",
            Self::Exact => "exact",
        }
    }
}

impl fmt::Display for ReplicaRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ReplicaRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == text).ok_or_else(|| Error::UnknownName {
            what: "replica rule",
            name: text.to_owned(),
            known: "none, moment, lr, history, exact",
        })
    }
}

/// The scale of the gradient that a group hands to the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GroupGradient {
    /// `M / B` per sample: the mean over the group's samples. Averaging weights over the replicas
    /// then equals one step on the global mean.
    #[default]
    Mean,
    /// `1 / B` per sample: the group's part of the global sum, `M` times smaller.
    Sum,
}

/// Replica rule, replica count and gradient scale of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaScaling {
    /// What happens to the squared gradient.
    pub rule: ReplicaRule,
    /// Replicas `M` of the table; at least 1.
    pub replicas: u32,
    /// Scale of the gradients.
    pub gradients: GroupGradient,
}

impl Default for ReplicaScaling {
    fn default() -> Self {
        Self { rule: ReplicaRule::None, replicas: 1, gradients: GroupGradient::Mean }
    }
}

impl ReplicaScaling {
    /// `rule` over `replicas` replicas, with mean gradients.
    pub fn new(rule: ReplicaRule, replicas: u32) -> Self {
        Self { rule, replicas, gradients: GroupGradient::Mean }
    }

    /// Factor on squared gradients before they are accumulated.
    pub(crate) fn square_scale(self) -> f64 {
        let replicas = f64::from(self.replicas);
        match self.rule {
            ReplicaRule::Moment => 1.0 / replicas,
            ReplicaRule::History => 1.0 / (replicas * replicas),
            ReplicaRule::None | ReplicaRule::Lr | ReplicaRule::Exact => 1.0,
        }
    }

    /// Factor on the learning rate.
    pub(crate) fn lr_scale(self) -> f64 {
        if self.rule == ReplicaRule::Lr { f64::from(self.replicas) } else { 1.0 }
    }
}

/// What a sync of replicas does with weights and optimizer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaSync {
    /// Weights and every slot become the mean over the replicas.
    Mean,
    /// Weights become the mean; slot `sum` and `sum_local` are merged by [`fold_history`].
    MeanWithHistory,
    /// There is no such sync: gradients are summed over the replicas in every step.
    Gradients,
}

/// Ends a sync period of [`ReplicaRule::History`]: `sum += local_total`, `sum_local = 0`.
///
/// `local_total` is the sum of `sum_local` over all replicas (an all-reduce, or [`history_total`]);
/// since it and `sum` are equal on every replica, `sum` stays equal bitwise. All slices have the
/// same length.
///
/// # Errors
/// [`Error::Length`]; nothing is changed then.
pub fn fold_history(sum: &mut [f32], sum_local: &mut [f32], local_total: &[f32]) -> Result<()> {
    expect_length("sum_local", sum.len(), sum_local.len())?;
    expect_length("local_total", sum.len(), local_total.len())?;
    for (h, &total) in sum.iter_mut().zip(local_total) {
        *h += total;
    }
    sum_local.fill(0.0);
    Ok(())
}

/// `total[i]` = the sum over replicas of `sum_local[i]`, in replica order and in `f64`.
///
/// # Errors
/// [`Error::Length`]; nothing is written then.
pub fn history_total(sum_locals: &[&[f32]], total: &mut [f32]) -> Result<()> {
    for local in sum_locals {
        expect_length("sum_local", total.len(), local.len())?;
    }
    for (i, total) in total.iter_mut().enumerate() {
        *total = sum_locals.iter().map(|local| f64::from(local[i])).sum::<f64>() as f32;
    }
    Ok(())
}

pub(crate) fn expect_length(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Length { what, expected, got }) }
}
