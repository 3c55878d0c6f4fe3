//! Gradients to the owners.

use super::ShardedEmbeddings;
use super::error::{Error, Result};
use super::pool::Pooled;
use emb_comm::Collective;
use emb_kernels::{Backend, Pooling};

impl<B: Backend> Pooled<B> {
    /// Sends the gradient of the output to the owners, who update every touched row once; then
    /// makes replicas equal where that is due after this step.
    ///
    /// `gradient` is `[batch, map().width()]`, of the mean loss over the global batch; its leading
    /// columns before the first feature aren't read. `factor` multiplies every table's base
    /// learning rate; `step` counts from 1.
    ///
    /// # Errors
    /// A gradient of another length, step 0, features that are not pooled; a peer that fails.
    pub fn backward<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        self.backward_all(embeddings, backend, gradient, &[], factor, step)
    }

    /// [`backward`](Self::backward) with the gradients of features that are not pooled: one for
    /// each of them, in the order of features, of the shape of its [`sequence`](Self::sequence).
    ///
    /// # Errors
    /// As there; another number of sequences, or one of another length.
    pub fn backward_all<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        sequences: &[&[f32]],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let done = self.update(embeddings, backend, gradient, sequences, factor, step);
        done.map_err(|error| embeddings.give_up(error))
    }

    fn update<C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
        gradient: &[f32],
        sequences: &[&[f32]],
        factor: f64,
        step: u64,
    ) -> Result<()> {
        let expected = self.trip.batch * self.width;
        if gradient.len() != expected || step == 0 {
            let got = gradient.len();
            return Err(Error::Mismatch(format!(
                "step {step}: {got} gradients for {expected} outputs; steps count from 1"
            )));
        }
        embeddings.bring_back()?;
        let mut of_features = embeddings.sequences.take();
        self.by_feature(embeddings, sequences, &mut of_features, step)?;
        let ShardedEmbeddings { classes, rates, step_rates, .. } = embeddings;
        step_rates.clear();
        step_rates.extend(rates.iter().map(|rate| rate * factor));
        let legs = classes.iter_mut().zip(&self.trip.legs).zip(&*self.staged);
        for ((class, leg), staged) in legs {
            let (gradient, rates) = ((gradient, self.width), (&step_rates[..], step));
            class.backward(backend, (&self.trip, leg), staged, gradient, &of_features, rates)?;
        }
        embeddings.sequences.put(of_features);
        embeddings.after_step(backend, step)
    }

    /// The gradients of sequences by feature; none for those that are pooled.
    fn by_feature<'a, C: Collective>(
        &self,
        embeddings: &ShardedEmbeddings<B, C>,
        sequences: &[&'a [f32]],
        of_features: &mut Vec<&'a [f32]>,
        step: u64,
    ) -> Result<()> {
        let features = embeddings.map.features();
        let wanted = features.iter().filter(|feature| feature.pooling == Pooling::None).count();
        if sequences.len() != wanted {
            let got = sequences.len();
            return Err(Error::Mismatch(format!(
                "step {step}: gradients of {got} sequences for {wanted} features without pooling"
            )));
        }
        let mut given = sequences.iter();
        for (f, feature) in features.iter().enumerate() {
            let mut own: &[f32] = &[];
            if feature.pooling == Pooling::None {
                own = given.next().expect("invariant: counted above");
                let (got, expected) = (own.len(), self.trip.sequences[f].len());
                if got != expected {
                    return Err(Error::Mismatch(format!(
                        "step {step}: {got} gradients for {expected} values of feature {:?}",
                        feature.name
                    )));
                }
            }
            of_features.push(own);
        }
        Ok(())
    }
}
