//! The update rule on touched rows, once each.
//!
//! A row moves its weights and state in and out: `2 * (dim * element bytes + state bytes)`.

use super::detect::{Instructions, Kernel, dispatch};
use super::dtype::Element;
use super::sum::Run;
use super::table::Table;
use crate::rng::{ROUNDING_COLUMNS, RoundingBits};
use crate::rules::Rules;
use crate::{Dtype, Rounding};
use emb_optim::{RowRule, RowState, Rule, RuleVisitor, Statistic};
use half::{bf16, f16};

/// Touched rows of one table and their summed gradients.
#[derive(Clone, Copy)]
pub(crate) struct Touched<'a> {
    pub(crate) table: &'a Table,
    /// Distinct rows.
    pub(crate) rows: &'a [u64],
    /// `[rows, dim]`.
    pub(crate) sums: &'a [f32],
    /// `[rows]` statistics of whole rows; `None` where the rows here are whole.
    pub(crate) totals: Option<&'a [f64]>,
    /// Keys stochastic rounding.
    pub(crate) step: u64,
}

/// Applies `rule` to every row. `buffer` has room for a row.
///
/// # Safety
/// The rows lie in the table, and no other thread reads or writes them meanwhile.
pub(crate) unsafe fn apply(
    instructions: Instructions,
    rule: &Rule,
    touched: Touched<'_>,
    buffer: &mut [f32],
) {
    let buffer = &mut buffer[..touched.table.dim];
    match touched.table.dtype {
        Dtype::F32 => rule.visit(Apply::<f32> { instructions, touched, buffer, stored: [] }),
        Dtype::F16 => rule.visit(Apply::<f16> { instructions, touched, buffer, stored: [] }),
        Dtype::Bf16 => rule.visit(Apply::<bf16> { instructions, touched, buffer, stored: [] }),
    }
}

/// Most rows of a block of [`apply_run`].
const BLOCK_ROWS: usize = 32;

/// Sums the gradients of every row of `run` and applies the rule of `table`, a block of rows at a
/// time: as many as `sums` has room for. `buffer` has room for a row.
///
/// # Safety
/// As [`apply`].
pub(crate) unsafe fn apply_run(
    instructions: Instructions,
    rules: &(impl Rules + ?Sized),
    table: usize,
    run: Run<'_>,
    step: u64,
    sums: &mut [f32],
    buffer: &mut [f32],
) {
    let buffer = &mut buffer[..run.table.dim];
    match run.table.dtype {
        Dtype::F32 => {
            rules.visit(
                table,
                ApplyRun::<f32> { instructions, run, step, sums, buffer, stored: [] },
            );
        }
        Dtype::F16 => {
            rules.visit(
                table,
                ApplyRun::<f16> { instructions, run, step, sums, buffer, stored: [] },
            );
        }
        Dtype::Bf16 => {
            rules.visit(
                table,
                ApplyRun::<bf16> { instructions, run, step, sums, buffer, stored: [] },
            );
        }
    }
}

/// The statistics of rows from the columns held here. `buffer` has room for a row.
///
/// # Safety
/// As [`apply`].
pub(crate) unsafe fn statistics(
    rule: &Rule,
    touched: Touched<'_>,
    buffer: &mut [f32],
    out: &mut [f64],
) {
    let buffer = &mut buffer[..touched.table.dim];
    match touched.table.dtype {
        Dtype::F32 => rule.visit(Measure::<f32> { touched, buffer, out, stored: [] }),
        Dtype::F16 => rule.visit(Measure::<f16> { touched, buffer, out, stored: [] }),
        Dtype::Bf16 => rule.visit(Measure::<bf16> { touched, buffer, out, stored: [] }),
    }
}

struct Apply<'a, 'b, E> {
    instructions: Instructions,
    touched: Touched<'a>,
    buffer: &'b mut [f32],
    stored: [E; 0],
}

