//! Binary cross-entropy with logits.
use crate::Result;

pub(crate) fn bce_with_logits(
    logits: &[f32],
    labels: &[f32],
    scale: f32,
    gradient: &mut [f32],
) -> Result<f64> {
    let mut sum = 0.0;
    for ((&z, &y), g) in logits.iter().zip(labels).zip(gradient) {
        let z = f64::from(z);
        sum += z.max(0.0) - z * f64::from(y) + (-z.abs()).exp().ln_1p();
        *g = (1.0 / (1.0 + (-z).exp()) - f64::from(y)) as f32 * scale;
    }
    Ok(sum)
}
