//! Pooled bags back where their samples are: [`Pooled`].

use super::error::Result;
use super::exchange::{Arrived, Exchanged};
use super::layout::Layout;
use super::{Class, ShardedEmbeddings};
use emb_comm::Collective;
use emb_kernels::{Backend, JaggedView, Mat, Scalar};

/// The pooled bags of this rank's samples, and what the backward pass needs.
pub struct Pooled<B: Backend> {
    pub(super) batch: usize,
    pub(super) width: usize,
    pub(super) divisors: Vec<f32>,
    pub(super) staged: Vec<Staged<B>>,
    output: Vec<f32>,
}

/// The bags of one owner in its backend's memory.
pub(super) struct Staged<B: Backend> {
    arrived: Arrived,
    offsets: B::Buffer<u64>,
    ids: B::Buffer<i64>,
    weights: Option<B::Buffer<f32>>,
}

impl Exchanged {
    /// Pools at the owners and brings the sums back.
    ///
    /// # Errors
    /// A peer that fails, a device out of memory.
    pub fn pool<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        let pooled = self.pool_all(embeddings, backend);
        pooled.map_err(|error| embeddings.give_up(error))
    }

    fn pool_all<B: Backend, C: Collective>(
        self,
        embeddings: &mut ShardedEmbeddings<B, C>,
        backend: &mut B,
    ) -> Result<Pooled<B>> {
        let (batch, width) = (self.batch, embeddings.map.width());
        let mut output = vec![0.0; batch * width];
        let mut staged = Vec::with_capacity(self.arrivals.len());
        for (class, arrived) in embeddings.classes.iter_mut().zip(self.arrivals) {
            let bags = Staged::new(backend, arrived)?;
            let sums = pool(class, backend, &bags)?;
            let sums = collect(class, batch, &bags.arrived.samples, sums)?;
            assemble(&class.layout, &sums, &self.divisors, batch, width, &mut output);
            staged.push(bags);
        }
        Ok(Pooled { batch, width, divisors: self.divisors, staged, output })
    }
}

impl<B: Backend> Pooled<B> {
    /// `[samples of this rank, map().width()]`, in the order of the configuration; the columns
    /// before the first feature are 0.
    pub fn output(&self) -> &[f32] {
        &self.output
    }

    /// Samples of this rank.
    pub fn batch(&self) -> usize {
        self.batch
    }
}

impl<B: Backend> std::fmt::Debug for Pooled<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pooled")
            .field("batch", &self.batch)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> Staged<B> {
    fn new(backend: &mut B, arrived: Arrived) -> Result<Self> {
        Ok(Self {
            offsets: upload(backend, &arrived.offsets)?,
            ids: upload(backend, &arrived.ids)?,
            weights: match &arrived.weights {
                Some(weights) => Some(upload(backend, weights)?),
                None => None,
            },
            arrived,
        })
    }

    /// Samples of each rank of the group.
    pub(super) fn samples(&self) -> &[usize] {
        &self.arrived.samples
    }

    /// Samples of all ranks of the group.
    pub(super) fn total(&self) -> usize {
        self.arrived.samples.iter().sum()
    }

    /// The ids of a feature, all ranks of the group.
    pub(super) fn ids(&self, feature: usize) -> &[i64] {
        let total = self.total();
        let at = |bag: usize| self.arrived.offsets[bag] as usize;
        &self.arrived.ids[at(feature * total)..at((feature + 1) * total)]
    }

    pub(super) fn view(&self) -> JaggedView<'_, B> {
        JaggedView {
            names: &self.arrived.names,
            batch: self.total(),
            len: self.arrived.ids.len(),
            offsets: B::view(&self.offsets, 0..self.arrived.offsets.len()),
            values: B::view(&self.ids, 0..self.arrived.ids.len()),
            weights: self.weights.as_ref().map(|w| B::view(w, 0..self.arrived.ids.len())),
        }
    }
}

/// A copy in the backend's memory.
pub(super) fn upload<B: Backend, T: Scalar>(backend: &mut B, from: &[T]) -> Result<B::Buffer<T>> {
    let mut buffer = backend.zeros(from.len())?;
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len()))?;
    Ok(buffer)
}

/// `[samples of the group, columns of this owner]`.
fn pool<B: Backend, C>(
    class: &mut Class<B, C>,
    backend: &mut B,
    bags: &Staged<B>,
) -> Result<Vec<f32>> {
    let (rows, cols) = (bags.total(), class.layout.own().width);
    let mut sums = vec![0.0; rows * cols];
    if sums.is_empty() {
        return Ok(sums);
    }
    let mut out = backend.zeros::<f32>(sums.len())?;
    let view = Mat::new(B::view_mut(&mut out, 0..rows * cols), rows, cols);
    backend.pool(&mut class.tables, &class.map, bags.view(), view)?;
    backend.download(B::view(&out, 0..rows * cols), &mut sums)?;
    Ok(sums)
}

/// From every owner the columns of this rank's samples: `[batch, its columns]` each.
fn collect<B: Backend, C: Collective>(
    class: &mut Class<B, C>,
    batch: usize,
    samples: &[usize],
    sums: Vec<f32>,
) -> Result<Vec<f32>> {
    let Some(group) = &mut class.group else { return Ok(sums) };
    let width = class.layout.own().width;
    let send: Vec<usize> = samples.iter().map(|samples| samples * width).collect();
    let recv: Vec<usize> = class.layout.owned.iter().map(|owned| batch * owned.width).collect();
    let mut received = vec![0.0; recv.iter().sum()];
    group.all_to_all_v::<f32>(&sums, &send, &mut received, &recv)?;
    Ok(received)
}

/// Puts the columns of all owners in their places, adding parts of rows in the order of owners.
fn assemble(
    layout: &Layout,
    sums: &[f32],
    divisors: &[f32],
    batch: usize,
    width: usize,
    output: &mut [f32],
) {
    let mut rest = sums;
    for owned in &layout.owned {
        let (mine, after) = rest.split_at(batch * owned.width);
        rest = after;
        for portion in &owned.portions {
            for b in 0..batch {
                let from = &mine[b * owned.width + portion.column..][..portion.width];
                let to = &mut output[b * width + portion.output..][..portion.width];
                if portion.partial {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
                } else {
                    to.copy_from_slice(from);
                }
            }
        }
    }
    // The whole bag is there: what is a mean of parts is divided, each column once.
    let mut done = std::collections::BTreeSet::new();
    let portions = layout.owned.iter().flat_map(|owned| &owned.portions);
    for portion in portions.filter(|portion| portion.divide) {
        if !done.insert(portion.output) {
            continue;
        }
        for b in 0..batch {
            let divisor = divisors[portion.feature * batch + b];
            let to = &mut output[b * width + portion.output..][..portion.width];
            // Where the weights sum to 0 there is no mean; the output is 0.
            for to in to {
                *to = if divisor == 0.0 { 0.0 } else { *to / divisor };
            }
        }
    }
}
