//! A backend whose memory nobody can look into: [`Opaque`].
//!
//! Generic code that takes a buffer for a slice of the host, or keeps what it read before it wrote,
//! works on the CPU and nowhere else. Here memory can only be had by copying, as from a device.

use emb_kernels::{
    Accumulate, Activation, Backend, Bucketized, Cpu, CpuOptions, FeatureMap, Gradients, JaggedRef,
    JaggedView, Mat, PairOrder, Result, RowGradients, RowMapView, RowTransfer, Scalar, TableSpec,
    Transpose, Unique,
};
use emb_optim::Rule;
use std::ops::Range;

/// The CPU behind memory of its own.
#[derive(Debug)]
pub(crate) struct Opaque(Cpu);

/// Owned memory.
#[derive(Debug)]
pub(crate) struct Memory<T>(Vec<T>);

/// Memory that is read.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a, T>(&'a [T]);

/// Memory that is written.
pub(crate) struct Held<'a, T>(&'a mut [T]);

/// Tables that only their backend can read.
#[derive(Debug)]
pub(crate) struct Hidden(<Cpu as Backend>::Tables);

impl Opaque {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        Ok(Self(Cpu::new(CpuOptions { threads })?))
    }
}

fn seen<T>(matrix: Mat<Seen<'_, T>>) -> Mat<&[T]> {
    Mat::with_stride(matrix.data.0, matrix.rows, matrix.cols, matrix.stride)
}

fn held<T>(matrix: Mat<Held<'_, T>>) -> Mat<&mut [T]> {
    Mat::with_stride(matrix.data.0, matrix.rows, matrix.cols, matrix.stride)
}

