//! Update rules over dense parameters: kernels of `cuda/dense_update.cu`.

use super::Cuda;
use super::pointwise::over_elements;
use crate::shape::same;
use crate::{Error, Result};
use emb_cuda::{Plain, View, ViewMut};
use emb_optim::{Extent, Rule};

/// The rule's `max_gradient` bounds gradients of bags before they are summed and does not apply
/// here, as on the CPU.
pub(super) fn dense_update(
    cuda: &mut Cuda,
    rule: &Rule,
    parameter: ViewMut<'_, f32>,
    state: ViewMut<'_, f32>,
    gradient: View<'_, f32>,
) -> Result<()> {
    let slots = rule.slots();
    let refused = |why: String| Err(Error::NotAvailable("dense update", why));
    if let Some(slot) = slots.iter().find(|slot| slot.extent == Extent::Row) {
        let name = slot.name;
        return refused(format!("the rule keeps one {name:?} a row, a parameter has no rows"));
    }
    if rule.needs_whole_row() {
        return refused("the rule needs whole rows (as max_norm does)".to_owned());
    }
    let len = parameter.len();
    same("dense_update", "elements of gradient", len, gradient.len())?;
    same("dense_update", "elements of state", slots.len() * len, state.len())?;
    if len == 0 {
        return Ok(());
    }
    let device = cuda.stream.device();
    let shape = over_elements(1, len);
    let rest = (slots.len() as u32, parameter, state, gradient, len as u64);
    // No norm is limited, by the refusal above.
    let longest = f32::INFINITY;
    match *rule {
        Rule::Sgd(rule) => {
            let rule = Plain([rule.lr, rule.keep, longest]);
            let kernel = device.kernel("emb_dense_update_sgd")?;
            let args = (rule, rest.0, rest.1, rest.2, rest.3, rest.4);
            // SAFETY: the rule as `Sgd` of rules.cuh, and vectors of the lengths checked above.
            unsafe { cuda.stream.launch(kernel, shape, args) }?;
        }
        Rule::AdaGrad(rule) => {
            let numbers = [rule.lr, rule.eps, rule.l2, rule.keep, rule.square_scale, longest];
            let [lr, eps, l2, keep, square_scale, longest] = numbers.map(f32::to_bits);
            let history = u32::from(rule.history);
            let rule = Plain([lr, eps, l2, keep, square_scale, longest, history]);
            let kernel = device.kernel("emb_dense_update_adagrad")?;
            let args = (rule, rest.0, rest.1, rest.2, rest.3, rest.4);
            // SAFETY: the rule as `AdaGrad` of rules.cuh, and vectors of the lengths checked above.
            unsafe { cuda.stream.launch(kernel, shape, args) }?;
        }
        Rule::Adam(rule) => {
            let (moments, ends) =
                ([rule.beta1, rule.gain1, rule.beta2, rule.gain2], [rule.eps, rule.l2, rule.keep]);
            let [beta1, gain1, beta2, gain2] = moments;
            let [eps, l2, keep] = ends;
            let (step_size, root_scale) = (rule.step_size, rule.root_scale);
            let rule =
                Plain([step_size, root_scale, beta1, gain1, beta2, gain2, eps, l2, keep, longest]);
            let kernel = device.kernel("emb_dense_update_adam")?;
            let args = (rule, rest.0, rest.1, rest.2, rest.3, rest.4);
            // SAFETY: the rule as `Adam` of rules.cuh, and vectors of the lengths checked above.
            unsafe { cuda.stream.launch(kernel, shape, args) }?;
        }
        Rule::RowWiseAdaGrad(_) | Rule::RowWiseAdam(_) => {
            return refused(format!("the rule {}", rule.kind()));
        }
    }
    Ok(())
}
