//! The low-rank cross network of DLRM-DCNv2 (Wang et al. 2021, arXiv 2008.13535, section 3.1 with
//! the low-rank form of equation 2): `x_{l+1} = x_0 * (W_l (V_l x_l) + b_l) + x_l`.

use super::dense::{Dense, Layout};
use super::scratch::{Operand, Place, Scratch};
use crate::Result;
use emb_kernels::{Accumulate, Backend, Mat, Transpose};
use std::ops::Range;

/// One cross layer.
#[derive(Debug)]
struct Layer<B: Backend> {
    /// `V`, `[rank, width]`.
    v: Range<usize>,
    /// `W`, `[width, rank]`.
    w: Range<usize>,
    /// `[width]`.
    bias: Range<usize>,
    /// `V x_l`, `[batch, rank]`.
    low: Scratch<B>,
    /// `W (V x_l)`, `[batch, width]`.
    u: Scratch<B>,
    /// `x_{l+1}`, `[batch, width]`.
    out: Scratch<B>,
}

/// All cross layers of a model.
#[derive(Debug)]
pub(crate) struct CrossNet<B: Backend> {
    width: usize,
    rank: usize,
    layers: Vec<Layer<B>>,
    u_gradient: Scratch<B>,
    low_gradient: Scratch<B>,
    /// Gradient of `x_l` on its way down, `[batch, width]`.
    chain: Scratch<B>,
}

impl<B: Backend> CrossNet<B> {
    /// Lays out `layers` cross layers over `width` columns of rank `rank`.
    pub(crate) fn new(
        backend: &mut B,
        layout: &mut Layout,
        width: usize,
        layers: usize,
        rank: usize,
    ) -> Result<Self> {
        let deviation = (2.0 / (width + rank) as f32).sqrt();
        let mut made = Vec::with_capacity(layers);
        for l in 0..layers {
            made.push(Layer {
                v: layout.add(format!("cross.{l}.v"), &[rank, width], deviation),
                w: layout.add(format!("cross.{l}.w"), &[width, rank], deviation),
                bias: layout.add(format!("cross.{l}.bias"), &[width], 0.0),
                low: Scratch::new(backend)?,
                u: Scratch::new(backend)?,
                out: Scratch::new(backend)?,
            });
        }
        Ok(Self {
            width,
            rank,
            layers: made,
            u_gradient: Scratch::new(backend)?,
            low_gradient: Scratch::new(backend)?,
            chain: Scratch::new(backend)?,
        })
    }

    /// Runs all layers on `x0` `[batch, width]`; the result is [`output`](Self::output).
    pub(crate) fn forward(
        &mut self,
        backend: &mut B,
        dense: &Dense<B>,
        x0: Operand<'_, B>,
    ) -> Result<()> {
        let (width, rank) = (self.width, self.rank);
        let (wide, narrow) = (Place::dense(x0.rows(), width), Place::dense(x0.rows(), rank));
        for l in 0..self.layers.len() {
            let (before, after) = self.layers.split_at_mut(l);
            let x = before.last().map_or(x0, |layer| Operand::new(layer.out.buffer(), wide));
            let layer = &mut after[0];
            layer.low.reserve(backend, x0.rows() * rank)?;
            layer.u.reserve(backend, x0.rows() * width)?;
            layer.out.reserve(backend, x0.rows() * width)?;
            backend.gemm(
                x.mat(),
                Transpose::No,
                Mat::new(B::view(&dense.weights, layer.v.clone()), rank, width),
                Transpose::Yes,
                Accumulate::Replace,
                narrow.of_mut::<B>(layer.low.buffer_mut()),
            )?;
            backend.gemm(
                narrow.of::<B>(layer.low.buffer()),
                Transpose::No,
                Mat::new(B::view(&dense.weights, layer.w.clone()), width, rank),
                Transpose::Yes,
                Accumulate::Replace,
                wide.of_mut::<B>(layer.u.buffer_mut()),
            )?;
            backend.cross(
                x0.mat(),
                wide.of::<B>(layer.u.buffer()),
                B::view(&dense.weights, layer.bias.clone()),
                x.mat(),
                wide.of_mut::<B>(layer.out.buffer_mut()),
            )?;
        }
        Ok(())
    }

