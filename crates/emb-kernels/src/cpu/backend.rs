//! [`Cpu`]: the backend's threads and scratch, and its entries into the kernels.

use super::detect::Instructions;
use super::options::CpuOptions;
use super::parallel::Team;
use super::route::RouteScratch;
use super::table::CpuTables;
use super::update::UpdateScratch;
use super::{
    cross, dense, gather, gemm, interaction, loss, pointwise, pool, route, rows, update, weights,
};
use crate::{
    Accumulate, Activation, Backend, Bucketized, FeatureMap, Gradients, JaggedRef, JaggedView, Mat,
    PairOrder, Result, RowGradients, RowMapView, RowTransfer, Scalar, TableSpec, Transpose, Unique,
};
use emb_optim::Rule;
use std::ops::Range;

/// The CPU as a device: one stream of operations on a fixed number of threads.
#[derive(Debug)]
pub struct Cpu {
    pub(super) team: Team,
    pub(super) instructions: Instructions,
    pub(super) update: UpdateScratch,
    pub(super) route: RouteScratch,
}

impl Cpu {
    /// Starts the threads of a backend.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn new(options: CpuOptions) -> Result<Self> {
        let team = Team::new(options.threads)?;
        team.run(|| gemm::warm_up(team.threads()));
        Ok(Self {
            team,
            instructions: Instructions::detect(),
            update: UpdateScratch::default(),
            route: RouteScratch::default(),
        })
    }

    /// Keeps kernels from using more than `instructions`; results do not change.
    #[must_use]
    pub fn limit_instructions(mut self, instructions: Instructions) -> Self {
        self.instructions = instructions.min(Instructions::detect());
        self
    }

    /// Runs `work` inside the backend's threads. Operations called in it start without handing
    /// over to another thread: worth it around a whole step.
    pub fn install<R: Send>(&mut self, work: impl FnOnce(&mut Self) -> R + Send) -> R {
        /// Leaves the pool also when `work` panics.
        struct Inside<'a>(&'a mut Cpu);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                self.0.team.set_inside(false);
            }
        }
        match self.team.gate() {
            None => work(self),
            Some(gate) => gate.run(move || {
                self.team.set_inside(true);
                let inside = Inside(self);
                work(&mut *inside.0)
            }),
        }
    }
}

impl Backend for Cpu {
    type Buffer<T: Scalar> = Vec<T>;
    type View<'a, T: Scalar> = &'a [T];
    type ViewMut<'a, T: Scalar> = &'a mut [T];
    type Tables = CpuTables;

    fn another(&self) -> Result<Self> {
        let another = Self::new(CpuOptions { threads: self.team.threads() })?;
        Ok(another.limit_instructions(self.instructions))
    }

    fn within<R: Send>(&mut self, work: impl FnOnce(&mut Self) -> R + Send) -> R {
        self.install(work)
    }

    fn name(&self) -> String {
        format!("cpu, {} thread(s), {:?}", self.team.threads(), self.instructions)
    }

    fn zeros<T: Scalar>(&mut self, len: usize) -> Result<Vec<T>> {
        Ok(vec![T::zeroed(); len])
    }

    fn len<T: Scalar>(buffer: &Vec<T>) -> usize {
        buffer.len()
    }

    fn view<T: Scalar>(buffer: &Vec<T>, range: Range<usize>) -> &[T] {
        &buffer[range]
    }

    fn view_mut<T: Scalar>(buffer: &mut Vec<T>, range: Range<usize>) -> &mut [T] {
        &mut buffer[range]
    }

    fn upload<T: Scalar>(&mut self, from: &[T], to: &mut [T]) -> Result<()> {
        super::ids::expect("upload", "elements", to.len(), from.len())?;
        to.copy_from_slice(from);
        Ok(())
    }

    fn download<T: Scalar>(&mut self, from: &[T], to: &mut [T]) -> Result<()> {
        super::ids::expect("download", "elements", from.len(), to.len())?;
        to.copy_from_slice(from);
        Ok(())
    }

    fn create_tables(&mut self, specs: &[TableSpec], seed: u64) -> Result<CpuTables> {
        CpuTables::new(specs, seed)
    }

    fn specs(tables: &CpuTables) -> &[TableSpec] {
        tables.specs()
    }

    fn read_rows(
        &mut self,
        tables: &mut CpuTables,
        table: usize,
        first: u64,
        weights: &mut [f32],
        state: &mut [Vec<f32>],
    ) -> Result<()> {
        gather::read_rows(tables, table, first, weights, state)
    }

    fn write_rows(
        &mut self,
        tables: &mut CpuTables,
        table: usize,
        first: u64,
        weights: &[f32],
        state: &[Vec<f32>],
    ) -> Result<()> {
        gather::write_rows(tables, table, first, weights, state)
    }

    fn transfer_rows(
        &mut self,
        tables: &mut CpuTables,
        table: usize,
        rows: &[u64],
        transfer: RowTransfer<'_>,
    ) -> Result<()> {
        rows::transfer_rows(tables, table, rows, transfer)
    }

    fn pool(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: Mat<&mut [f32]>,
    ) -> Result<()> {
        let (threads, isa) = (self.team.threads(), self.instructions);
        self.team.run(|| pool::pool(threads, isa, tables, map, batch, out))
    }

