//! Copies of operand blocks in the order in which the tiles read them.

use crate::Mat;
use std::cell::RefCell;

/// Depth of a block: a panel of the second operand (`KC * NR` floats, 16 KiB with AVX2) fits L1.
pub(super) const KC: usize = 256;
/// Rows of a block of the first operand: `MC * KC` floats are 96 KiB, which fits L2 even where rows
/// lie a power of two apart and so reach only a part of its sets.
pub(super) const MC: usize = 96;
/// Columns of a block of the second operand: `KC * NC` floats are 1 MiB, a part of L3.
pub(super) const NC: usize = 1024;

/// Rows that are packed together.
const ROWS: usize = 4;

/// Floats in a cache line.
const LINE: usize = 16;

thread_local! {
    static PANELS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with this thread's room for a packed `[MC, KC]` block of the first operand and a
/// `[KC, NC]` block of the second.
pub(super) fn with_panels<R>(work: impl FnOnce(&mut [f32], &mut [f32]) -> R) -> R {
    with_room(MC * KC, KC * NC, work)
}

/// Calls `work` with two pieces of this thread's scratch room, each beginning at a cache line. The
/// first call makes room for [`with_panels`]; later ones allocate only for more than that.
pub(in crate::cpu) fn with_room<R>(
    first: usize,
    second: usize,
    work: impl FnOnce(&mut [f32], &mut [f32]) -> R,
) -> R {
    let first_lines = first.next_multiple_of(LINE);
    PANELS.with_borrow_mut(|panels| {
        let need = (first_lines + second).max(MC * KC + KC * NC) + LINE;
        if panels.len() < need {
            panels.resize(need, 0.0);
        }
        let skip = panels.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let (a, b) = panels[skip..].split_at_mut(first_lines);
        work(&mut a[..first], &mut b[..second])
    })
}

/// Packs columns `first..first + cols` of rows `depth..depth + kc` of a matrix into panels
/// `[kc][W]`; the last panel is filled up with zeros. Returns how many floats they take.
pub(in crate::cpu) fn from_rows<const W: usize>(
    mat: &Mat<&[f32]>,
    (depth, kc): (usize, usize),
    (first, cols): (usize, usize),
    out: &mut [f32],
) -> usize {
    let panels = cols.div_ceil(W);
    let (out, _) = out[..panels * kc * W].as_chunks_mut::<W>();
    // A few rows at a time, so that lines of rows a power of two apart stay in L1 for all panels.
    for k0 in (0..kc).step_by(ROWS) {
        for p in 0..panels {
            let column = first + p * W;
            let width = W.min(first + cols - column);
            let to = &mut out[p * kc + k0..][..ROWS.min(kc - k0)];
            for (k, to) in to.iter_mut().enumerate() {
                let from = &mat.data[(depth + k0 + k) * mat.stride + column..];
                if width == W {
                    *to = *from.first_chunk().expect("invariant: W columns are left");
                } else {
                    to[..width].copy_from_slice(&from[..width]);
                    to[width..].fill(0.0);
                }
            }
        }
    }
    panels * kc * W
}

/// Packs rows `first..first + rows` of columns `depth..depth + kc` of a matrix, transposed, into
/// panels `[kc][W]`; the last panel is filled up with zeros. Returns how many floats they take.
pub(in crate::cpu) fn from_columns<const W: usize>(
    mat: &Mat<&[f32]>,
    (depth, kc): (usize, usize),
    (first, rows): (usize, usize),
    out: &mut [f32],
) -> usize {
    let panels = rows.div_ceil(W);
    let (out, _) = out[..panels * kc * W].as_chunks_mut::<W>();
    for (p, panel) in out.chunks_exact_mut(kc).enumerate() {
        let row = |w: usize| {
            // Rows beyond the last repeat it; what they give is thrown away.
            let row = first + (p * W + w).min(rows - 1);
            &mat.data[row * mat.stride + depth..][..kc]
        };
        let mut w = 0;
        while w + 4 <= W {
            interleave([row(w), row(w + 1), row(w + 2), row(w + 3)], panel, w);
            w += 4;
        }
        while w + 2 <= W {
            interleave([row(w), row(w + 1)], panel, w);
            w += 2;
        }
    }
    panels * kc * W
}

/// `panel[k][w..w + G] = [rows[0][k], .., rows[G - 1][k]]`, four `k` at a time.
#[inline(always)]
fn interleave<const G: usize, const W: usize>(rows: [&[f32]; G], panel: &mut [[f32; W]], w: usize) {
    let quads = rows.map(|row| row.as_chunks::<4>());
    let (to, to_rest) = panel.as_chunks_mut::<4>();
    for (q, to) in to.iter_mut().enumerate() {
        let mut from = [[0.0; 4]; 4];
        for (from, (quads, _)) in from.iter_mut().zip(&quads) {
            *from = quads[q];
        }
        for (to, column) in to.iter_mut().zip(transpose4(from)) {
            to[w..w + G].copy_from_slice(&column[..G]);
        }
    }
    for (k, to) in to_rest.iter_mut().enumerate() {
        to[w..w + G].copy_from_slice(&quads.map(|(_, rest)| rest[k]));
    }
}

/// Rows become columns.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn transpose4(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    // SAFETY: SSE belongs to every x86-64 processor.
    unsafe { transpose4_sse(rows) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse")]
fn transpose4_sse([a, b, c, d]: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    use bytemuck::cast;
    use std::arch::x86_64::{_mm_movehl_ps, _mm_movelh_ps, _mm_unpackhi_ps, _mm_unpacklo_ps};
    let (ab, cd) = (_mm_unpacklo_ps(cast(a), cast(b)), _mm_unpacklo_ps(cast(c), cast(d)));
    let (ab2, cd2) = (_mm_unpackhi_ps(cast(a), cast(b)), _mm_unpackhi_ps(cast(c), cast(d)));
    [
        cast(_mm_movelh_ps(ab, cd)),
        cast(_mm_movehl_ps(cd, ab)),
        cast(_mm_movelh_ps(ab2, cd2)),
        cast(_mm_movehl_ps(cd2, ab2)),
    ]
}

/// Rows become columns.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn transpose4(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
}
