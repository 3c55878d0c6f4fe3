//! The seam between the models and a device: [`Backend`].

use crate::{
    Accumulate, Activation, Bucketized, FeatureMap, Gradients, JaggedView, Mat, PairOrder, Result,
    RowGradients, RowMapView, RowTransfer, Scalar, TableSpec, Transpose, Unique,
};
use emb_optim::Rule;
use std::ops::Range;

/// One stream of a device: its memory, its scratch, and the operations of a training step.
///
/// A value is one execution stream with its own scratch, hence `&mut self`: results do not depend on
/// what ran before, and nothing is allocated once every buffer has been seen at its largest. A rank
/// owns one; another overlaps with it. Parallelism never changes a bit.
///
/// Every operation has a naive `f64` twin in [`reference`](crate::reference), its spec, which the
/// suite in [`conformance`](crate::conformance) checks a backend against. Where an operation refuses
/// its input (`# Errors`), nothing has been written.
pub trait Backend: Send + Sized + 'static {
    /// Owned device memory.
    type Buffer<T: Scalar>: Send + std::fmt::Debug;
    /// Borrowed device memory.
    type View<'a, T: Scalar>: Copy + Send;
    /// Mutably borrowed device memory.
    type ViewMut<'a, T: Scalar>: Send;
    /// Tables of one group: weights and optimizer state.
    type Tables: Send + std::fmt::Debug;

    /// Whether streams of a device go on beside each other while the host does something else.
    const STREAMS: bool = false;

    /// Another stream on the same device, of the same parallelism.
    /// # Errors
    /// No room for one.
    fn another(&self) -> Result<Self>;

    /// Runs several operations as one, such as a step: a backend can start its threads once.
    fn within<R: Send>(&mut self, work: impl FnOnce(&mut Self) -> R + Send) -> R {
        work(self)
    }

    /// Device and parallelism in words.
    fn name(&self) -> String;

    /// `len` zeros.
    ///
    /// # Errors
    /// The device is out of memory.
    fn zeros<T: Scalar>(&mut self, len: usize) -> Result<Self::Buffer<T>>;

    /// Elements of a buffer.
    fn len<T: Scalar>(buffer: &Self::Buffer<T>) -> usize;

    /// A part of a buffer.
    /// # Panics
    /// When the range is out of bounds.
    fn view<T: Scalar>(buffer: &Self::Buffer<T>, range: Range<usize>) -> Self::View<'_, T>;

    /// A part of a buffer, to be written.
    /// # Panics
    /// When the range is out of bounds.
    fn view_mut<T: Scalar>(
        buffer: &mut Self::Buffer<T>,
        range: Range<usize>,
    ) -> Self::ViewMut<'_, T>;

    /// Copies host memory to the device; lengths are equal.
    ///
    /// # Errors
    /// The device failed.
    fn upload<T: Scalar>(&mut self, from: &[T], to: Self::ViewMut<'_, T>) -> Result<()>;

    /// Copies device memory to the host, after all work before it; lengths are equal.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    fn download<T: Scalar>(&mut self, from: Self::View<'_, T>, to: &mut [T]) -> Result<()>;

    /// Creates the tables of one group. Tables of one name are parts of one table: blocks of its
    /// columns, tiers of its rows.
    ///
    /// # Errors
    /// A table without rows, a `dim` of 0 or above the limit, two tables of one name and window, a
    /// window that does not hold the columns, memory that cannot be had.
    fn create_tables(&mut self, specs: &[TableSpec], seed: u64) -> Result<Self::Tables>;

    /// What the tables were made from.
    fn specs(tables: &Self::Tables) -> &[TableSpec];

    /// Copies rows `first..` of a table to the host: `weights` is `[n, dim]`, `state` `[n]` or `[n, dim]`
    /// a slot, in the order of the rule's. Untouched rows read as their initial value.
    ///
    /// # Errors
    /// Rows beyond the table; a length that is not whole rows.
    fn read_rows(
        &mut self,
        tables: &mut Self::Tables,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()>;

    /// The inverse of [`read_rows`](Self::read_rows); 16-bit weights are rounded to nearest.
    ///
    /// # Errors
    /// As there.
    fn write_rows(
        &mut self,
        tables: &mut Self::Tables,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()>;

    /// Copies rows of a table by number, in any order: see [`RowTransfer`].
    ///
    /// # Errors
    /// A row beyond the table; values of another length than those rows have.
    fn transfer_rows(
        &mut self,
        tables: &mut Self::Tables,
        table: usize,
        rows: &[u64],
        transfer: RowTransfer<'_>,
    ) -> Result<()>;

    /// Pools all bags of all pooled features: column block `f` of row `b` of `out`
    /// (`[batch, map.width()]`) becomes bag `(f, b)`; other columns are left alone. Rows are added in
    /// bag order with `f32` accumulation.
    ///
    /// # Errors
    /// An id outside its table (table, feature, sample, position, id, rows); shapes that differ.
    fn pool(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Mat<Self::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// Looks up the rows of sequence feature `feature`: `out` is `[its values, dim]`, in their order.
    ///
    /// # Errors
    /// As [`pool`](Self::pool).
    fn gather(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        feature: usize,
        batch: JaggedView<'_, Self>,
        out: Mat<Self::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// [`gather`](Self::gather) of all sequence features, one after the other, in one call.
    ///
    /// # Errors
    /// As [`pool`](Self::pool).
    fn gather_all(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Self::ViewMut<'_, f32>,
    ) -> Result<()>;

    /// Says that `batch` is updated with next, after those foreseen before, and that its memory stays
    /// as it is until then: a device may begin with the sort, beside its other work.
    ///
    /// # Errors
    /// As [`pool`](Self::pool).
    fn foresee(
        &mut self,
        _tables: &mut Self::Tables,
        _map: &FeatureMap,
        _batch: JaggedView<'_, Self>,
    ) -> Result<()> {
        Ok(())
    }

    /// Backward and update in one: sorts (row, position), sums the gradients of each touched row over
    /// the batch in position order, and applies the rule once per touched row. Untouched rows stay
    /// bitwise. `rules[t]` is that of table `t`; `step` keys stochastic rounding. With `Mean` a
    /// gradient is scaled by `w_i / sum w`; a rule that clamps does so before the sum.
    ///
    /// # Errors
    /// As [`pool`](Self::pool); `rules` of another count or with other state than the tables.
    fn scatter_update(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        step: u64,
    ) -> Result<()>;

    /// The first half, where owners agree before the rule runs: sums and measures gradients of rows.
    ///
    /// # Errors
    /// As there, but column cuts are welcome, unless the rule needs all columns at once.
    fn row_gradients(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()>;

    /// The second half: applies the rules; `totals[t]` are the statistics of whole rows.
    ///
    /// # Errors
    /// Totals of another count than rows; gradients of other tables; rules that do not fit.
    fn apply(
        &mut self,
        tables: &mut Self::Tables,
        gradients: &RowGradients,
        totals: &[&[f64]],
        rules: &[Rule],
        step: u64,
    ) -> Result<()>;

    /// Gradient of per-sample weights, before the rows change: `out[k] = <row(id_k), g_bag>` with
    /// `Sum`, `<row(id_k) - pooled_bag, g_bag> / sum w` with `Mean`; 0 for sequence features.
    ///
    /// # Errors
    /// As [`pool`](Self::pool).
    fn weight_gradients(
        &mut self,
        tables: &mut Self::Tables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        pooled_gradient: Mat<Self::View<'_, f32>>,
        out: Self::ViewMut<'_, f32>,
    ) -> Result<()>;

    /// Splits every bag of a host batch by the owner of its rows, in order, by one row map a feature.
    ///
    /// # Errors
    /// An id that no owner has; output buffers of the wrong length.
    fn bucketize(
        &mut self,
        batch: crate::JaggedRef<'_>,
        maps: &[RowMapView<'_>],
        out: &mut Bucketized<'_>,
    ) -> Result<()>;

    /// Distinct ids in ascending order, and where each input went; returns how many.
    ///
    /// # Errors
    /// A negative id; output buffers of the wrong length.
    fn unique(&mut self, ids: &[i64], out: &mut Unique<'_>) -> Result<usize>;

    /// `out[inverse[k]] += values[k]` for `k` ascending, on zeroed `out` (`[n, dim]`).
    ///
    /// # Errors
    /// Shapes that differ; an index outside `out`.
    fn segment_sum(
        &mut self,
        values: Mat<Self::View<'_, f32>>,
        inverse: &[u32],
        out: Mat<Self::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// `out = op(a) * op(b)`, or `out += ..` with [`Accumulate::Add`].
    ///
    /// # Errors
    /// Shapes that do not multiply.
    fn gemm(
        &mut self,
        a: Mat<Self::View<'_, f32>>,
        transpose_a: Transpose,
        b: Mat<Self::View<'_, f32>>,
        transpose_b: Transpose,
        accumulate: Accumulate,
        out: Mat<Self::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// `x = act(x + bias)` on every row.
    ///
    /// # Errors
    /// A bias of another length than the columns.
    fn bias_activation(
        &mut self,
        x: Mat<Self::ViewMut<'_, f32>>,
        bias: Self::View<'_, f32>,
        activation: Activation,
    ) -> Result<()>;

    /// Its backward: masks `gradient` by the layer's output `y` (`y > 0` for `ReLU`) in place and
    /// writes the column sums to `bias_gradient`.
    ///
    /// # Errors
    /// Shapes that differ.
    fn bias_activation_backward(
        &mut self,
        y: Mat<Self::View<'_, f32>>,
        activation: Activation,
        gradient: Mat<Self::ViewMut<'_, f32>>,
        bias_gradient: Self::ViewMut<'_, f32>,
    ) -> Result<()>;

    /// Pairwise dot interaction (Naumov et al. 2019, arXiv 1906.00091, section 2.1.3): a row of `x` is
    /// `features` vectors of `dim`; one of `out` is the first of them, then their products in `order`:
    /// `out` is `[batch, dim + features * (features - 1) / 2]`.
    ///
    /// # Errors
    /// Shapes that differ.
    fn interact(
        &mut self,
        x: Mat<Self::View<'_, f32>>,
        features: usize,
        out: Mat<Self::ViewMut<'_, f32>>,
        order: PairOrder,
    ) -> Result<()>;

    /// Backward of [`interact`](Self::interact); overwrites `x_gradient` (`[batch, features * dim]`).
    ///
    /// # Errors
    /// Shapes that differ.
    fn interact_backward(
        &mut self,
        x: Mat<Self::View<'_, f32>>,
        features: usize,
        gradient: Mat<Self::View<'_, f32>>,
        x_gradient: Mat<Self::ViewMut<'_, f32>>,
        order: PairOrder,
    ) -> Result<()>;

    /// Element-wise part of a `DCNv2` cross layer (Wang et al. 2021, arXiv 2008.13535, equation 2):
    /// `out = x0 * (u + bias) + x`, `u = W (V x)`.
    ///
    /// # Errors
    /// Shapes that differ.
    fn cross(
        &mut self,
        x0: Mat<Self::View<'_, f32>>,
        u: Mat<Self::View<'_, f32>>,
        bias: Self::View<'_, f32>,
        x: Mat<Self::View<'_, f32>>,
        out: Mat<Self::ViewMut<'_, f32>>,
    ) -> Result<()>;

    /// Its backward: `u_gradient = gradient * x0`, `x0_gradient += gradient * (u + bias)`,
    /// `bias_gradient` = column sums of `u_gradient`; that of `x` begins as `gradient`.
    ///
    /// # Errors
    /// Shapes that differ.
    fn cross_backward(
        &mut self,
        x0: Mat<Self::View<'_, f32>>,
        u: Mat<Self::View<'_, f32>>,
        bias: Self::View<'_, f32>,
        gradient: Mat<Self::View<'_, f32>>,
        u_gradient: Mat<Self::ViewMut<'_, f32>>,
        x0_gradient: Mat<Self::ViewMut<'_, f32>>,
        bias_gradient: Self::ViewMut<'_, f32>,
    ) -> Result<()>;

    /// Sets every element of a matrix.
    ///
    /// # Errors
    /// A view shorter than its shape.
    fn fill(&mut self, x: Mat<Self::ViewMut<'_, f32>>, value: f32) -> Result<()>;

    /// `out += x`, element by element.
    ///
    /// # Errors
    /// Shapes that differ.
    fn add(&mut self, x: Mat<Self::View<'_, f32>>, out: Mat<Self::ViewMut<'_, f32>>) -> Result<()>;

    /// Binary cross-entropy with logits, stable for every finite one: returns the *sum* of
    /// `max(z, 0) - z*y + ln(1 + exp(-|z|))` in `f64`, and writes `(sigmoid(z) - y) * scale` to
    /// `gradient` (`scale = 1 / B` of the global batch makes it that of the mean).
    ///
    /// # Errors
    /// Shapes that differ.
    fn bce_with_logits(
        &mut self,
        logits: Self::View<'_, f32>,
        labels: Self::View<'_, f32>,
        scale: f32,
        gradient: Self::ViewMut<'_, f32>,
    ) -> Result<f64>;

    /// Applies a rule to a dense parameter; `state` is `[element slots, parameter.len()]`.
    ///
    /// # Errors
    /// A row-wise rule; shapes that differ.
    fn dense_update(
        &mut self,
        rule: &Rule,
        parameter: Self::ViewMut<'_, f32>,
        state: Self::ViewMut<'_, f32>,
        gradient: Self::View<'_, f32>,
    ) -> Result<()>;
}