    fn gather(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        feature: usize,
        batch: JaggedView<'_, Self>,
        out: Mat<&mut [f32]>,
    ) -> Result<()> {
        let (threads, isa) = (self.team.threads(), self.instructions);
        self.team.run(|| gather::gather(threads, isa, tables, map, feature, batch, out))
    }

    fn gather_all(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        out: &mut [f32],
    ) -> Result<()> {
        let (threads, isa) = (self.team.threads(), self.instructions);
        self.team.run(|| gather::gather_all(threads, isa, tables, map, batch, out))
    }

    fn scatter_update(
        &mut self,
        tables: &mut CpuTables,
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
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()> {
        Cpu::row_gradients(self, tables, map, batch, gradients, rules, out)
    }

    fn apply(
        &mut self,
        tables: &mut CpuTables,
        gradients: &RowGradients,
        totals: &[&[f64]],
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        Cpu::apply(self, tables, gradients, totals, rules, step)
    }

    fn weight_gradients(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        pooled_gradient: Mat<&[f32]>,
        out: &mut [f32],
    ) -> Result<()> {
        let (threads, isa) = (self.team.threads(), self.instructions);
        self.team.run(|| {
            weights::weight_gradients(threads, isa, tables, map, batch, pooled_gradient, out)
        })
    }

    fn bucketize(
        &mut self,
        batch: JaggedRef<'_>,
        maps: &[RowMapView<'_>],
        out: &mut Bucketized<'_>,
    ) -> Result<()> {
        route::bucketize(&mut self.route, batch, maps, out)
    }

    fn unique(&mut self, ids: &[i64], out: &mut Unique<'_>) -> Result<usize> {
        route::unique(&mut self.route, ids, out)
    }

    fn segment_sum(
        &mut self,
        values: Mat<&[f32]>,
        inverse: &[u32],
        out: Mat<&mut [f32]>,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| route::segment_sum(threads, values, inverse, out))
    }

    fn gemm(
        &mut self,
        a: Mat<&[f32]>,
        transpose_a: Transpose,
        b: Mat<&[f32]>,
        transpose_b: Transpose,
        accumulate: Accumulate,
        out: Mat<&mut [f32]>,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| gemm::gemm(threads, a, transpose_a, b, transpose_b, accumulate, out))
    }

    fn bias_activation(
        &mut self,
        x: Mat<&mut [f32]>,
        bias: &[f32],
        activation: Activation,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| pointwise::bias_activation(threads, x, bias, activation))
    }

    fn bias_activation_backward(
        &mut self,
        y: Mat<&[f32]>,
        activation: Activation,
        gradient: Mat<&mut [f32]>,
        bias_gradient: &mut [f32],
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| {
            pointwise::bias_activation_backward(threads, y, activation, gradient, bias_gradient)
        })
    }

    fn interact(
        &mut self,
        x: Mat<&[f32]>,
        features: usize,
        out: Mat<&mut [f32]>,
        order: PairOrder,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| interaction::interact(threads, x, features, out, order))
    }

    fn interact_backward(
        &mut self,
        x: Mat<&[f32]>,
        features: usize,
        gradient: Mat<&[f32]>,
        x_gradient: Mat<&mut [f32]>,
        order: PairOrder,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| {
            interaction::interact_backward(threads, x, features, gradient, x_gradient, order)
        })
    }

    fn cross(
        &mut self,
        x0: Mat<&[f32]>,
        u: Mat<&[f32]>,
        bias: &[f32],
        x: Mat<&[f32]>,
        out: Mat<&mut [f32]>,
    ) -> Result<()> {
        let threads = self.team.threads();
        self.team.run(|| cross::cross(threads, x0, u, bias, x, out))
    }

    fn cross_backward(
        &mut self,
        x0: Mat<&[f32]>,
        u: Mat<&[f32]>,
        bias: &[f32],
        gradient: Mat<&[f32]>,
        u_gradient: Mat<&mut [f32]>,
        x0_gradient: Mat<&mut [f32]>,
        bias_gradient: &mut [f32],
    ) -> Result<()> {
        let (threads, x0_u) = (self.team.threads(), (x0, u));
        self.team.run(|| {
            let (x0, u) = x0_u;
            let to = (u_gradient, x0_gradient, bias_gradient);
            cross::cross_backward(threads, x0, u, bias, gradient, to.0, to.1, to.2)
        })
    }

    fn fill(&mut self, x: Mat<&mut [f32]>, value: f32) -> Result<()> {
        pointwise::fill(x, value)
    }

    fn add(&mut self, x: Mat<&[f32]>, out: Mat<&mut [f32]>) -> Result<()> {
        self.team.run(|| pointwise::add(self.team.threads(), x, out))
    }

    fn bce_with_logits(
        &mut self,
        logits: &[f32],
        labels: &[f32],
        scale: f32,
        gradient: &mut [f32],
    ) -> Result<f64> {
        self.team.run(|| loss::bce_with_logits(logits, labels, scale, gradient))
    }

    fn dense_update(
        &mut self,
        rule: &Rule,
        parameter: &mut [f32],
        state: &mut [f32],
        gradient: &[f32],
    ) -> Result<()> {
        let team = &self.team;
        team.run(|| dense::dense_update(team.threads(), rule, parameter, state, gradient))
    }
}
