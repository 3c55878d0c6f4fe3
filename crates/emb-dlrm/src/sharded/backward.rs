//! Gradients to the owners.

use super::error::{Error, Result};
use super::layout::Layout;
use super::pool::Pooled;
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

    fn update<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let expected = self.batch * self.width;
        if gradient.len() != expected || step == 0 {
            let got = gradient.len();
            return Err(Error::Mismatch(format!(
                "step {step}: {got} gradients for {expected} outputs; steps count from 1"
            )));
        }
        let ShardedEmbeddings { classes, specs, rates, .. } = embeddings;
        for (class, bags) in classes.iter_mut().zip(&self.staged) {
            let parts = cut(&class.layout, gradient, &self.divisors, self.batch, self.width);
            let own = send(class, self.batch, bags.samples(), parts)?;
            let Class { rules, layout, .. } = class;
            rules.clear();
            rules.extend(layout.stored.iter().map(|stored| {
                specs[stored.table].optimizer.rule(rates[stored.table] * factor, step)
            }));
            class.update(backend, bags, &own, step)?;
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
    batch: usize,
    width: usize,
) -> Vec<f32> {
    let columns: usize = layout.owned.iter().map(|owned| owned.width).sum();
    let mut parts = vec![0.0; batch * columns];
    let mut rest = &mut parts[..];
    for owned in &layout.owned {
        let (mine, after) = rest.split_at_mut(batch * owned.width);
        rest = after;
        for portion in &owned.portions {
            for b in 0..batch {
                let from = &gradient[b * width + portion.output..][..portion.width];
                let to = &mut mine[b * owned.width + portion.column..][..portion.width];
                let mut scale = portion.scale;
                if portion.divide {
                    let divisor = divisors[portion.feature * batch + b];
                    scale = if divisor == 0.0 { 0.0 } else { scale / divisor };
                }
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = from * scale);
            }
        }
    }
    parts
}

/// `[samples of the group, columns of this owner]`.
fn send<B: Backend, C: Collective>(
    class: &mut Class<B, C>,
    batch: usize,
    samples: &[usize],
    parts: Vec<f32>,
) -> Result<Vec<f32>> {
    let Some(group) = &mut class.group else { return Ok(parts) };
    let width = class.layout.own().width;
    let send: Vec<usize> = class.layout.owned.iter().map(|owned| batch * owned.width).collect();
    let recv: Vec<usize> = samples.iter().map(|samples| samples * width).collect();
    let mut received = vec![0.0; recv.iter().sum()];
    group.all_to_all_v::<f32>(&parts, &send, &mut received, &recv)?;
    Ok(received)
}
