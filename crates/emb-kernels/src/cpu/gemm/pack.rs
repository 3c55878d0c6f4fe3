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
/// `[KC, NC]` block of the second, each at a cache line; made at the thread's first call.
pub(super) fn with_panels<R>(work: impl FnOnce(&mut [f32], &mut [f32]) -> R) -> R {
    PANELS.with_borrow_mut(|panels| {
        if panels.is_empty() {
            panels.resize(MC * KC + KC * NC + LINE, 0.0);
        }
        let skip = panels.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let (a, b) = panels[skip..].split_at_mut(MC * KC);
        work(a, &mut b[..KC * NC])
    })
}

/// Packs columns `first..first + cols` of rows `depth..depth + kc` of a matrix into panels
/// `[kc][W]`; the last panel is filled up with zeros. Returns how many floats they take.
pub(super) fn from_rows<const W: usize>(
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
pub(super) fn from_columns<const W: usize>(
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
        for w in (0..W - 1).step_by(2) {
            let (a, b) = (row(w), row(w + 1));
            for ((to, &a), &b) in panel.iter_mut().zip(a).zip(b) {
                to[w] = a;
                to[w + 1] = b;
            }
        }
    }
    panels * kc * W
}
