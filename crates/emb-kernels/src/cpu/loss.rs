//! Binary cross-entropy with logits.

use super::shape::same;
use crate::Result;

#[cfg(test)]
mod tests;

/// See [`Backend::bce_with_logits`](crate::Backend::bce_with_logits). Every sample is computed in
/// `f64`; `exp(-|z|)` never overflows, so the loss is exact for every finite logit.
///
/// # Errors
/// Slices of different lengths; nothing has been written then.
pub(crate) fn bce_with_logits(
    logits: &[f32],
    labels: &[f32],
    scale: f32,
    gradient: &mut [f32],
) -> Result<f64> {
    same("bce_with_logits", "labels", logits.len(), labels.len())?;
    same("bce_with_logits", "elements of gradient", logits.len(), gradient.len())?;
    let mut total = 0.0;
    for ((&logit, &label), gradient) in logits.iter().zip(labels).zip(gradient) {
        let (z, y) = (f64::from(logit), f64::from(label));
        let small = (-z.abs()).exp();
        total += z.max(0.0) - z * y + small.ln_1p();
        let sigmoid = if z < 0.0 { small } else { 1.0 } / (1.0 + small);
        *gradient = ((sigmoid - y) * f64::from(scale)) as f32;
    }
    Ok(total)
}