fn ids(batch: JaggedView<'_, Opaque>) -> JaggedView<'_, Cpu> {
    let JaggedView { names, batch, len, offsets, values, weights } = batch;
    let weights = weights.map(|weights| weights.0);
    JaggedView { names, batch, len, offsets: offsets.0, values: values.0, weights }
}

/// Calls `with` with the gradients as the CPU sees them.
fn gradients<R>(
    from: &Gradients<'_, '_, Opaque>,
    with: impl FnOnce(&Gradients<'_, '_, Cpu>) -> R,
) -> R {
    let sequences: Vec<_> = from.sequences.iter().map(|&(f, rows)| (f, seen(rows))).collect();
    with(&Gradients { pooled: seen(from.pooled), sequences: &sequences })
}

impl Backend for Opaque {
    type Buffer<T: Scalar> = Memory<T>;
    type View<'a, T: Scalar> = Seen<'a, T>;
    type ViewMut<'a, T: Scalar> = Held<'a, T>;
    type Tables = Hidden;

    const STREAMS: bool = true;

    fn another(&self) -> Result<Self> {
        self.0.another().map(Self)
    }

    fn name(&self) -> String {
        "opaque".to_owned()
    }

    fn zeros<T: Scalar>(&mut self, len: usize) -> Result<Memory<T>> {
        self.0.zeros(len).map(Memory)
    }

    fn len<T: Scalar>(buffer: &Memory<T>) -> usize {
        buffer.0.len()
    }

    fn view<T: Scalar>(buffer: &Memory<T>, range: Range<usize>) -> Seen<'_, T> {
        Seen(&buffer.0[range])
    }

    fn view_mut<T: Scalar>(buffer: &mut Memory<T>, range: Range<usize>) -> Held<'_, T> {
        Held(&mut buffer.0[range])
    }

    fn upload<T: Scalar>(&mut self, from: &[T], to: Held<'_, T>) -> Result<()> {
        self.0.upload(from, to.0)
    }

    fn download<T: Scalar>(&mut self, from: Seen<'_, T>, to: &mut [T]) -> Result<()> {
        self.0.download(from.0, to)
    }

    fn create_tables(&mut self, specs: &[TableSpec], seed: u64) -> Result<Hidden> {
        self.0.create_tables(specs, seed).map(Hidden)
    }

    fn specs(tables: &Hidden) -> &[TableSpec] {
        Cpu::specs(&tables.0)
    }

    fn read_rows(
        &mut self,
        tables: &mut Hidden,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        self.0.read_rows(&mut tables.0, table, first, weights, state)
    }

    fn write_rows(
        &mut self,
        tables: &mut Hidden,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        self.0.write_rows(&mut tables.0, table, first, weights, state)
    }

    fn transfer_rows(
        &mut self,
        tables: &mut Hidden,
        table: usize,
        rows: &[u64],
        transfer: RowTransfer<'_>,
    ) -> Result<()> {
        self.0.transfer_rows(&mut tables.0, table, rows, transfer)
    }

    fn pool(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Mat<Held<'_, f32>>,
    ) -> Result<()> {
        self.0.pool(&mut tables.0, map, ids(batch), held(out))
    }

    fn gather(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        feature: usize,
        batch: JaggedView<'_, Self>,
        out: Mat<Held<'_, f32>>,
    ) -> Result<()> {
        self.0.gather(&mut tables.0, map, feature, ids(batch), held(out))
    }

    fn gather_all(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Held<'_, f32>,
    ) -> Result<()> {
        self.0.gather_all(&mut tables.0, map, ids(batch), out.0)
    }

    fn scatter_update(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        from: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        let Self(cpu) = self;
        gradients(from, |from| {
            cpu.scatter_update(&mut tables.0, map, ids(batch), from, rules, step)
        })
    }

    fn row_gradients(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        from: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()> {
        let Self(cpu) = self;
        gradients(from, |from| {
            Backend::row_gradients(cpu, &mut tables.0, map, ids(batch), from, rules, out)
        })
    }

    fn apply(
        &mut self,
        tables: &mut Hidden,
        gradients: &RowGradients,
        totals: &[&[f64]],
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        Backend::apply(&mut self.0, &mut tables.0, gradients, totals, rules, step)
    }

    fn weight_gradients(
        &mut self,
        tables: &mut Hidden,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        pooled_gradient: Mat<Seen<'_, f32>>,
        out: Held<'_, f32>,
    ) -> Result<()> {
        self.0.weight_gradients(&mut tables.0, map, ids(batch), seen(pooled_gradient), out.0)
    }

    fn bucketize(
        &mut self,
        batch: JaggedRef<'_>,
        maps: &[RowMapView<'_>],
        out: &mut Bucketized<'_>,
    ) -> Result<()> {
        self.0.bucketize(batch, maps, out)
    }

    fn unique(&mut self, ids: &[i64], out: &mut Unique<'_>) -> Result<usize> {
        self.0.unique(ids, out)
    }

    fn segment_sum(
        &mut self,
        values: Mat<Seen<'_, f32>>,
        inverse: &[u32],
        out: Mat<Held<'_, f32>>,
    ) -> Result<()> {
        self.0.segment_sum(seen(values), inverse, held(out))
    }

    fn gemm(
        &mut self,
        a: Mat<Seen<'_, f32>>,
        transpose_a: Transpose,
        b: Mat<Seen<'_, f32>>,
        transpose_b: Transpose,
        accumulate: Accumulate,
        out: Mat<Held<'_, f32>>,
    ) -> Result<()> {
        self.0.gemm(seen(a), transpose_a, seen(b), transpose_b, accumulate, held(out))
    }

    fn bias_activation(
        &mut self,
        x: Mat<Held<'_, f32>>,
        bias: Seen<'_, f32>,
        activation: Activation,
    ) -> Result<()> {
        self.0.bias_activation(held(x), bias.0, activation)
    }

    fn bias_activation_backward(
        &mut self,
        y: Mat<Seen<'_, f32>>,
        activation: Activation,
        gradient: Mat<Held<'_, f32>>,
        bias_gradient: Held<'_, f32>,
    ) -> Result<()> {
        self.0.bias_activation_backward(seen(y), activation, held(gradient), bias_gradient.0)
    }

    fn interact(
        &mut self,
        x: Mat<Seen<'_, f32>>,
        features: usize,
        out: Mat<Held<'_, f32>>,
        order: PairOrder,
    ) -> Result<()> {
        self.0.interact(seen(x), features, held(out), order)
    }

    fn interact_backward(
        &mut self,
        x: Mat<Seen<'_, f32>>,
        features: usize,
        gradient: Mat<Seen<'_, f32>>,
        x_gradient: Mat<Held<'_, f32>>,
        order: PairOrder,
    ) -> Result<()> {
        self.0.interact_backward(seen(x), features, seen(gradient), held(x_gradient), order)
    }

    fn cross(
        &mut self,
        x0: Mat<Seen<'_, f32>>,
        u: Mat<Seen<'_, f32>>,
        bias: Seen<'_, f32>,
        x: Mat<Seen<'_, f32>>,
        out: Mat<Held<'_, f32>>,
    ) -> Result<()> {
        self.0.cross(seen(x0), seen(u), bias.0, seen(x), held(out))
    }

    fn cross_backward(
        &mut self,
        x0: Mat<Seen<'_, f32>>,
        u: Mat<Seen<'_, f32>>,
        bias: Seen<'_, f32>,
        gradient: Mat<Seen<'_, f32>>,
        u_gradient: Mat<Held<'_, f32>>,
        x0_gradient: Mat<Held<'_, f32>>,
        bias_gradient: Held<'_, f32>,
    ) -> Result<()> {
        let (x0, u, gradient) = (seen(x0), seen(u), seen(gradient));
        let (u_gradient, x0_gradient) = (held(u_gradient), held(x0_gradient));
        self.0.cross_backward(x0, u, bias.0, gradient, u_gradient, x0_gradient, bias_gradient.0)
    }

    fn fill(&mut self, x: Mat<Held<'_, f32>>, value: f32) -> Result<()> {
        self.0.fill(held(x), value)
    }

    fn add(&mut self, x: Mat<Seen<'_, f32>>, out: Mat<Held<'_, f32>>) -> Result<()> {
        self.0.add(seen(x), held(out))
    }

    fn bce_with_logits(
        &mut self,
        logits: Seen<'_, f32>,
        labels: Seen<'_, f32>,
        scale: f32,
        gradient: Held<'_, f32>,
    ) -> Result<f64> {
        self.0.bce_with_logits(logits.0, labels.0, scale, gradient.0)
    }

    fn dense_update(
        &mut self,
        rule: &Rule,
        parameter: Held<'_, f32>,
        state: Held<'_, f32>,
        gradient: Seen<'_, f32>,
    ) -> Result<()> {
        self.0.dense_update(rule, parameter.0, state.0, gradient.0)
    }
}
