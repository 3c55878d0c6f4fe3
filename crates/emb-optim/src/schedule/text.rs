//! The text form of a schedule: a shape, then `key=value` words.
//!
//! `polynomial lr=24 start=6000 steps=4000 power=2 end=0 warm-up=2000 warm-up-from=0`;
//! in `piecewise lr=0.1 2=0.2 3=0.4` a number as key is the first step of a rate.

use std::{fmt, str::FromStr};

use super::{PolynomialDecay, Schedule, Shape, StepDecay};
use crate::{Error, Result};

/// First words of the text forms.
const SHAPES: [&str; 4] = ["constant", "polynomial", "step", "piecewise"];

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lr = self.lr;
        match &self.shape {
            Shape::Constant => write!(f, "constant lr={lr}")?,
            Shape::Polynomial(PolynomialDecay { start, steps, power, end }) => {
                write!(
                    f,
                    "polynomial lr={lr} start={start} steps={steps} power={power} end={end}"
                )?;
            }
            Shape::Step(StepDecay { every, factor }) => {
                write!(f, "step lr={lr} every={every} factor={factor}")?;
            }
            Shape::Piecewise(changes) => {
                write!(f, "piecewise lr={lr}")?;
                for (step, lr) in changes {
                    write!(f, " {step}={lr}")?;
                }
            }
        }
        if let Some(warm_up) = self.warm_up {
            write!(f, " warm-up={} warm-up-from={}", warm_up.steps, warm_up.from)?;
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = Error;

    /// Reads what `Display` writes; `power`, `end`, `start` and `warm-up-from` may be left out
    /// (1, 0, the end of the warm-up or 0, and 0).
    fn from_str(text: &str) -> Result<Self> {
        let mut words = Words::split(text)?;
        if !SHAPES.contains(&words.shape) {
            return Err(Error::UnknownName {
                what: "schedule",
                name: words.shape.to_owned(),
                known: "constant, polynomial, step, piecewise",
            });
        }
        let warm_up: Option<u64> = words.take("warm-up")?;
        let warm_up_from: Option<f64> = words.take("warm-up-from")?;
        let lr = words.need("lr")?;
        let schedule = match words.shape {
            "constant" => Self::constant(lr)?,
            "polynomial" => {
                let decay = PolynomialDecay {
                    start: words.take("start")?.unwrap_or(warm_up.unwrap_or(0)),
                    steps: words.need("steps")?,
                    power: words.take("power")?.unwrap_or(1.0),
                    end: words.take("end")?.unwrap_or(0.0),
                };
                Self::polynomial(lr, decay)?
            }
            "step" => {
                let decay =
                    StepDecay { every: words.need("every")?, factor: words.need("factor")? };
                Self::step_decay(lr, decay)?
            }
            _ => Self::piecewise(lr, words.take_changes()?)?,
        };
        words.end()?;
        match (warm_up, warm_up_from) {
            (Some(steps), from) => schedule.with_warm_up(steps, from.unwrap_or(0.0)),
            (None, None) => Ok(schedule),
            (None, Some(_)) => Err(Error::Contradiction {
                option: "warm-up-from",
                problem: "without warm-up: say how many steps it takes",
            }),
        }
    }
}

/// The `key=value` words of a text that are not yet read.
struct Words<'a> {
    text: &'a str,
    shape: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn split(text: &'a str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let shape = words.next().unwrap_or("");
        let mut result = Self { text, shape, pairs: Vec::new() };
        for word in words {
            let Some(pair) = word.split_once('=') else {
                return Err(result.problem(format!("{word:?} is not key=value")));
            };
            if result.pairs.iter().any(|(key, _)| *key == pair.0) {
                return Err(result.problem(format!("{} is given twice", pair.0)));
            }
            result.pairs.push(pair);
        }
        Ok(result)
    }

    fn take<T: FromStr>(&mut self, key: &str) -> Result<Option<T>> {
        let Some(at) = self.pairs.iter().position(|(name, _)| *name == key) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        value
            .parse()
            .map(Some)
            .map_err(|_| self.problem(format!("{key}={value} is not a number of its kind")))
    }

    fn need<T: FromStr>(&mut self, key: &str) -> Result<T> {
        self.take(key)?.ok_or_else(|| self.problem(format!("{key}= is missing")))
    }

    fn take_changes(&mut self) -> Result<Vec<(u64, f64)>> {
        let pairs = std::mem::take(&mut self.pairs);
        pairs
            .into_iter()
            .map(|(step, lr)| match (step.parse(), lr.parse()) {
                (Ok(step), Ok(lr)) => Ok((step, lr)),
                _ => Err(self.problem(format!("{step}={lr} is not a step and a learning rate"))),
            })
            .collect()
    }

    fn end(&self) -> Result<()> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) => Err(self.problem(format!("{} does not take {key}", self.shape))),
        }
    }

    fn problem(&self, problem: String) -> Error {
        Error::ScheduleText { text: self.text.to_owned(), problem }
    }
}
