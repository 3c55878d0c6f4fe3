//! Ids at their owners: [`Exchanged`].

use super::error::Result;
use super::route::{Parcels, Routed};
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::{Backend, offsets_from_lengths};

/// Bags that arrived at their owners; nothing was looked up yet.
#[derive(Debug)]
pub struct Exchanged {
    pub(super) batch: usize,
    pub(super) divisors: Vec<f32>,
    pub(super) arrivals: Vec<Arrived>,
}

/// The bags of all ranks of a group at one owner.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Samples of each rank of the group.
    pub(super) samples: Vec<usize>,
    /// Feature names, for errors.
    pub(super) names: Vec<String>,
    /// `[features * all samples + 1]`; samples by rank.
    pub(super) offsets: Vec<u64>,
    pub(super) ids: Vec<i64>,
    pub(super) weights: Option<Vec<f32>>,
}

impl Routed {
    /// Sends the ids to their owners.
    ///
    /// # Errors
    /// A peer that fails.
    pub fn exchange<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
    ) -> Result<Exchanged> {
        let mut arrivals = Vec::with_capacity(self.parcels.len());
        for (class, parcels) in embeddings.classes.iter_mut().zip(self.parcels) {
            arrivals.push(exchange(class, parcels, self.batch)?);
        }
        Ok(Exchanged { batch: self.batch, divisors: self.divisors, arrivals })
    }
}

fn exchange<B: Backend, C: Collective>(
    class: &mut Class<B, C>,
    parcels: Parcels,
    batch: usize,
) -> Result<Arrived> {
    /// What ranks tell each other first: samples, ids, whether there are per-sample weights.
    const COUNTS: usize = 3;
    let features = class.layout.own().portions.len();
    let (mut samples, mut ids) = (vec![batch], parcels.ids.clone());
    let (mut words, mut weights) = (parcels.words, parcels.weights);
    if let Some(group) = &mut class.group {
        let weighted = usize::from(weights.is_some());
        let send: Vec<usize> = parcels.ids.iter().flat_map(|&ids| [batch, ids, weighted]).collect();
        let mut counts = vec![0; send.len()];
        group.exchange_counts(&send, &mut counts)?;
        let column = |at: usize| counts.iter().copied().skip(at).step_by(COUNTS);
        samples = column(0).collect();
        ids = column(1).collect();
        let any_weighted = column(2).any(|weighted| weighted > 0);
        let sizes: Vec<usize> =
            samples.iter().zip(&ids).map(|(samples, ids)| samples * features + ids).collect();
        let mut arrived = vec![0; sizes.iter().sum()];
        group.all_to_all_v::<i64>(&words, &parcels.counts, &mut arrived, &sizes)?;
        words = arrived;
        if any_weighted {
            // A rank without weights, for want of samples perhaps, has weights of 1.
            let send = weights.unwrap_or_else(|| vec![1.0; parcels.ids.iter().sum()]);
            let mut arrived = vec![0.0; ids.iter().sum()];
            group.all_to_all_v::<f32>(&send, &parcels.ids, &mut arrived, &ids)?;
            weights = Some(arrived);
        }
    }
    let names = class.map.features().iter().map(|feature| feature.name.clone()).collect();
    arrange(names, samples, &ids, &words, weights.as_deref())
}

/// From one parcel a rank to one batch: by feature, then rank, then sample.
fn arrange(
    names: Vec<String>,
    samples: Vec<usize>,
    counts: &[usize],
    words: &[i64],
    weights: Option<&[f32]>,
) -> Result<Arrived> {
    let features = names.len();
    let total: usize = samples.iter().sum();
    // Where the next lengths, ids and weights of every rank are.
    let (mut lengths_at, mut ids_at, mut weights_at) = (Vec::new(), Vec::new(), Vec::new());
    let (mut word, mut id) = (0, 0);
    for (&samples, &count) in samples.iter().zip(counts) {
        lengths_at.push(word);
        ids_at.push(word + samples * features);
        weights_at.push(id);
        word += samples * features + count;
        id += count;
    }
    let mut lengths = Vec::with_capacity(features * total);
    let mut ids = Vec::with_capacity(id);
    let mut sorted = weights.map(|_| Vec::with_capacity(id));
    for _ in 0..features {
        for (rank, &samples) in samples.iter().enumerate() {
            let bags = &words[lengths_at[rank]..lengths_at[rank] + samples];
            lengths_at[rank] += samples;
            lengths.extend_from_slice(bags);
            let n = bags.iter().sum::<i64>() as usize;
            ids.extend_from_slice(&words[ids_at[rank]..ids_at[rank] + n]);
            ids_at[rank] += n;
            if let (Some(sorted), Some(weights)) = (&mut sorted, weights) {
                sorted.extend_from_slice(&weights[weights_at[rank]..weights_at[rank] + n]);
                weights_at[rank] += n;
            }
        }
    }
    let mut offsets = Vec::new();
    offsets_from_lengths(&names, total, &lengths, &mut offsets)?;
    Ok(Arrived { samples, names, offsets, ids, weights: sorted })
}
