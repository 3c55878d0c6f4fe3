//! Names of the wire formats.

use super::Wire;
use crate::Error;
use std::fmt;
use std::str::FromStr;

impl Wire {
    /// Every format, the widest first.
    pub const ALL: [Self; 7] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Int8Rowwise,
        Self::Fp8E4m3,
        Self::Fp8E5m2,
        Self::Int4,
    ];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; 7] =
        ["f32", "f16", "bf16", "int8", "fp8-e4m3", "fp8-e5m2", "int4"];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Wire {
    type Err = Error;

    /// The format of a name.
    ///
    /// # Errors
    /// Another word, with all names that there are.
    fn from_str(word: &str) -> Result<Self, Error> {
        let found = Self::NAMES.iter().position(|name| *name == word);
        found.map(|at| Self::ALL[at]).ok_or_else(|| Error::UnknownWire { word: word.to_owned() })
    }
}
