//! Sums and copies of rows of one width.

use crate::Mat;
use crate::cpu::detect::{Instructions, Kernel, dispatch, prefetch};

/// Rows between a prefetch and its use: 4 KiB ahead with 64 columns, in the range where lookups of
/// tables saw no difference (`cpu/pool.rs`).
pub(super) const DISTANCE: usize = 16;

/// `to += from`, element by element.
///
/// # Panics
/// Lengths that differ.
pub fn add(to: &mut [f32], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "elements to add");
    dispatch(Instructions::detect(), AddKernel { to, from });
}

struct AddKernel<'a> {
    to: &'a mut [f32],
    from: &'a [f32],
}

impl Kernel for AddKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        add_mapped(self.to, self.from, |from| from);
    }
}

/// `to += map(from)`; lengths are equal.
///
/// Usual widths are one piece of straight code: a loop over short pieces is compiled to gathers.
#[inline(always)]
pub(super) fn add_mapped(to: &mut [f32], from: &[f32], map: impl Fn(f32) -> f32) {
    if !(add_exactly::<64>(to, from, &map)
        || add_exactly::<32>(to, from, &map)
        || add_exactly::<16>(to, from, &map))
    {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to += map(from));
    }
}

/// As there, if there are `N` elements; else nothing. Says which.
#[inline(always)]
fn add_exactly<const N: usize>(to: &mut [f32], from: &[f32], map: &impl Fn(f32) -> f32) -> bool {
    let (Ok(to), Ok(from)) = (<&mut [f32; N]>::try_from(to), <&[f32; N]>::try_from(from)) else {
        return false;
    };
    // All is read before anything is written: the compiler can't tell that the two don't overlap.
    let (mut sum, from) = (*to, *from);
    sum.iter_mut().zip(from).for_each(|(sum, from)| *sum += map(from));
    *to = sum;
    true
}

/// `sums[numbers[k]] += rows[k]` for `k` ascending, `sums` being rows of the same width one after
/// the other.
///
/// # Panics
/// Another count of rows than numbers; a number of no row.
pub fn add_rows(rows: Mat<&[f32]>, numbers: &[u32], sums: &mut [f32]) {
    assert_eq!(rows.rows, numbers.len(), "numbers of rows");
    dispatch(Instructions::detect(), AddRowsKernel { rows, numbers, sums });
}

struct AddRowsKernel<'a> {
    rows: Mat<&'a [f32]>,
    numbers: &'a [u32],
    sums: &'a mut [f32],
}

impl Kernel for AddRowsKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, numbers, sums } = self;
        let width = rows.cols;
        for (k, &number) in numbers.iter().enumerate() {
            if let Some(&next) = numbers.get(k + DISTANCE) {
                prefetch(&sums[next as usize * width..][..width]);
            }
            let to = &mut sums[number as usize * width..][..width];
            add_mapped(to, &rows.data[k * rows.stride..][..width], |from| from);
        }
    }
}

/// Appends rows `numbers` of `rows` to `out`; `rows` are of `width` elements, one after the other.
///
/// # Panics
/// A number of no row.
pub fn copy_rows(rows: &[f32], width: usize, numbers: &[u32], out: &mut Vec<f32>) {
    dispatch(Instructions::detect(), CopyKernel { rows, width, numbers, out });
}

struct CopyKernel<'a> {
    rows: &'a [f32],
    width: usize,
    numbers: &'a [u32],
    out: &'a mut Vec<f32>,
}

impl Kernel for CopyKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, width, numbers, out } = self;
        out.reserve(numbers.len() * width);
        for (k, &number) in numbers.iter().enumerate() {
            if let Some(&next) = numbers.get(k + DISTANCE) {
                prefetch(&rows[next as usize * width..][..width]);
            }
            out.extend_from_slice(&rows[number as usize * width..][..width]);
        }
    }
}
