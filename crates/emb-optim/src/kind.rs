//! Which update rule: [`RuleKind`].

use std::{fmt, str::FromStr};

use crate::Error;

/// The update rules of this crate, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    /// Stochastic gradient descent, `sgd`.
    Sgd,
    /// Element-wise `AdaGrad`, `adagrad`.
    AdaGrad,
    /// `AdaGrad` with one accumulator a row, `row-wise-adagrad`.
    RowWiseAdaGrad,
    /// Adam with lazy rows, `adam`.
    Adam,
    /// Adam with one second moment a row, `row-wise-adam`.
    RowWiseAdam,
}

impl RuleKind {
    /// All rules, in the order of the documentation.
    pub const ALL: [Self; 5] =
        [Self::Sgd, Self::AdaGrad, Self::RowWiseAdaGrad, Self::Adam, Self::RowWiseAdam];

    /// The name used in configurations, logs and checkpoints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::AdaGrad => "adagrad",
            Self::RowWiseAdaGrad => "row-wise-adagrad",
            Self::Adam => "adam",
            Self::RowWiseAdam => "row-wise-adam",
        }
    }

    /// Whether the rule has an `eps` in its denominator (all but SGD).
    pub const fn has_eps(self) -> bool {
        !matches!(self, Self::Sgd)
    }

    /// Whether the rule keeps moments that decay with `beta1` and `beta2`.
    pub const fn has_betas(self) -> bool {
        matches!(self, Self::Adam | Self::RowWiseAdam)
    }

    /// Whether the rule keeps a sum of squares that may start above zero.
    pub const fn has_accumulator(self) -> bool {
        matches!(self, Self::AdaGrad | Self::RowWiseAdaGrad)
    }

    /// Whether every element of a row is treated alone, so that the rule fits a dense parameter.
    pub const fn is_element_wise(self) -> bool {
        matches!(self, Self::Sgd | Self::AdaGrad | Self::Adam)
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RuleKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| Error::UnknownName {
            what: "update rule",
            name: text.to_owned(),
            known: "sgd, adagrad, row-wise-adagrad, adam, row-wise-adam",
        })
    }
}
