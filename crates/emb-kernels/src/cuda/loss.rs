//! Binary cross-entropy with logits: kernels of `cuda/loss.cu`.

use super::Cuda;
use crate::Result;
use crate::shape::same;
use emb_cuda::{Shape, View, ViewMut};

/// Samples of one sum, `kLossThreads` of `loss.cu`.
const THREADS: u32 = 256;

/// The sum of the losses comes back to the host: this waits for the work before it.
pub(super) fn bce_with_logits(
    cuda: &mut Cuda,
    logits: View<'_, f32>,
    labels: View<'_, f32>,
    scale: f32,
    gradient: ViewMut<'_, f32>,
) -> Result<f64> {
    same("bce_with_logits", "labels", logits.len(), labels.len())?;
    same("bce_with_logits", "elements of gradient", logits.len(), gradient.len())?;
    if logits.is_empty() {
        return Ok(0.0);
    }
    let samples = logits.len() as u64;
    let chunks = samples.div_ceil(u64::from(THREADS));
    let Cuda { stream, dense, .. } = cuda;
    let device = stream.device();
    let (first, second) = (device.kernel("emb_bce_with_logits")?, device.kernel("emb_loss_total")?);
    let len = chunks as usize + 1;
    let (mut total, mut partials) = dense.losses.room(stream, len)?.view_mut(0..len).split_at(1);
    let shape = Shape::covering(samples, THREADS, i32::MAX as u32);
    let args = (logits, labels, samples, scale, gradient, partials.reborrow());
    // SAFETY: what the kernel takes; `partials` has one for every 256 samples.
    unsafe { stream.launch(first, shape, args) }?;
    let args = (partials.as_view(), chunks, total.reborrow());
    // SAFETY: what the kernel takes; `partials` was written by the launch before.
    unsafe { stream.launch(second, Shape::new(1, THREADS), args) }?;
    let mut sum = [0.0];
    stream.download(total.as_view(), &mut sum)?;
    Ok(sum[0])
}
