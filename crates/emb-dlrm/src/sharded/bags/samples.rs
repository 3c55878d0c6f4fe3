//! Columns of sources and rows of the output: [`assemble`], and [`cut`], its way back.

use super::portions::Owned;
use emb_kernels::host::add;

/// Puts the columns of all sources in their places, sample by sample: parts of bags are added in
/// the order of sources, to what `output` has. `sums` is `[batch, columns]` of each source.
pub(super) fn assemble(
    sources: &[Owned],
    sums: &[f32],
    (batch, width): (usize, usize),
    output: &mut [f32],
) {
    for b in 0..batch {
        let output = &mut output[b * width..(b + 1) * width];
        let mut start = 0;
        for source in sources {
            let row = &sums[start + b * source.width..][..source.width];
            start += batch * source.width;
            for portion in &source.runs {
                let from = &row[portion.column..][..portion.width];
                let to = &mut output[portion.output..][..portion.width];
                if portion.whole {
                    to.copy_from_slice(from);
                } else {
                    add(to, from);
                }
            }
        }
    }
}

/// For every source `[batch, its columns]` of the gradient: divided where bags are means of parts,
/// times what its table asks for.
pub(super) fn cut(
    sources: &[Owned],
    gradient: &[f32],
    divisors: &[f32],
    (batch, width): (usize, usize),
    parts: &mut Vec<f32>,
) {
    let columns: usize = sources.iter().map(|source| source.width).sum();
    // Every element is written below.
    parts.resize(batch * columns, 0.0);
    for b in 0..batch {
        let gradient = &gradient[b * width..(b + 1) * width];
        let mut start = 0;
        for source in sources {
            let row = &mut parts[start + b * source.width..][..source.width];
            start += batch * source.width;
            for portion in &source.runs {
                let from = &gradient[portion.output..][..portion.width];
                let to = &mut row[portion.column..][..portion.width];
                let mut scale = portion.scale;
                if portion.divide {
                    let divisor = divisors[portion.feature * batch + b];
                    scale = if divisor == 0.0 { 0.0 } else { scale / divisor };
                }
                if scale.to_bits() == 1.0_f32.to_bits() {
                    to.copy_from_slice(from);
                } else {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from * scale);
                }
            }
        }
    }
}
