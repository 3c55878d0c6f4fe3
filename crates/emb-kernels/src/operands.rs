//! What the operations of a [`Backend`] take: batches, gradients, row maps, choices.

use crate::{Backend, Mat};

/// Plain data that buffers hold.
pub trait Scalar: bytemuck::Pod + PartialEq + std::fmt::Debug + Send + Sync {}

impl Scalar for f32 {}
impl Scalar for f64 {}
impl Scalar for u32 {}
impl Scalar for u64 {}
impl Scalar for i64 {}
impl Scalar for u8 {}

/// A jagged batch in a backend's memory; offsets and counts were checked on the host.
pub struct JaggedView<'a, B: Backend> {
    /// Feature names, for errors.
    pub names: &'a [String],
    /// Samples.
    pub batch: usize,
    /// Number of values.
    pub len: usize,
    /// `[features * batch + 1]`.
    pub offsets: B::View<'a, u64>,
    /// `[len]` ids.
    pub values: B::View<'a, i64>,
    /// `[len]` per-sample weights, or `None` for all 1.
    pub weights: Option<B::View<'a, f32>>,
}

impl<B: Backend> Clone for JaggedView<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for JaggedView<'_, B> {}

impl<B: Backend> std::fmt::Debug for JaggedView<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JaggedView")
            .field("names", &self.names)
            .field("batch", &self.batch)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Upstream gradients of one batch: of the pooled output, and of each sequence feature's rows.
pub struct Gradients<'s, 'a, B: Backend> {
    /// `[batch, width]`, laid out by the [`FeatureMap`](crate::FeatureMap); its leading columns before the first
    /// feature are not read.
    pub pooled: Mat<B::View<'a, f32>>,
    /// For each sequence feature (ascending feature position), `[values of the feature, dim]`.
    pub sequences: &'s [(usize, Mat<B::View<'a, f32>>)],
}

impl<B: Backend> std::fmt::Debug for Gradients<'_, '_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gradients")
            .field("batch", &self.pooled.rows)
            .field("sequences", &self.sequences.len())
            .finish_non_exhaustive()
    }
}

/// What [`Backend::transfer_rows`] does with rows: host memory `[rows, elements of a row]`, where a
/// row is its `dim` weights and then its 1 or `dim` values of each slot, in the order of the rule's
/// slots.
#[derive(Debug)]
pub enum RowTransfer<'a> {
    /// Copies them to the host.
    Read(&'a mut [f32]),
    /// Copies them from the host. Of a row that is listed twice, the last stays.
    Write(&'a [f32]),
}

/// Which owner has which row of one feature's table, as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMapView<'a> {
    /// `[owners + 1]` starts: owner `o` has rows `starts[o]..starts[o + 1]`, local id
    /// `id - starts[o]`. Uneven and empty ranges are allowed.
    Range(&'a [u64]),
    /// Owner `id % owners`, local id `id / owners`.
    Modulo {
        /// Number of owners.
        owners: usize,
    },
}

/// Output buffers of [`Backend::bucketize`], owner-major.
#[derive(Debug)]
pub struct Bucketized<'a> {
    /// `[owners, features * batch]`: length of every bag's part at every owner.
    pub lengths: &'a mut [u64],
    /// `[values]` local ids, by owner, then bag, in bag order.
    pub ids: &'a mut [i64],
    /// `[values]`: `positions[k]` is the place in the input of output `k`.
    pub positions: &'a mut [u64],
}

/// Output buffers of [`Backend::unique`].
#[derive(Debug)]
pub struct Unique<'a> {
    /// `[values]`, of which the first `n` (returned) are the distinct ids, ascending.
    pub ids: &'a mut [i64],
    /// `[values]`: `ids[inverse[k]]` is input `k`.
    pub inverse: &'a mut [u32],
}

/// What happens to the output of a GEMM that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulate {
    /// Overwritten, without being read.
    Replace,
    /// Added to.
    Add,
}

/// Activation of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    Linear,
    /// `max(x, 0)`.
    Relu,
}

/// Order of the pairs that [`Backend::interact`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairOrder {
    /// `(i, j)`, `j < i`: `i` ascending, then `j` (`facebookresearch/dlrm`).
    Lower,
    /// `(i, j)`, `i < j`: `i` ascending, then `j` (`TorchRec`).
    Upper,
}
