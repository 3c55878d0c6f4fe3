//! Laws that every [`RowRule`] keeps, for rules written outside this crate.
//!
//! [`row_rule`] runs a rule over rows of many lengths and gradients of many magnitudes:
//!
//! 1. slots are named, each name once; a clamp is positive and finite;
//! 2. zero columns are fine: no panic, a statistic of 0;
//! 3. the statistic is finite, does not change on a second call, and adds up over column cuts
//!    (within `1e-12` of the sum of squares' scale);
//! 4. a rule that says it does not use the statistic really ignores it;
//! 5. the step of column cuts with the statistic of the whole row is bitwise the step of the whole
//!    row, weights and state (unless the rule [needs whole rows](RowRule::needs_whole_row));
//! 6. finite weights, state and gradients (up to `1e6`) stay finite, all-zero gradients included.
//!
//! That a rule changes no row but its own needs no test: it is only ever given one.
//!
//! ```
//! use emb_optim::{Optimizer, RowRule, RowState, RuleKind, Slot, Statistic, conformance};
//!
//! /// `w -= lr * sign(g)`.
//! #[derive(Clone, Copy)]
//! struct SignDescent {
//!     lr: f32,
//! }
//!
//! impl RowRule for SignDescent {
//!     fn slots(&self) -> &'static [Slot] {
//!         &[]
//!     }
//!     fn uses_statistic(&self) -> bool {
//!         false
//!     }
//!     fn max_gradient(&self) -> Option<f32> {
//!         None
//!     }
//!     fn statistic(&self, _row: &[f32], _grad: &[f32]) -> f64 {
//!         0.0
//!     }
//!     fn step(&self, row: &mut [f32], _: RowState<'_>, grad: &[f32], _: Statistic) {
//!         for (w, &g) in row.iter_mut().zip(grad) {
//!             if g != 0.0 {
//!                 *w -= self.lr * g.signum();
//!             }
//!         }
//!     }
//! }
//!
//! conformance::row_rule(SignDescent { lr: 0.1 })?;
//! # Ok::<(), conformance::LawBroken>(())
//! ```

#[cfg(test)]
mod tests;

use crate::{RowRule, RowState, Statistic, element_slots, row_slots};

/// A law that a rule broke, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row rule breaks the law {law:?} at {columns} columns: {detail}")]
pub struct LawBroken {
    /// The law, in a few words.
    pub law: &'static str,
    /// Columns of the row in the case at fault.
    pub columns: usize,
    /// The values that show it.
    pub detail: String,
}

/// Lengths around the usual vector widths, and real embedding dimensions.
const DIMS: [usize; 18] = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 128, 1023, 1024, 1280];

/// Magnitudes of gradients: nothing, vanishing when squared, usual, large.
const SCALES: [f32; 6] = [0.0, 1e-30, 1e-20, 1e-3, 1.0, 1e6];

/// Steps of each case, so that later ones start from a used state.
const STEPS: u64 = 3;

/// Runs `rule` against every law of this module.
///
/// # Errors
/// The first [`LawBroken`].
pub fn row_rule<R: RowRule>(rule: R) -> Result<(), LawBroken> {
    slots_are_named(rule)?;
    zero_columns_are_fine(rule)?;
    for dim in DIMS {
        for scale in SCALES {
            let mut held = Held::new(rule, dim);
            for step in 0..STEPS {
                let grad = noise(step + 1, dim, scale);
                let total = statistic_adds_up(rule, &held.row, &grad)?;
                let statistic = Statistic { total, dim };
                statistic_is_used_as_said(rule, &held, &grad, statistic)?;
                cuts_step_like_the_whole(rule, &held, &grad, statistic)?;
                held.step(rule, &[dim], &grad, statistic);
                if !held.all().all(f32::is_finite) {
                    let detail = format!("gradient scale {scale:e}, step {}", step + 1);
                    return Err(LawBroken { law: "finite stays finite", columns: dim, detail });
                }
            }
        }
    }
    Ok(())
}

fn slots_are_named<R: RowRule>(rule: R) -> Result<(), LawBroken> {
    let slots = rule.slots();
    for (i, slot) in slots.iter().enumerate() {
        if slot.name.is_empty() || slots[..i].iter().any(|other| other.name == slot.name) {
            let detail = format!("slot {i} is called {:?}", slot.name);
            return Err(LawBroken { law: "slots have names of their own", columns: 0, detail });
        }
    }
    match rule.max_gradient() {
        Some(limit) if !(limit > 0.0 && limit.is_finite()) => Err(LawBroken {
            law: "a clamp is positive and finite",
            columns: 0,
            detail: format!("max_gradient is {limit}"),
        }),
        _ => Ok(()),
    }
}

fn zero_columns_are_fine<R: RowRule>(rule: R) -> Result<(), LawBroken> {
    let total = rule.statistic(&[], &[]);
    if total != 0.0 {
        let detail = format!("the statistic of nothing is {total}");
        return Err(LawBroken { law: "zero columns are fine", columns: 0, detail });
    }
    let mut held = Held::new(rule, 0);
    held.step(rule, &[0], &[], Statistic { total: 1.0, dim: 8 });
    Ok(())
}