    /// Output of the last layer, `[batch, width]`; `x0` itself without layers.
    pub(crate) fn output<'a>(&'a self, x0: Operand<'a, B>) -> Operand<'a, B> {
        let place = Place::dense(x0.rows(), self.width);
        self.layers.last().map_or(x0, |layer| Operand::new(layer.out.buffer(), place))
    }

    /// Makes room for the gradient of [`output`](Self::output).
    pub(crate) fn reserve_gradient(&mut self, backend: &mut B, batch: usize) -> Result<()> {
        self.chain.reserve(backend, batch * self.width)
    }

    /// [`output`](Self::output) and the buffer that takes its gradient, `[batch, width]`, before
    /// [`backward`](Self::backward).
    pub(crate) fn output_and_gradient<'a>(
        &'a mut self,
        x0: Operand<'a, B>,
    ) -> (Operand<'a, B>, &'a mut B::Buffer<f32>) {
        let place = Place::dense(x0.rows(), self.width);
        let output = self.layers.last().map_or(x0, |layer| Operand::new(layer.out.buffer(), place));
        (output, self.chain.buffer_mut())
    }

    /// Backward of [`forward`](Self::forward): fills the layers' gradients in `dense` and writes
    /// the gradient of `x0` to `place` of `x0_gradient`.
    pub(crate) fn backward(
        &mut self,
        backend: &mut B,
        dense: &mut Dense<B>,
        x0: Operand<'_, B>,
        x0_gradient: &mut B::Buffer<f32>,
        place: Place,
    ) -> Result<()> {
        let (width, rank, batch) = (self.width, self.rank, x0.rows());
        let (wide, narrow) = (Place::dense(batch, width), Place::dense(batch, rank));
        self.u_gradient.reserve(backend, batch * width)?;
        self.low_gradient.reserve(backend, batch * rank)?;
        backend.fill(place.of_mut::<B>(x0_gradient), 0.0)?;
        for l in (0..self.layers.len()).rev() {
            let (before, after) = self.layers.split_at(l);
            let x = before.last().map_or(x0, |layer| Operand::new(layer.out.buffer(), wide));
            let layer = &after[0];
            backend.cross_backward(
                x0.mat(),
                wide.of::<B>(layer.u.buffer()),
                B::view(&dense.weights, layer.bias.clone()),
                wide.of::<B>(self.chain.buffer()),
                wide.of_mut::<B>(self.u_gradient.buffer_mut()),
                place.of_mut::<B>(x0_gradient),
                B::view_mut(&mut dense.gradients, layer.bias.clone()),
            )?;
            let u_gradient = wide.of::<B>(self.u_gradient.buffer());
            backend.gemm(
                u_gradient,
                Transpose::Yes,
                narrow.of::<B>(layer.low.buffer()),
                Transpose::No,
                Accumulate::Replace,
                Mat::new(B::view_mut(&mut dense.gradients, layer.w.clone()), width, rank),
            )?;
            backend.gemm(
                u_gradient,
                Transpose::No,
                Mat::new(B::view(&dense.weights, layer.w.clone()), width, rank),
                Transpose::No,
                Accumulate::Replace,
                narrow.of_mut::<B>(self.low_gradient.buffer_mut()),
            )?;
            let low_gradient = narrow.of::<B>(self.low_gradient.buffer());
            backend.gemm(
                low_gradient,
                Transpose::Yes,
                x.mat(),
                Transpose::No,
                Accumulate::Replace,
                Mat::new(B::view_mut(&mut dense.gradients, layer.v.clone()), rank, width),
            )?;
            backend.gemm(
                low_gradient,
                Transpose::No,
                Mat::new(B::view(&dense.weights, layer.v.clone()), rank, width),
                Transpose::No,
                Accumulate::Add,
                wide.of_mut::<B>(self.chain.buffer_mut()),
            )?;
        }
        backend.add(wide.of::<B>(self.chain.buffer()), place.of_mut::<B>(x0_gradient))?;
        Ok(())
    }
}
