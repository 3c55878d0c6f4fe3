//! Gradients to the owners.

use super::columns::Direction;
use super::error::{Error, Result};
use super::layout::Layout;
use super::pool::Pooled;
use super::trip::Trip;
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::Backend;

impl<B: Backend> Pooled<B> {
    /// Sends the gradient of the output to the owners, who update every touched row once; then
    /// makes replicas equal where that is due after this step.
    ///
    /// `gradient` is `[batch, map().width()]`, of the mean loss over the global batch; its leading
    /// columns before the first feature aren't read. `factor` multiplies every table's base
    /// learning rate; `step` counts from 1.
    ///
    /// # Errors
    /// A gradient of another length, step 0; a peer that fails.
    pub fn backward<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let done = self.update(embeddings, backend, gradient, factor, step);
        done.map_err(|error| embeddings.give_up(error))
    }

    /// As [`backward`](Self::backward), with the gradients of sequence features in feature order,
    /// each of the shape of [`sequence`](Self::sequence).
    ///
    /// # Errors
    /// As [`backward`](Self::backward).
    pub fn backward_all<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        sequences: &[&[f32]],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let _ = sequences;
        self.backward(embeddings, backend, gradient, factor, step)
    }

    fn update<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let Trip { batch, divisors, arrived, .. } = &*self.trip;
        let expected = batch * self.width;
        if gradient.len() != expected || step == 0 {
            let got = gradient.len();
            return Err(Error::Mismatch(format!(
                "step {step}: {got} gradients for {expected} outputs; steps count from 1"
            )));
        }
        let ShardedEmbeddings { classes, specs, rates, .. } = embeddings;
        for ((class, arrived), staged) in classes.iter_mut().zip(arrived).zip(&*self.staged) {
            cut(&class.layout, gradient, divisors, (*batch, self.width), &mut class.sums);
            class.exchange_columns(*batch, &arrived.samples, Direction::ToOwners)?;
            let Class { rules, layout, .. } = class;
            rules.clear();
            rules.extend(layout.stored.iter().map(|stored| {
                specs[stored.table].optimizer.rule(rates[stored.table] * factor, step)
            }));
            class.update(backend, arrived, staged, step)?;
        }
        embeddings.after_step(backend, step)
    }
}

/// For every owner `[batch, its columns]` of the gradient: divided where bags are means of parts,
/// times what its table asks for.
fn cut(
    layout: &Layout,
    gradient: &[f32],
    divisors: &[f32],
    (batch, width): (usize, usize),
    parts: &mut Vec<f32>,
) {
    let columns: usize = layout.owned.iter().map(|owned| owned.width).sum();
    // Every element is written below.
    parts.resize(batch * columns, 0.0);
    for b in 0..batch {
        let gradient = &gradient[b * width..(b + 1) * width];
        let mut start = 0;
        for owned in &layout.owned {
            let row = &mut parts[start + b * owned.width..][..owned.width];
            start += batch * owned.width;
            for portion in &owned.portions {
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
