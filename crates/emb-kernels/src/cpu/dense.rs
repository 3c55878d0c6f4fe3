//! An update rule over a dense parameter.

use super::shape::same;
use crate::{Error, Result};
use emb_optim::{Extent, RowRule, RowState, Rule, RuleVisitor, Statistic};

#[cfg(test)]
mod tests;

/// The most element slots that a rule may have.
const SLOTS: usize = 4;

/// Floats of state gathered on the stack for a rule with several slots.
const GATHERED: usize = 1024;

/// Parameters below this stay on one thread.
const SERIAL: usize = 1 << 14;

/// See [`Backend::dense_update`](crate::Backend::dense_update).
///
/// The rule's `max_gradient` bounds gradients of bags before they are summed and does not apply
/// here. Nothing is fused or reordered, so results are bitwise equal for any number of threads and
/// any instruction set.
///
/// # Errors
/// A rule that needs whole rows; lengths that differ; nothing has been written then.
pub(crate) fn dense_update(
    threads: usize,
    rule: &Rule,
    parameter: &mut [f32],
    state: &mut [f32],
    gradient: &[f32],
) -> Result<()> {
    rule.visit(Update { threads, parameter, state, gradient })
}

struct Update<'a> {
    threads: usize,
    parameter: &'a mut [f32],
    state: &'a mut [f32],
    gradient: &'a [f32],
}

impl RuleVisitor for Update<'_> {
    type Output = Result<()>;

    fn visit<R: RowRule>(self, rule: R) -> Result<()> {
        let Self { threads, parameter, state, gradient } = self;
        let slots = rule.slots();
        let refused = |why: String| Err(Error::NotAvailable("dense update", why));
        if let Some(slot) = slots.iter().find(|slot| slot.extent == Extent::Row) {
            let name = slot.name;
            return refused(format!("the rule keeps one {name:?} a row, a parameter has no rows"));
        }
        if rule.uses_statistic() || rule.needs_whole_row() {
            return refused("the rule needs whole rows (as max_norm does)".to_owned());
        }
        if slots.len() > SLOTS {
            return refused(format!("a rule of {} slots, more than {SLOTS}", slots.len()));
        }
        let len = parameter.len();
        same("dense_update", "elements of gradient", len, gradient.len())?;
        same("dense_update", "elements of state", slots.len() * len, state.len())?;
        let mut state = state;
        let state: [&mut [f32]; SLOTS] = std::array::from_fn(|slot| {
            let (head, tail) =
                std::mem::take(&mut state).split_at_mut(if slot < slots.len() { len } else { 0 });
            state = tail;
            head
        });
        let threads = if len < SERIAL { 1 } else { threads };
        part(threads, rule, Part { parameter, state, slots: slots.len(), gradient });
        Ok(())
    }
}

/// Some elements of the parameter, with their part of every slot.
struct Part<'a> {
    parameter: &'a mut [f32],
    state: [&'a mut [f32]; SLOTS],
    slots: usize,
    gradient: &'a [f32],
}

impl<'a> Part<'a> {
    fn split(self, at: usize) -> (Self, Self) {
        let (parameter, parameter_tail) = self.parameter.split_at_mut(at);
        let (gradient, gradient_tail) = self.gradient.split_at(at);
        let mut tails: [&'a mut [f32]; SLOTS] = Default::default();
        let mut heads: [&'a mut [f32]; SLOTS] = Default::default();
        for ((slot, head), tail) in self.state.into_iter().zip(&mut heads).zip(&mut tails) {
            (*head, *tail) = slot.split_at_mut(at.min(slot.len()));
        }
        let slots = self.slots;
        (
            Self { parameter, state: heads, slots, gradient },
            Self { parameter: parameter_tail, state: tails, slots, gradient: gradient_tail },
        )
    }
}

fn part<R: RowRule>(threads: usize, rule: R, whole: Part<'_>) {
    if threads > 1 {
        let left = threads / 2;
        let at = whole.parameter.len() / threads * left;
        let (head, tail) = whole.split(at);
        rayon::join(|| part(left, rule, head), || part(threads - left, rule, tail));
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the feature of the function was detected just now.
        return unsafe { step_avx2(rule, whole) };
    }
    step(rule, whole);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn step_avx2<R: RowRule>(rule: R, part: Part<'_>) {
    step(rule, part);
}

#[inline(always)]
fn step<R: RowRule>(rule: R, part: Part<'_>) {
    let Part { parameter, mut state, slots, gradient } = part;
    let statistic = Statistic { total: 0.0, dim: parameter.len().max(1) };
    if slots <= 1 {
        let state = RowState { row: &mut [], element: &mut *state[0] };
        return rule.step(parameter, state, gradient, statistic);
    }
    // The rule wants the slots of what it steps side by side.
    let mut gathered = [0.0f32; GATHERED];
    let tile = GATHERED / slots;
    for (t, parameter) in parameter.chunks_mut(tile).enumerate() {
        let elements = t * tile..t * tile + parameter.len();
        let element = &mut gathered[..slots * parameter.len()];
        for (to, from) in element.chunks_exact_mut(parameter.len()).zip(&state) {
            to.copy_from_slice(&from[elements.clone()]);
        }
        let row_state = RowState { row: &mut [], element };
        rule.step(parameter, row_state, &gradient[elements.clone()], statistic);
        for (from, to) in gathered.chunks_exact(parameter.len()).zip(&mut state[..slots]) {
            to[elements.clone()].copy_from_slice(from);
        }
    }
}
