//! Rows of the dense operations, and how they are shared out to threads.

use crate::Mat;
pub(crate) use crate::shape::{inside, mat, names, same};

/// Row `i` of a matrix that was checked.
#[inline(always)]
pub(crate) fn row<'a>(mat: &Mat<&'a [f32]>, i: usize) -> &'a [f32] {
    if mat.cols == 0 { &[] } else { &mat.data[i * mat.stride..][..mat.cols] }
}

/// Row `i` of a matrix that was checked, to be written.
#[inline(always)]
pub(crate) fn row_mut<'a>(mat: &'a mut Mat<&mut [f32]>, i: usize) -> &'a mut [f32] {
    if mat.cols == 0 { &mut [] } else { &mut mat.data[i * mat.stride..][..mat.cols] }
}

/// Splits a matrix before row `at`.
pub(crate) fn split(mat: Mat<&mut [f32]>, at: usize) -> (Mat<&mut [f32]>, Mat<&mut [f32]>) {
    let Mat { data, rows, cols, stride } = mat;
    let middle = (at * stride).min(data.len());
    let (head, tail) = data.split_at_mut(middle);
    (Mat::with_stride(head, at, cols, stride), Mat::with_stride(tail, rows - at, cols, stride))
}

/// The same matrix, borrowed for a shorter time.
pub(crate) fn reborrow<'a>(mat: &'a mut Mat<&mut [f32]>) -> Mat<&'a mut [f32]> {
    Mat::with_stride(&mut *mat.data, mat.rows, mat.cols, mat.stride)
}

/// Runs `work(first row, rows)` on parts of `out`, one a thread, whose boundaries are multiples of
/// `grain` rows. Where the boundaries are depends on the number of threads, so `work` must give a
/// row the same bits in any part.
pub(crate) fn over_rows(
    threads: usize,
    grain: usize,
    out: Mat<&mut [f32]>,
    work: &(impl Fn(usize, Mat<&mut [f32]>) + Sync),
) {
    fn part(
        first: usize,
        parts: usize,
        grain: usize,
        out: Mat<&mut [f32]>,
        work: &(impl Fn(usize, Mat<&mut [f32]>) + Sync),
    ) {
        let grains = out.rows.div_ceil(grain);
        let left = parts / 2;
        let at = (grains * left / parts.max(1) * grain).min(out.rows);
        if parts <= 1 || grains <= 1 {
            work(first, out);
        } else if at == 0 {
            part(first, parts - left, grain, out, work);
        } else {
            let (head, tail) = split(out, at);
            rayon::join(
                || part(first, left, grain, head, work),
                || part(first + at, parts - left, grain, tail, work),
            );
        }
    }
    part(0, threads, grain, out, work);
}

/// As [`over_rows`], over two matrices of the same number of rows.
pub(crate) fn over_rows2(
    threads: usize,
    a: Mat<&mut [f32]>,
    b: Mat<&mut [f32]>,
    work: &(impl Fn(usize, Mat<&mut [f32]>, Mat<&mut [f32]>) + Sync),
) {
    fn part(
        first: usize,
        parts: usize,
        a: Mat<&mut [f32]>,
        b: Mat<&mut [f32]>,
        work: &(impl Fn(usize, Mat<&mut [f32]>, Mat<&mut [f32]>) + Sync),
    ) {
        if parts <= 1 || a.rows <= 1 {
            return work(first, a, b);
        }
        let left = parts / 2;
        let at = a.rows * left / parts;
        let (a0, a1) = split(a, at);
        let (b0, b1) = split(b, at);
        rayon::join(
            || part(first, left, a0, b0, work),
            || part(first + at, parts - left, a1, b1, work),
        );
    }
    part(0, threads, a, b, work);
}
