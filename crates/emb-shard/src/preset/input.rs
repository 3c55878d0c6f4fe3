//! A number that a preset is made of: [`Input`].

use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// A number that a preset is made of, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Input {
    /// What it says.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit; empty for none.
    pub unit: &'static str,
    /// Who published it, what it is computed from, or for an assumed one which figure it was set
    /// to meet.
    pub source: &'static str,
    /// Whether nobody published it.
    pub assumed: bool,
}

impl Input {
    pub(super) const fn known(
        name: &'static str,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, source, assumed: false }
    }

    pub(super) const fn assumed(
        name: &'static str,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, source, assumed: true }
    }
}

/// One line.
impl Display for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, value, unit, source, assumed } = self;
        write!(f, "{name}: ")?;
        let size = value.abs();
        if size != 0.0 && !(1e-2..1e6).contains(&size) {
            write!(f, "{value:e}")?;
        } else {
            write!(f, "{value}")?;
        }
        if !unit.is_empty() {
            write!(f, " {unit}")?;
        }
        write!(f, " ({}: {source})", if *assumed { "assumed" } else { "known" })
    }
}
