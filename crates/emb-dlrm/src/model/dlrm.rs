//! The whole model over one backend: [`Dlrm`].

use super::DeviceBatch;
use super::cross::CrossNet;
use super::dense::{Dense, Layout};
use super::mlp::Mlp;
use super::scratch::{Operand, Place, Scratch};
use crate::{EmbeddingBags, Embeddings, Error, Result};
use emb_kernels::{Activation, Backend, Mat, PairOrder};
use emb_optim::DenseOptimizer;
use std::ops::Range;

/// How the bottom output and the pooled features meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interaction {
    /// Pairwise dot products (DLRM, arXiv 1906.00091); all features have the same dim.
    Dot(PairOrder),
    /// Low-rank cross layers (DLRM-DCNv2, arXiv 2008.13535); dims may differ.
    Cross {
        /// Number of layers.
        layers: usize,
        /// Columns of `V x`.
        rank: usize,
    },
}

/// Sizes of the dense part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns of dense features.
    pub dense_columns: usize,
    /// Outputs of the bottom MLP's layers; the last is the dim of the first interaction vector.
    pub bottom: Vec<usize>,
    /// Outputs of the top MLP's hidden layers; a last layer of one logit follows.
    pub top: Vec<usize>,
    /// How features interact.
    pub interaction: Interaction,
}

/// A DLRM with its parameters, tables and activation buffers on one backend; the tables may be over
/// many ranks, each of which then has such a model.
#[derive(Debug)]
pub struct Dlrm<B: Backend, E = EmbeddingBags<B>> {
    /// Weights, gradients and state of the dense part.
    pub dense: Dense<B>,
    /// The embedding tables.
    pub embeddings: E,
    bottom: Mlp<B>,
    /// The cross network; `None` for dot interaction.
    cross: Option<CrossNet<B>>,
    pair_order: PairOrder,
    top: Mlp<B>,
    /// Where the gradients of the bottom MLP, the cross network and the top MLP lie.
    parts: [Range<usize>; 3],
    /// Vectors that interact (bottom output first).
    vectors: usize,
    /// Columns of the interaction's output for dot interaction.
    dot_columns: usize,
    x: Scratch<B>,
    x_gradient: Scratch<B>,
    z: Scratch<B>,
    z_gradient: Scratch<B>,
    logits: Scratch<B>,
    logit_gradient: Scratch<B>,
}

impl<B: Backend, E: Embeddings<B>> Dlrm<B, E> {
    /// Builds the model around existing tables, whose map leaves `bottom.last()` columns free.
    ///
    /// # Errors
    /// Sizes that do not fit: no bottom layer, a size of 0, a first column of the map other than
    /// the bottom's output, dims that differ under dot interaction (by feature).
    pub fn new(
        backend: &mut B,
        shape: &Shape,
        embeddings: E,
        optimizer: &DenseOptimizer,
        seed: u64,
    ) -> Result<Self> {
        let dim = check(shape, &embeddings)?;
        let vectors = 1 + embeddings.map().features().len();
        let width = embeddings.map().width();
        let mut layout = Layout::default();
        let sizes: Vec<usize> =
            [shape.dense_columns].iter().chain(&shape.bottom).copied().collect();
        let bottom = Mlp::new(backend, &mut layout, "bottom", &sizes, Activation::Relu)?;
        let bottom_end = layout.total();
        let dot_columns = dim + vectors * (vectors - 1) / 2;
        let (cross, pair_order, top_inputs) = match shape.interaction {
            Interaction::Dot(order) => (None, order, dot_columns),
            Interaction::Cross { layers, rank } => {
                let net = CrossNet::new(backend, &mut layout, width, layers, rank)?;
                (Some(net), PairOrder::Upper, width)
            }
        };
        let cross_end = layout.total();
        let sizes: Vec<usize> =
            [top_inputs].iter().chain(&shape.top).chain(&[1]).copied().collect();
        let top = Mlp::new(backend, &mut layout, "top", &sizes, Activation::Linear)?;
        let parts = [0..bottom_end, bottom_end..cross_end, cross_end..layout.total()];
        let initial_state: Vec<f32> = optimizer
            .optimizer()
            .slots()
            .iter()
            .map(|&slot| optimizer.optimizer().initial_state(slot))
            .collect();
        Ok(Self {
            dense: Dense::new(backend, layout, &initial_state, seed)?,
            embeddings,
            bottom,
            cross,
            pair_order,
            top,
            parts,
            vectors,
            dot_columns,
            x: Scratch::new(backend)?,
            x_gradient: Scratch::new(backend)?,
            z: Scratch::new(backend)?,
            z_gradient: Scratch::new(backend)?,
            logits: Scratch::new(backend)?,
            logit_gradient: Scratch::new(backend)?,
        })
    }

