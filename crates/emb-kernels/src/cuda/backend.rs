//! [`Cuda`]: the stream and its scratch, and its entries into the kernels.

use super::options::CudaOptions;
use super::table::{self, CudaTables};
use super::{
    columns, cross, dense, foreseen, gather, gemm, ids, interaction, loss, pointwise, pool, route,
    rows, update, weights,
};
use crate::{
    Accumulate, Activation, Backend, Bucketized, FeatureMap, Gradients, JaggedRef, JaggedView, Mat,
    PairOrder, Result, RowGradients, RowMapView, RowTransfer, Scalar, TableSpec, Transpose, Unique,
};
use emb_cuda::{Buffer, Device, Stream, View, ViewMut};
use emb_optim::Rule;
use std::ops::Range;

/// A GPU: one stream of operations with its scratch.
#[derive(Debug)]
pub struct Cuda {
    pub(super) stream: Stream,
    pub(super) options: CudaOptions,
    pub(super) ids: ids::Scratch,
    pub(super) rows: rows::Scratch,
    pub(super) update: update::Scratch,
    pub(super) route: route::Scratch,
    pub(super) dense: pointwise::Scratch,
    pub(super) gemm: gemm::Gemm,
}

impl Cuda {
    /// A stream of its own on `device`.
    ///
    /// # Errors
    /// No image of the kernels, a library that is missing, no memory.
    pub fn new(device: &Device, options: CudaOptions) -> Result<Self> {
        let stream = device.stream()?;
        Ok(Self {
            gemm: gemm::Gemm::new(options.precision),
            stream,
            options,
            ids: ids::Scratch::default(),
            rows: rows::Scratch::default(),
            update: update::Scratch::default(),
            route: route::Scratch::default(),
            dense: pointwise::Scratch::default(),
        })
    }

    /// The queue that operations go to.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl Backend for Cuda {
    type Buffer<T: Scalar> = Buffer<T>;
    type View<'a, T: Scalar> = View<'a, T>;
    type ViewMut<'a, T: Scalar> = ViewMut<'a, T>;
    type Tables = CudaTables;

    const STREAMS: bool = true;

    fn another(&self) -> Result<Self> {
        Self::new(self.stream.device(), self.options)
    }

    fn name(&self) -> String {
        let device = self.stream.device();
        format!("cuda device {}, {}, {:?}", device.ordinal(), device.name(), self.options.precision)
    }

    fn zeros<T: Scalar>(&mut self, len: usize) -> Result<Buffer<T>> {
        Ok(self.stream.zeros(len)?)
    }

    fn len<T: Scalar>(buffer: &Buffer<T>) -> usize {
        buffer.len()
    }

