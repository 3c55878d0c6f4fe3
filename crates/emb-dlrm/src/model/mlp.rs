//! Multi-layer perceptrons: linear layers with `ReLU` between them.

use super::dense::{Dense, Layout};
use super::scratch::{Operand, Place, Scratch};
use crate::Result;
use emb_kernels::{Accumulate, Activation, Backend, Mat, Transpose};
use std::ops::Range;

/// One linear layer `y = act(x W^T + b)`.
#[derive(Clone, Debug)]
struct Linear {
    /// `[outputs, inputs]`.
    weight: Range<usize>,
    /// `[outputs]`.
    bias: Range<usize>,
    inputs: usize,
    outputs: usize,
    activation: Activation,
}

/// A stack of linear layers; hidden outputs and their gradients are kept between steps.
#[derive(Debug)]
pub(crate) struct Mlp<B: Backend> {
    layers: Vec<Linear>,
    /// Output of every layer but the last, `[batch, outputs]`.
    hidden: Vec<Scratch<B>>,
    /// Gradients of `hidden`.
    hidden_gradients: Vec<Scratch<B>>,
}

impl<B: Backend> Mlp<B> {
    /// Lays out layers `sizes[0] -> sizes[1] -> ...` under `prefix`; weights start normal with
    /// deviation `sqrt(2 / (inputs + outputs))` (Glorot and Bengio 2010), biases at 0.
    pub(crate) fn new(
        backend: &mut B,
        layout: &mut Layout,
        prefix: &str,
        sizes: &[usize],
        last: Activation,
    ) -> Result<Self> {
        let count = sizes.len() - 1;
        let mut layers = Vec::with_capacity(count);
        for (i, pair) in sizes.windows(2).enumerate() {
            let (inputs, outputs) = (pair[0], pair[1]);
            let deviation = (2.0 / (inputs + outputs) as f32).sqrt();
            layers.push(Linear {
                weight: layout.add(format!("{prefix}.{i}.weight"), &[outputs, inputs], deviation),
                bias: layout.add(format!("{prefix}.{i}.bias"), &[outputs], 0.0),
                inputs,
                outputs,
                activation: if i + 1 == count { last } else { Activation::Relu },
            });
        }
        let mut hidden = Vec::new();
        let mut hidden_gradients = Vec::new();
        for _ in 1..count {
            hidden.push(Scratch::new(backend)?);
            hidden_gradients.push(Scratch::new(backend)?);
        }
        Ok(Self { layers, hidden, hidden_gradients })
    }

    /// Columns of the output.
    pub(crate) fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    /// `mlp(x)` for `x` `[batch, inputs]`, written to `place` of `out`.
    pub(crate) fn forward(
        &mut self,
        backend: &mut B,
        dense: &Dense<B>,
        x: Operand<'_, B>,
        out: &mut B::Buffer<f32>,
        place: Place,
    ) -> Result<()> {
        let batch = x.rows();
        let last = self.layers.len() - 1;
        for (i, layer) in self.layers.iter().enumerate() {
            let (before, after) = self.hidden.split_at_mut(i);
            let input = match before.last() {
                Some(previous) => {
                    Operand::new(previous.buffer(), Place::dense(batch, layer.inputs))
                }
                None => x,
            };
            if i == last {
                layer.forward(backend, dense, input, out, place)?;
            } else {
                after[0].reserve(backend, batch * layer.outputs)?;
                let place = Place::dense(batch, layer.outputs);
                layer.forward(backend, dense, input, after[0].buffer_mut(), place)?;
            }
        }
        Ok(())
    }

    /// Backward of [`forward`](Self::forward): fills the layers' gradients in `dense` and, where
    /// asked for, the gradient of `x`. `gradient` is of the output `y` and is masked in place.
    pub(crate) fn backward(
        &mut self,
        backend: &mut B,
        dense: &mut Dense<B>,
        x: Operand<'_, B>,
        y: (&B::Buffer<f32>, Place),
        gradient: (&mut B::Buffer<f32>, Place),
        mut x_gradient: Option<(&mut B::Buffer<f32>, Place)>,
    ) -> Result<()> {
        let batch = x.rows();
        let last = self.layers.len() - 1;
        let (top_gradient, top_place) = gradient;
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let hidden_place = Place::dense(batch, layer.outputs);
            let (below, here) = self.hidden_gradients.split_at_mut(i);
            let (output, output_place) =
                if i == last { y } else { (self.hidden[i].buffer(), hidden_place) };
            let (gradient, place) = if i == last {
                (&mut *top_gradient, top_place)
            } else {
                (here[0].buffer_mut(), hidden_place)
            };
            let input = match i {
                0 => x,
                _ => Operand::new(self.hidden[i - 1].buffer(), Place::dense(batch, layer.inputs)),
            };
            backend.bias_activation_backward(
                output_place.of::<B>(output),
                layer.activation,
                place.of_mut::<B>(gradient),
                B::view_mut(&mut dense.gradients, layer.bias.clone()),
            )?;
            let gradient = Operand::new(gradient, place);
            layer.weight_gradient(backend, dense, input, gradient)?;
            if let Some(below) = below.last_mut() {
                below.reserve(backend, batch * layer.inputs)?;
                let place = Place::dense(batch, layer.inputs);
                layer.input_gradient(backend, dense, gradient, below.buffer_mut(), place)?;
            } else if let Some((buffer, place)) = x_gradient.take() {
                layer.input_gradient(backend, dense, gradient, buffer, place)?;
            }
        }
        Ok(())
    }
}

impl Linear {
    fn weights<'a, B: Backend>(&self, dense: &'a Dense<B>) -> Mat<B::View<'a, f32>> {
        Mat::new(B::view(&dense.weights, self.weight.clone()), self.outputs, self.inputs)
    }

    fn forward<B: Backend>(
        &self,
        backend: &mut B,
        dense: &Dense<B>,
        x: Operand<'_, B>,
        out: &mut B::Buffer<f32>,
        place: Place,
    ) -> Result<()> {
        backend.gemm(
            x.mat(),
            Transpose::No,
            self.weights(dense),
            Transpose::Yes,
            Accumulate::Replace,
            place.of_mut::<B>(out),
        )?;
        let bias = B::view(&dense.weights, self.bias.clone());
        backend.bias_activation(place.of_mut::<B>(out), bias, self.activation)?;
        Ok(())
    }

    /// `dW = dY^T X`.
    fn weight_gradient<B: Backend>(
        &self,
        backend: &mut B,
        dense: &mut Dense<B>,
        x: Operand<'_, B>,
        gradient: Operand<'_, B>,
    ) -> Result<()> {
        let out = B::view_mut(&mut dense.gradients, self.weight.clone());
        backend.gemm(
            gradient.mat(),
            Transpose::Yes,
            x.mat(),
            Transpose::No,
            Accumulate::Replace,
            Mat::new(out, self.outputs, self.inputs),
        )?;
        Ok(())
    }

    /// `dX = dY W`.
    fn input_gradient<B: Backend>(
        &self,
        backend: &mut B,
        dense: &Dense<B>,
        gradient: Operand<'_, B>,
        out: &mut B::Buffer<f32>,
        place: Place,
    ) -> Result<()> {
        backend.gemm(
            gradient.mat(),
            Transpose::No,
            self.weights(dense),
            Transpose::No,
            Accumulate::Replace,
            place.of_mut::<B>(out),
        )?;
        Ok(())
    }
}