    /// Computes the logits of a batch, `[rows]`.
    ///
    /// # Errors
    /// An id outside its table, by name.
    pub fn forward(&mut self, backend: &mut B, batch: &DeviceBatch<B>) -> Result<()> {
        self.forward_tables(backend, batch)?;
        self.forward_dense(backend, batch)
    }

    /// The first half of [`forward`](Self::forward): the pooled bags.
    ///
    /// # Errors
    /// An id outside its table, by name.
    pub fn forward_tables(&mut self, backend: &mut B, batch: &DeviceBatch<B>) -> Result<()> {
        let (rows, width) = (batch.rows(), self.embeddings.map().width());
        self.x.reserve(backend, rows * width)?;
        let out = Place::dense(rows, width).of_mut::<B>(self.x.buffer_mut());
        self.embeddings.forward(backend, batch, out)
    }

    /// The second half of [`forward`](Self::forward): everything else.
    ///
    /// # Errors
    /// The device failed.
    pub fn forward_dense(&mut self, backend: &mut B, batch: &DeviceBatch<B>) -> Result<()> {
        let (rows, width) = (batch.rows(), self.embeddings.map().width());
        if rows == 0 {
            // A rank without samples: only the tables have work, for those of its peers.
            return Ok(());
        }
        let wide = Place::dense(rows, width);
        self.logits.reserve(backend, rows)?;
        let place = Place::leading(rows, self.bottom.outputs(), width);
        self.bottom.forward(backend, &self.dense, batch.dense(), self.x.buffer_mut(), place)?;
        let x = Operand::new(self.x.buffer(), wide);
        let logits = Place::dense(rows, 1);
        if let Some(cross) = &mut self.cross {
            cross.forward(backend, &self.dense, x)?;
            let z = cross.output(x);
            return self.top.forward(backend, &self.dense, z, self.logits.buffer_mut(), logits);
        }
        self.z.reserve(backend, rows * self.dot_columns)?;
        let narrow = Place::dense(rows, self.dot_columns);
        let out = narrow.of_mut::<B>(self.z.buffer_mut());
        backend.interact(x.mat(), self.vectors, out, self.pair_order)?;
        let z = Operand::new(self.z.buffer(), narrow);
        self.top.forward(backend, &self.dense, z, self.logits.buffer_mut(), logits)
    }