impl<E: Element> RuleVisitor for Apply<'_, '_, E> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let Self { touched, buffer, stored, .. } = self;
        dispatch(self.instructions, ApplyKernel { rule, touched, buffer, _stored: stored });
    }
}

struct ApplyKernel<'a, 'b, E, R> {
    rule: R,
    touched: Touched<'a>,
    buffer: &'b mut [f32],
    _stored: [E; 0],
}

impl<E: Element, R: RowRule> Kernel for ApplyKernel<'_, '_, E, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Cut columns have any width: copies for common dims would only lengthen the build.
        apply_rows::<E, R, 0>(self.rule, self.touched, self.buffer);
    }
}

struct ApplyRun<'a, 'b, E> {
    instructions: Instructions,
    run: Run<'a>,
    step: u64,
    sums: &'b mut [f32],
    buffer: &'b mut [f32],
    stored: [E; 0],
}

impl<E: Element> RuleVisitor for ApplyRun<'_, '_, E> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let (instructions, _) = (self.instructions, self.stored);
        // As many kernels as pay: 16-bit rows are bound by their rounding.
        if self.run.is_plain() && E::DTYPE == Dtype::F32 {
            dispatch(instructions, RunKernel::<E, R, true> { rule, of: self });
        } else {
            dispatch(instructions, RunKernel::<E, R, false> { rule, of: self });
        }
    }
}

struct RunKernel<'a, 'b, E, R, const PLAIN: bool> {
    rule: R,
    of: ApplyRun<'a, 'b, E>,
}

impl<E: Element, R: RowRule, const PLAIN: bool> Kernel for RunKernel<'_, '_, E, R, PLAIN> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.of.run.table.dim {
            64 if PLAIN => self.blocks::<64>(),
            128 if PLAIN => self.blocks::<128>(),
            _ => self.blocks::<0>(),
        }
    }
}

impl<E: Element, R: RowRule, const PLAIN: bool> RunKernel<'_, '_, E, R, PLAIN> {
    /// All blocks; `DIM` as in [`apply_rows`].
    ///
    /// A block takes three passes: sums, statistics, steps. Each is a short chain of dependent
    /// instructions a row, so that a core has many rows in flight; one pass would be one long chain
    /// (a seventh slower than two on Emerald Rapids, row-wise `AdaGrad`, dim 64).
    #[inline(always)]
    fn blocks<const DIM: usize>(self) {
        let Self { rule, of: ApplyRun { mut run, step, sums, buffer, .. } } = self;
        let table = run.table;
        let dim = if DIM == 0 { table.dim } else { DIM };
        let block = (sums.len() / dim).min(BLOCK_ROWS);
        let (mut rows, mut totals) = ([0; BLOCK_ROWS], [0.0; BLOCK_ROWS]);
        while run.begin < run.end {
            let (next, n) = run.sum_block::<PLAIN>(dim, &mut rows[..block], sums);
            let mut touched = Touched { table, rows: &rows[..n], sums, totals: None, step };
            // Other dtypes are loaded into the buffer first, once for both passes.
            if E::DTYPE == Dtype::F32 && rule.uses_statistic() {
                for ((total, &row), grad) in
                    totals.iter_mut().zip(touched.rows).zip(touched.sums.chunks_exact(dim))
                {
                    // SAFETY: the caller promises the row to be in the table, and this thread's.
                    let weights = unsafe { table.weights.part_mut(row as usize * dim, dim) };
                    *total = rule.statistic(weights, grad);
                }
                touched.totals = Some(&totals[..n]);
            }
            apply_rows::<E, R, DIM>(rule, touched, buffer);
            run.begin = next;
        }
    }
}

