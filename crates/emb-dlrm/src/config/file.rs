//! Options and other things from TOML and JSON files, with line and column of what is wrong.

use super::Options;
use super::nearest::nearest;
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use std::path::Path;

impl Options {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// The file can't be read; an unknown key (with the nearest known one), a value of the wrong
    /// type or an unknown word, each with line and column.
    pub fn from_file(path: &Path) -> Result<Self> {
        toml_file(path)
    }
}

/// Reads a TOML file.
///
/// # Errors
/// As [`Options::from_file`].
pub(crate) fn toml_file<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(Error::io("reading", path))?;
    toml::from_str(&text).map_err(|error| {
        let at = position(&text, error.span().map_or(0, |span| span.start));
        located(path, at, error.message())
    })
}

/// Reads a JSON file.
///
/// # Errors
/// As [`Options::from_file`].
pub(crate) fn json_file<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(Error::io("reading", path))?;
    serde_json::from_str(&text).map_err(|error| {
        let at = (error.line(), error.column());
        let message = error.to_string();
        let place = format!(" at line {} column {}", at.0, at.1);
        located(path, at, message.strip_suffix(&place).unwrap_or(&message))
    })
}

fn located(path: &Path, (line, column): (usize, usize), message: &str) -> Error {
    let hint = did_you_mean(message).unwrap_or_default();
    Error::Config(format!("{}:{line}:{column}: {hint}{message}", path.display()))
}

/// `did you mean ...? ` for serde's message about an unknown field or word.
pub(crate) fn did_you_mean(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let (word, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let near = nearest(&word.to_lowercase(), &known)?;
    Some(format!("{word:?}: did you mean {near:?}? "))
}

/// Line and column, from 1, of a byte offset.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}
