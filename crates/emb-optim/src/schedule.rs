//! The learning rate of each step: [`Schedule`].

mod text;

#[cfg(test)]
mod tests;

use crate::{Error, Result, bias::power};

/// A learning rate for every step, counted from 1: warm-up first, then one of four shapes.
///
/// All steps are on one clock, the global step of the run: a resumed run gives its step and gets
/// the same rate. The text form (`Display`, `FromStr`) keeps every number, so it can be stored.
///
/// ```
/// use emb_optim::{PolynomialDecay, Schedule};
/// let decay = PolynomialDecay { start: 6000, steps: 4000, power: 2.0, end: 0.0 };
/// let schedule = Schedule::polynomial(24.0, decay)?.with_warm_up(2000, 0.0)?;
/// assert_eq!(schedule.lr(1000), 12.0);
/// assert_eq!(schedule.lr(5000), 24.0);
/// assert_eq!(schedule.lr(8000), 6.0);
/// assert_eq!(schedule, schedule.to_string().parse()?);
/// # Ok::<(), emb_optim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    lr: f64,
    shape: Shape,
    warm_up: Option<WarmUp>,
}

/// `end + (lr - end) * (1 - (t - start) / steps)^power` from step `start` on, `end` afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolynomialDecay {
    /// Last step at the full learning rate; 0 starts at once.
    pub start: u64,
    /// Steps from `lr` down to `end`; at least 1.
    pub steps: u64,
    /// Exponent; above 0.
    pub power: f64,
    /// Learning rate afterwards; 0 or more, at most `lr`.
    pub end: f64,
}

/// `lr * factor^k` with `k` the number of whole periods of `every` steps before this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDecay {
    /// Steps between two decays; at least 1.
    pub every: u64,
    /// Factor of one decay; above 0, at most 1.
    pub factor: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant,
    Polynomial(PolynomialDecay),
    Step(StepDecay),
    /// (first step, learning rate from there on), ascending.
    Piecewise(Vec<(u64, f64)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct WarmUp {
    steps: u64,
    from: f64,
}

impl Schedule {
    /// The same learning rate at every step.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `lr` is finite in `f32` and not negative.
    pub fn constant(lr: f64) -> Result<Self> {
        check_lr("schedule lr", lr)?;
        Ok(Self { lr, shape: Shape::Constant, warm_up: None })
    }

    /// `lr`, then a polynomial decay.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a value outside the range that its field documents.
    pub fn polynomial(lr: f64, decay: PolynomialDecay) -> Result<Self> {
        check_lr("schedule lr", lr)?;
        check_lr("schedule end", decay.end)?;
        check("schedule end", decay.end, "at most lr", decay.end <= lr)?;
        check("schedule steps", decay.steps as f64, "1 or more", decay.steps >= 1)?;
        let power = decay.power;
        check("schedule power", power, "above 0, finite", power > 0.0 && power.is_finite())?;
        Ok(Self { lr, shape: Shape::Polynomial(decay), warm_up: None })
    }

    /// `lr`, multiplied by a factor after every so many steps.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a value outside the range that its field documents.
    pub fn step_decay(lr: f64, decay: StepDecay) -> Result<Self> {
        check_lr("schedule lr", lr)?;
        check("schedule every", decay.every as f64, "1 or more", decay.every >= 1)?;
        let factor = decay.factor;
        check("schedule factor", factor, "above 0, at most 1", factor > 0.0 && factor <= 1.0)?;
        Ok(Self { lr, shape: Shape::Step(decay), warm_up: None })
    }

    /// `lr` from step 1, then for each `(step, lr)` that rate from that step on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a rate that is negative or not finite in `f32`, and unless the steps
    /// ascend and are at least 2.
    pub fn piecewise(lr: f64, changes: Vec<(u64, f64)>) -> Result<Self> {
        check_lr("schedule lr", lr)?;
        let mut last = 1;
        for &(step, lr) in &changes {
            check("schedule step", step as f64, "2 or more and ascending", step > last)?;
            check_lr("schedule lr", lr)?;
            last = step;
        }
        Ok(Self { lr, shape: Shape::Piecewise(changes), warm_up: None })
    }

    /// Puts a linear warm-up in front: from `from` (at the imagined step 0) to what the schedule
    /// says at step `steps`, reached at step `steps`. The decay keeps its own step numbers.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when `steps` is 0, `from` is negative or not finite, or a polynomial
    /// decay would start before the warm-up ends; [`Error::Contradiction`] for a second warm-up.
    pub fn with_warm_up(self, steps: u64, from: f64) -> Result<Self> {
        if self.warm_up.is_some() {
            let problem = "with a second warm-up: give one";
            return Err(Error::Contradiction { option: "warm-up", problem });
        }
        check("schedule warm-up", steps as f64, "1 or more", steps >= 1)?;
        check_lr("schedule warm-up-from", from)?;
        if let Shape::Polynomial(PolynomialDecay { start, .. }) = self.shape {
            let valid = "the last step of the warm-up or later";
            check("schedule start", start as f64, valid, start >= steps)?;
        }
        Ok(Self { warm_up: Some(WarmUp { steps, from }), ..self })
    }

    /// The learning rate of step `step` (1 for the first).
    ///
    /// # Panics
    /// When `step` is 0.
    pub fn lr(&self, step: u64) -> f64 {
        assert!(step >= 1, "steps are counted from 1");
        match self.warm_up {
            Some(WarmUp { steps, from }) if step < steps => {
                from + (self.after_warm_up(steps) - from) * (step as f64 / steps as f64)
            }
            _ => self.after_warm_up(step),
        }
    }

    fn after_warm_up(&self, step: u64) -> f64 {
        match &self.shape {
            Shape::Constant => self.lr,
            Shape::Polynomial(decay) => {
                let done = step.saturating_sub(decay.start);
                if done >= decay.steps {
                    return decay.end;
                }
                let left = (decay.steps - done) as f64 / decay.steps as f64;
                decay.end + (self.lr - decay.end) * left.powf(decay.power)
            }
            Shape::Step(decay) => self.lr * power(decay.factor, (step - 1) / decay.every),
            Shape::Piecewise(changes) => {
                let passed = changes.partition_point(|&(first, _)| first <= step);
                passed.checked_sub(1).map_or(self.lr, |last| changes[last].1)
            }
        }
    }
}

fn check_lr(option: &'static str, lr: f64) -> Result<()> {
    let valid = "0 or more, finite in f32";
    check(option, lr, valid, lr >= 0.0 && (lr as f32).is_finite())
}

fn check(option: &'static str, value: f64, valid: &'static str, accepted: bool) -> Result<()> {
    if accepted { Ok(()) } else { Err(Error::OutOfRange { option, value, valid }) }
}