/// Applies the rule to all rows touched, which are the caller's alone; `DIM` is the table's, or 0
/// for one only known at run time.
#[inline(always)]
fn apply_rows<E: Element, R: RowRule, const DIM: usize>(
    rule: R,
    touched: Touched<'_>,
    buffer: &mut [f32],
) {
    let table = touched.table;
    let dim = if DIM == 0 { table.dim } else { DIM };
    let rounding = match (E::DTYPE, table.spec().rounding) {
        (Dtype::F16 | Dtype::Bf16, Rounding::Stochastic) => Some(table.rounding_bits(touched.step)),
        _ => None,
    };
    for (k, &row) in touched.rows.iter().enumerate() {
        // SAFETY: the caller promises the row to be in the table, and this thread's alone.
        let stored = unsafe { table.weights.part_mut::<E>(row as usize * dim, dim) };
        if E::DTYPE == Dtype::F32 {
            step(rule, touched, k, row, bytemuck::cast_slice_mut(stored));
            continue;
        }
        let weights = &mut buffer[..dim];
        for (w, from) in weights.iter_mut().zip(&*stored) {
            *w = from.load();
        }
        step(rule, touched, k, row, weights);
        match rounding {
            Some(bits) => round(bits, table, row, weights, stored),
            None => {
                for (to, &w) in stored.iter_mut().zip(&*weights) {
                    *to = E::nearest(w);
                }
            }
        }
    }
}

/// One step of the rule on row `row`, the `k`-th of those touched.
#[inline(always)]
fn step<R: RowRule>(rule: R, touched: Touched<'_>, k: usize, row: u64, weights: &mut [f32]) {
    let (table, dim) = (touched.table, weights.len());
    let grad = &touched.sums[k * dim..(k + 1) * dim];
    let total = match touched.totals {
        Some(totals) => totals[k],
        None if rule.uses_statistic() => rule.statistic(weights, grad),
        None => 0.0,
    };
    let statistic = Statistic { total, dim: table.spec().window.table_dim };
    rule.step(weights, row_state(table, row as usize, dim), grad, statistic);
}

/// Stores a row with stochastic rounding, keyed by its global position.
#[inline(always)]
fn round<E: Element>(
    bits: RoundingBits,
    table: &Table,
    row: u64,
    weights: &[f32],
    stored: &mut [E],
) {
    let first = table.spec().window.first_column;
    let row = table.global_row(row);
    let mut random = [0; ROUNDING_COLUMNS];
    let mut done = 0;
    while done < weights.len() {
        let (block, skip) = ((first + done) / ROUNDING_COLUMNS, (first + done) % ROUNDING_COLUMNS);
        bits.fill(row, block, &mut random);
        let n = (ROUNDING_COLUMNS - skip).min(weights.len() - done);
        let random = &random[skip..skip + n];
        let stored = &mut stored[done..done + n];
        for ((to, &w), &random) in stored.iter_mut().zip(&weights[done..done + n]).zip(random) {
            *to = E::stochastic(w, random);
        }
        done += n;
    }
}

/// The optimizer state of a row.
#[inline(always)]
fn row_state(table: &Table, row: usize, dim: usize) -> RowState<'_> {
    let width = table.element_slots * dim;
    RowState {
        // SAFETY: the callers' promise for the row's weights holds for its state.
        row: unsafe { table.row_state.part_mut(row * table.row_slots, table.row_slots) },
        // SAFETY: as above.
        element: unsafe { table.element_state.part_mut(row * width, width) },
    }
}

struct Measure<'a, 'b, E> {
    touched: Touched<'a>,
    buffer: &'b mut [f32],
    out: &'b mut [f64],
    stored: [E; 0],
}

impl<E: Element> RuleVisitor for Measure<'_, '_, E> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let dim = self.touched.table.dim;
        let _ = self.stored;
        for (k, (&row, out)) in self.touched.rows.iter().zip(self.out).enumerate() {
            // SAFETY: as in `apply`.
            let stored =
                unsafe { self.touched.table.weights.part_mut::<E>(row as usize * dim, dim) };
            for (w, from) in self.buffer.iter_mut().zip(&*stored) {
                *w = from.load();
            }
            *out = rule.statistic(self.buffer, &self.touched.sums[k * dim..(k + 1) * dim]);
        }
    }
}