fn statistic_adds_up<R: RowRule>(rule: R, row: &[f32], grad: &[f32]) -> Result<f64, LawBroken> {
    let columns = row.len();
    let broken = |law, detail| Err(LawBroken { law, columns, detail });
    let whole = rule.statistic(row, grad);
    if !whole.is_finite() {
        return broken("the statistic is finite", format!("{whole}"));
    }
    let again = rule.statistic(row, grad);
    if whole.to_bits() != again.to_bits() {
        return broken("the statistic is repeatable", format!("{whole:e}, then {again:e}"));
    }
    for cut in cuts(columns) {
        let (mut sum, mut at, mut size) = (0.0, 0, 0.0);
        for width in cut.iter().copied() {
            let part = rule.statistic(&row[at..at + width], &grad[at..at + width]);
            sum += part;
            size += part.abs();
            at += width;
        }
        if (whole - sum).abs() > 1e-12 * size {
            let detail = format!("cut {cut:?}: {sum:e}, whole {whole:e}");
            return broken("the statistic adds up over column cuts", detail);
        }
    }
    Ok(whole)
}

fn statistic_is_used_as_said<R: RowRule>(
    rule: R,
    before: &Held,
    grad: &[f32],
    statistic: Statistic,
) -> Result<(), LawBroken> {
    if rule.uses_statistic() {
        return Ok(());
    }
    let columns = grad.len();
    let (mut with, mut without) = (before.clone(), before.clone());
    with.step(rule, &[columns], grad, statistic);
    without.step(rule, &[columns], grad, Statistic { total: f64::NAN, ..statistic });
    with.same_bits(&without, "an unused statistic is ignored", &[columns])
}

fn cuts_step_like_the_whole<R: RowRule>(
    rule: R,
    before: &Held,
    grad: &[f32],
    statistic: Statistic,
) -> Result<(), LawBroken> {
    if rule.needs_whole_row() {
        return Ok(());
    }
    let columns = grad.len();
    let mut whole = before.clone();
    whole.step(rule, &[columns], grad, statistic);
    for cut in cuts(columns) {
        let mut parts = before.clone();
        parts.step(rule, &cut, grad, statistic);
        whole.same_bits(&parts, "column cuts step like the whole row", &cut)?;
    }
    Ok(())
}

/// Widths of column cuts: halves, one column apart, thirds.
fn cuts(columns: usize) -> Vec<Vec<usize>> {
    let third = columns / 3;
    [
        vec![columns / 2, columns - columns / 2],
        vec![1, columns - 1],
        vec![third, third, columns - 2 * third],
    ]
    .into()
}

/// One row with its state.
#[derive(Clone, Debug)]
struct Held {
    row: Vec<f32>,
    row_state: Vec<f32>,
    /// `[element slots, columns]`.
    element_state: Vec<f32>,
}

impl Held {
    fn new<R: RowRule>(rule: R, columns: usize) -> Self {
        Self {
            row: noise(0, columns, 1.0),
            row_state: vec![0.0; row_slots(rule.slots())],
            element_state: vec![0.0; element_slots(rule.slots()) * columns],
        }
    }

    /// Steps cut by cut, as owners that each hold some columns and a copy of the row state.
    fn step<R: RowRule>(&mut self, rule: R, cut: &[usize], grad: &[f32], statistic: Statistic) {
        let columns = self.row.len();
        let row_before = self.row_state.clone();
        let mut at = 0;
        for &width in cut {
            self.row_state.clone_from(&row_before);
            let slots = self.element_state.len().checked_div(columns).unwrap_or(0);
            let slot = |k: usize| k * columns + at..k * columns + at + width;
            let mut element: Vec<f32> =
                (0..slots).flat_map(|k| self.element_state[slot(k)].to_vec()).collect();
            let state = RowState { row: &mut self.row_state, element: &mut element };
            rule.step(&mut self.row[at..at + width], state, &grad[at..at + width], statistic);
            for k in 0..slots {
                self.element_state[slot(k)].copy_from_slice(&element[k * width..(k + 1) * width]);
            }
            at += width;
        }
    }

    fn all(&self) -> impl Iterator<Item = f32> {
        self.row.iter().chain(&self.row_state).chain(&self.element_state).copied()
    }

    fn same_bits(&self, other: &Self, law: &'static str, cut: &[usize]) -> Result<(), LawBroken> {
        match self.all().zip(other.all()).position(|(a, b)| a.to_bits() != b.to_bits()) {
            None => Ok(()),
            Some(at) => Err(LawBroken {
                law,
                columns: self.row.len(),
                detail: format!("cut {cut:?}, value {at} of weights and state"),
            }),
        }
    }
}

/// Values in `[-scale, scale)` from a fixed linear congruential sequence (Knuth's MMIX constants).
fn noise(seed: u64, length: usize, scale: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ length as u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            scale * ((state >> 40) as f32 / (1 << 23) as f32 - 1.0)
        })
        .collect()
}
