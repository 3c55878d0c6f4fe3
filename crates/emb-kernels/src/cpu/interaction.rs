//! Pairwise dot interaction.
use crate::{Mat, PairOrder, Result};

fn pairs(features: usize, order: PairOrder) -> Vec<(usize, usize)> {
    let all = (0..features).flat_map(|i| (0..features).map(move |j| (i, j)));
    all.filter(|(i, j)| if order == PairOrder::Lower { j < i } else { i < j }).collect()
}

pub(crate) fn interact(
    _threads: usize,
    x: Mat<&[f32]>,
    features: usize,
    out: Mat<&mut [f32]>,
    order: PairOrder,
) -> Result<()> {
    let dim = x.cols / features;
    for b in 0..x.rows {
        let row = &x.data[b * x.stride..][..x.cols];
        let to = &mut out.data[b * out.stride..][..out.cols];
        to[..dim].copy_from_slice(&row[..dim]);
        for (p, (i, j)) in pairs(features, order).into_iter().enumerate() {
            to[dim + p] = (0..dim).map(|c| row[i * dim + c] * row[j * dim + c]).sum();
        }
    }
    Ok(())
}

pub(crate) fn interact_backward(
    _threads: usize,
    x: Mat<&[f32]>,
    features: usize,
    gradient: Mat<&[f32]>,
    x_gradient: Mat<&mut [f32]>,
    order: PairOrder,
) -> Result<()> {
    let dim = x.cols / features;
    for b in 0..x.rows {
        let row = &x.data[b * x.stride..][..x.cols];
        let g = &gradient.data[b * gradient.stride..][..gradient.cols];
        let to = &mut x_gradient.data[b * x_gradient.stride..][..x.cols];
        to.fill(0.0);
        to[..dim].copy_from_slice(&g[..dim]);
        for (p, (i, j)) in pairs(features, order).into_iter().enumerate() {
            for c in 0..dim {
                to[i * dim + c] += g[dim + p] * row[j * dim + c];
                to[j * dim + c] += g[dim + p] * row[i * dim + c];
            }
        }
    }
    Ok(())
}
