//! What the GPU reaches without us: copies, and products of the vendor's library.

use crate::Result;
use crate::clock::Clock;
use crate::report::Report;
use crate::sizes::Sizes;
use emb_cuda::Device;
use emb_kernels::{Accumulate, Backend, Cuda, CudaOptions, Mat, Precision, Transpose};

/// Bandwidth of a copy inside the device's memory; lookups and updates are compared with it.
pub(crate) fn copies(
    device: &Device,
    sizes: &Sizes,
    clock: &mut Clock,
    report: &mut Report,
) -> Result<()> {
    let stream = device.stream()?;
    let from = stream.zeros::<u8>(sizes.copy)?;
    let mut to = stream.zeros::<u8>(sizes.copy)?;
    let all = 0..sizes.copy;
    let seconds = clock.median(stream.clone(), || {
        Ok(stream.copy(from.view(all.clone()), to.view_mut(all.clone()))?)
    })?;
    report.copy(seconds, 2 * sizes.copy as u64);
    Ok(())
}

/// Rate of square products in every precision.
pub(crate) fn products(
    device: &Device,
    sizes: &Sizes,
    clock: &mut Clock,
    report: &mut Report,
) -> Result<()> {
    let n = sizes.product;
    for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
        let mut cuda = Cuda::new(device, CudaOptions::default().with_precision(precision))?;
        let (a, b) = (cuda.zeros::<f32>(n * n)?, cuda.zeros::<f32>(n * n)?);
        let mut out = cuda.zeros::<f32>(n * n)?;
        let stream = cuda.stream().clone();
        let seconds = clock.median(stream, || {
            let (a, b) = (Mat::new(a.view(0..n * n), n, n), Mat::new(b.view(0..n * n), n, n));
            let out = Mat::new(out.view_mut(0..n * n), n, n);
            Ok(cuda.gemm(a, Transpose::No, b, Transpose::No, Accumulate::Replace, out)?)
        })?;
        report.product(
            format!("product of {n} x {n}, {precision:?}"),
            seconds,
            2 * (n as u64).pow(3),
        );
    }
    Ok(())
}
