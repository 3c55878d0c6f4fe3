//! Matrix products.
use crate::{Accumulate, Mat, Result, Transpose};

pub(crate) fn gemm(
    _threads: usize,
    a: Mat<&[f32]>,
    ta: Transpose,
    b: Mat<&[f32]>,
    tb: Transpose,
    acc: Accumulate,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    let inner = if ta == Transpose::No { a.cols } else { a.rows };
    for i in 0..out.rows {
        for j in 0..out.cols {
            let mut sum = 0.0;
            for k in 0..inner {
                let x = if ta == Transpose::No {
                    a.data[i * a.stride + k]
                } else {
                    a.data[k * a.stride + i]
                };
                let y = if tb == Transpose::No {
                    b.data[k * b.stride + j]
                } else {
                    b.data[j * b.stride + k]
                };
                sum += x * y;
            }
            let to = &mut out.data[i * out.stride + j];
            *to = if acc == Accumulate::Add { *to + sum } else { sum };
        }
    }
    Ok(())
}