    /// Logits of the last [`forward`](Self::forward), `[rows]`.
    pub fn logits(&self, rows: usize) -> B::View<'_, f32> {
        B::view(self.logits.buffer(), 0..rows)
    }

    /// Sum of the losses of the last [`forward`](Self::forward) in `f64`; keeps the gradient of
    /// the logits, times `scale`, for [`backward`](Self::backward).
    ///
    /// # Errors
    /// The device failed.
    pub fn loss(&mut self, backend: &mut B, batch: &DeviceBatch<B>, scale: f32) -> Result<f64> {
        let rows = batch.rows();
        if rows == 0 {
            return Ok(0.0);
        }
        self.logit_gradient.reserve(backend, rows)?;
        Ok(backend.bce_with_logits(
            B::view(self.logits.buffer(), 0..rows),
            batch.labels(),
            scale,
            B::view_mut(self.logit_gradient.buffer_mut(), 0..rows),
        )?)
    }

    /// Backward through the dense part: fills `dense.gradients` and the gradient of `x`, which
    /// [`update_tables`](Self::update_tables) reads.
    ///
    /// # Errors
    /// The device failed.
    pub fn backward(&mut self, backend: &mut B, batch: &DeviceBatch<B>) -> Result<()> {
        self.backward_to_tables(backend, batch, |_, _, _| Ok(()))?;
        self.backward_bottom(backend, batch, |_, _, _| Ok(()))
    }

    /// The first part of [`backward`](Self::backward), up to the gradients of the tables; tells `ready`
    /// of every part of `dense.gradients` as soon as it is final: the top MLP's, and the cross
    /// network's where there is one. The order is the same on every rank.
    ///
    /// # Errors
    /// The device failed, or `ready` did.
    pub fn backward_to_tables(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        mut ready: impl FnMut(&mut B, &Dense<B>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (rows, width) = (batch.rows(), self.embeddings.map().width());
        let wide = Place::dense(rows, width);
        self.x_gradient.reserve(backend, rows * width)?;
        if rows == 0 {
            let total = self.dense.total();
            let gradients = B::view_mut(&mut self.dense.gradients, 0..total);
            backend.fill(Mat::new(gradients, 1, total), 0.0)?;
            let mut parts = self.parts[1..].iter().rev().filter(|part| !part.is_empty());
            return parts.try_for_each(|part| ready(backend, &self.dense, part.clone()));
        }
        let logits = Place::dense(rows, 1);
        let y = (self.logits.buffer(), logits);
        let gradient = (self.logit_gradient.buffer_mut(), logits);
        let x = Operand::new(self.x.buffer(), wide);
        if let Some(cross) = &mut self.cross {
            cross.reserve_gradient(backend, rows)?;
            let (z, chain) = cross.output_and_gradient(x);
            self.top.backward(backend, &mut self.dense, z, y, gradient, Some((chain, wide)))?;
            ready(backend, &self.dense, self.parts[2].clone())?;
            cross.backward(backend, &mut self.dense, x, self.x_gradient.buffer_mut(), wide)?;
            ready(backend, &self.dense, self.parts[1].clone())
        } else {
            self.z_gradient.reserve(backend, rows * self.dot_columns)?;
            let narrow = Place::dense(rows, self.dot_columns);
            let z = Operand::new(self.z.buffer(), narrow);
            let z_gradient = Some((self.z_gradient.buffer_mut(), narrow));
            self.top.backward(backend, &mut self.dense, z, y, gradient, z_gradient)?;
            ready(backend, &self.dense, self.parts[2].clone())?;
            Ok(backend.interact_backward(
                x.mat(),
                self.vectors,
                narrow.of::<B>(self.z_gradient.buffer()),
                wide.of_mut::<B>(self.x_gradient.buffer_mut()),
                self.pair_order,
            )?)
        }
    }

    /// The rest of [`backward`](Self::backward): the bottom MLP, whose part of `dense.gradients` is
    /// then told to `ready`.
    ///
    /// # Errors
    /// The device failed, or `ready` did.
    pub fn backward_bottom(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        mut ready: impl FnMut(&mut B, &Dense<B>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (rows, width) = (batch.rows(), self.embeddings.map().width());
        if rows > 0 {
            let place = Place::leading(rows, self.bottom.outputs(), width);
            let y = (self.x.buffer(), place);
            let gradient = (self.x_gradient.buffer_mut(), place);
            self.bottom.backward(backend, &mut self.dense, batch.dense(), y, gradient, None)?;
        }
        ready(backend, &self.dense, self.parts[0].clone())
    }

    /// Applies each table's rule to its touched rows.
    ///
    /// # Errors
    /// The device failed.
    pub fn update_tables(
        &mut self,
        backend: &mut B,
        batch: &DeviceBatch<B>,
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let wide = Place::dense(batch.rows(), self.embeddings.map().width());
        let gradient = wide.of::<B>(self.x_gradient.buffer());
        self.embeddings.backward(backend, batch, gradient, factor, step)
    }

    /// The vectors that interacted in the last [`forward`](Self::forward): bottom output, then
    /// the pooled features, `[rows, width]`.
    pub fn vectors(&self, rows: usize) -> Mat<B::View<'_, f32>> {
        Place::dense(rows, self.embeddings.map().width()).of::<B>(self.x.buffer())
    }
}

/// Refuses shapes that do not fit; returns the dim of the bottom's output.
fn check<B: Backend, E: Embeddings<B>>(shape: &Shape, embeddings: &E) -> Result<usize> {
    let map = embeddings.map();
    let Some(&dim) = shape.bottom.last() else {
        return Err(Error::Config("the bottom MLP has no layers".into()));
    };
    let rank = match shape.interaction {
        Interaction::Cross { rank, .. } => rank,
        Interaction::Dot(_) => 1,
    };
    let sizes = shape.bottom.iter().chain(&shape.top).chain([&rank, &shape.dense_columns]);
    if sizes.into_iter().any(|&size| size == 0) {
        return Err(Error::Config(format!("a layer of size 0 in {shape:?}")));
    }
    let pooled: usize = (0..map.features().len()).map(|f| map.dim(f)).sum();
    if map.width() != dim + pooled {
        return Err(Error::Config(format!(
            "the model needs every feature pooled and {dim} free columns before them, \
             the map has {} columns for {pooled} pooled ones",
            map.width()
        )));
    }
    if let Interaction::Dot(_) = shape.interaction {
        for (f, feature) in map.features().iter().enumerate() {
            if map.dim(f) != dim {
                return Err(Error::Config(format!(
                    "dot interaction needs one dim: feature {:?} has {}, the bottom MLP's output {dim} \
                     (model dlrm-dcn takes different dims)",
                    feature.name,
                    map.dim(f)
                )));
            }
        }
    }
    Ok(dim)
}