    fn view<T: Scalar>(buffer: &Buffer<T>, range: Range<usize>) -> View<'_, T> {
        buffer.view(range)
    }

    fn view_mut<T: Scalar>(buffer: &mut Buffer<T>, range: Range<usize>) -> ViewMut<'_, T> {
        buffer.view_mut(range)
    }

    fn upload<T: Scalar>(&mut self, from: &[T], to: ViewMut<'_, T>) -> Result<()> {
        crate::shape::same("upload", "elements", to.len(), from.len())?;
        Ok(self.stream.upload(from, to)?)
    }

    fn download<T: Scalar>(&mut self, from: View<'_, T>, to: &mut [T]) -> Result<()> {
        crate::shape::same("download", "elements", from.len(), to.len())?;
        Ok(self.stream.download(from, to)?)
    }

    fn create_tables(&mut self, specs: &[TableSpec], seed: u64) -> Result<CudaTables> {
        table::create(self, specs, seed)
    }

    fn specs(tables: &CudaTables) -> &[TableSpec] {
        tables.specs()
    }

    fn read_rows(
        &mut self,
        tables: &mut CudaTables,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        rows::read_rows(self, tables, table, first, weights, state)
    }

    fn write_rows(
        &mut self,
        tables: &mut CudaTables,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        rows::write_rows(self, tables, table, first, weights, state)
    }

    fn transfer_rows(
        &mut self,
        tables: &mut CudaTables,
        table: usize,
        numbers: &[u64],
        transfer: RowTransfer<'_>,
    ) -> Result<()> {
        rows::transfer_rows(self, tables, table, numbers, transfer)
    }

    fn pool(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        pool::pool(self, tables, map, batch, out)
    }

    fn gather(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        feature: usize,
        batch: JaggedView<'_, Self>,
        out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        gather::gather(self, tables, map, feature, batch, out)
    }

    fn gather_all(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: ViewMut<'_, f32>,
    ) -> Result<()> {
        gather::gather_all(self, tables, map, batch, out)
    }

    fn foresee(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
    ) -> Result<()> {
        foreseen::foresee(self, tables, map, batch)
    }

    fn scatter_update(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        update::scatter_update(self, tables, map, batch, gradients, rules, step)
    }

    fn row_gradients(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()> {
        columns::row_gradients(self, tables, map, batch, gradients, rules, out)
    }

    fn apply(
        &mut self,
        tables: &mut CudaTables,
        gradients: &RowGradients,
        totals: &[&[f64]],
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        columns::apply(self, tables, gradients, totals, rules, step)
    }

    fn weight_gradients(
        &mut self,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        pooled_gradient: Mat<View<'_, f32>>,
        out: ViewMut<'_, f32>,
    ) -> Result<()> {
        weights::weight_gradients(self, tables, map, batch, pooled_gradient, out)
    }

    fn bucketize(
        &mut self,
        batch: JaggedRef<'_>,
        maps: &[RowMapView<'_>],
        out: &mut Bucketized<'_>,
    ) -> Result<()> {
        route::bucketize(self, batch, maps, out)
    }

    fn unique(&mut self, ids: &[i64], out: &mut Unique<'_>) -> Result<usize> {
        route::unique(self, ids, out)
    }

    fn segment_sum(
        &mut self,
        values: Mat<View<'_, f32>>,
        inverse: &[u32],
        out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        route::segment_sum(self, values, inverse, out)
    }

    fn gemm(
        &mut self,
        a: Mat<View<'_, f32>>,
        transpose_a: Transpose,
        b: Mat<View<'_, f32>>,
        transpose_b: Transpose,
        accumulate: Accumulate,
        out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        gemm::gemm(self, a, transpose_a, b, transpose_b, accumulate, out)
    }

    fn bias_activation(
        &mut self,
        x: Mat<ViewMut<'_, f32>>,
        bias: View<'_, f32>,
        activation: Activation,
    ) -> Result<()> {
        pointwise::bias_activation(self, x, bias, activation)
    }

    fn bias_activation_backward(
        &mut self,
        y: Mat<View<'_, f32>>,
        activation: Activation,
        gradient: Mat<ViewMut<'_, f32>>,
        bias_gradient: ViewMut<'_, f32>,
    ) -> Result<()> {
        pointwise::bias_activation_backward(self, y, activation, gradient, bias_gradient)
    }

    fn interact(
        &mut self,
        x: Mat<View<'_, f32>>,
        features: usize,
        out: Mat<ViewMut<'_, f32>>,
        order: PairOrder,
    ) -> Result<()> {
        interaction::interact(self, x, features, out, order)
    }

    fn interact_backward(
        &mut self,
        x: Mat<View<'_, f32>>,
        features: usize,
        gradient: Mat<View<'_, f32>>,
        x_gradient: Mat<ViewMut<'_, f32>>,
        order: PairOrder,
    ) -> Result<()> {
        interaction::interact_backward(self, x, features, gradient, x_gradient, order)
    }

    fn cross(
        &mut self,
        x0: Mat<View<'_, f32>>,
        u: Mat<View<'_, f32>>,
        bias: View<'_, f32>,
        x: Mat<View<'_, f32>>,
        out: Mat<ViewMut<'_, f32>>,
    ) -> Result<()> {
        cross::cross(self, x0, u, bias, x, out)
    }

    fn cross_backward(
        &mut self,
        x0: Mat<View<'_, f32>>,
        u: Mat<View<'_, f32>>,
        bias: View<'_, f32>,
        gradient: Mat<View<'_, f32>>,
        u_gradient: Mat<ViewMut<'_, f32>>,
        x0_gradient: Mat<ViewMut<'_, f32>>,
        bias_gradient: ViewMut<'_, f32>,
    ) -> Result<()> {
        let to = (u_gradient, x0_gradient, bias_gradient);
        cross::cross_backward(self, x0, u, bias, gradient, to.0, to.1, to.2)
    }

    fn fill(&mut self, x: Mat<ViewMut<'_, f32>>, value: f32) -> Result<()> {
        pointwise::fill(self, x, value)
    }

    fn add(&mut self, x: Mat<View<'_, f32>>, out: Mat<ViewMut<'_, f32>>) -> Result<()> {
        pointwise::add(self, x, out)
    }

    fn bce_with_logits(
        &mut self,
        logits: View<'_, f32>,
        labels: View<'_, f32>,
        scale: f32,
        gradient: ViewMut<'_, f32>,
    ) -> Result<f64> {
        loss::bce_with_logits(self, logits, labels, scale, gradient)
    }

    fn dense_update(
        &mut self,
        rule: &Rule,
        parameter: ViewMut<'_, f32>,
        state: ViewMut<'_, f32>,
        gradient: View<'_, f32>,
    ) -> Result<()> {
        dense::dense_update(self, rule, parameter, state, gradient)
    }
}
