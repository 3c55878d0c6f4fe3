//! Pooled lookup of all tables in one call.
//!
//! A bag moves `ids * (8 + dim * element bytes)` bytes in and `dim * 4` out, and adds `ids * dim`
//! numbers: it is bound by memory. Hence rows are prefetched some tens ahead across bags, and the
//! sum of a bag is kept in registers, a tile of columns at a time.

use super::Cpu;
use super::detect::{Instructions, Kernel, dispatch, prefetch};
use super::dtype::Element;
use super::ids::{check_and_touch, check_shapes, expect_shape};
use super::parallel::split;
use super::shared::SharedMut;
use super::table::{CpuTables, Table};
use crate::features::pooled_features;
use crate::{Dtype, FeatureMap, JaggedView, Mat, Pooling, Result};
use half::{bf16, f16};

/// Bytes of rows in flight between a prefetch and its use. From 2 to 16 KiB nothing changed beyond
/// noise on Zen 3 (dims 64 and 128).
const PREFETCH_BYTES: usize = 8192;

/// Smallest number of bags worth a part of its own.
const MIN_BAGS: usize = 64;

#[expect(clippy::needless_pass_by_value, reason = "an exclusive view is handed over")]
pub(crate) fn pool(
    threads: usize,
    instructions: Instructions,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    out: Mat<&mut [f32]>,
) -> Result<()> {
    check_shapes("pool", tables, map, batch)?;
    let shape = (out.rows, out.cols, out.stride, out.data.len());
    expect_shape("pool", "output", shape, batch.batch, map.width())?;
    check_and_touch(threads, tables, map, batch, 0..map.features().len())?;
    let features = pooled_features(map).count();
    if batch.batch == 0 || features == 0 {
        return Ok(());
    }
    let pieces = if threads == 1 { 1 } else { (8 * threads).div_ceil(features) };
    let bags = batch.batch.div_ceil(pieces).max(MIN_BAGS);
    let pieces = batch.batch.div_ceil(bags);
    let stride = out.stride;
    let out = SharedMut::new(out.data);
    split(threads, map.features().len() * pieces, &|part: usize| {
        let f = part / pieces;
        if map.features()[f].pooling == Pooling::None {
            return;
        }
        let first = part % pieces * bags;
        let end = (first + bags).min(batch.batch);
        let bags = Bags {
            offsets: &batch.offsets[f * batch.batch + first..=f * batch.batch + end],
            values: batch.values,
            weights: batch.weights,
            mean: map.features()[f].pooling == Pooling::Mean,
            dim: map.dim(f),
            out,
            first: first * stride + map.column(f),
            stride,
        };
        let table = &tables.tables()[map.features()[f].table];
        match table.dtype {
            Dtype::F32 => pool_as::<f32>(instructions, table, bags),
            Dtype::F16 => pool_as::<f16>(instructions, table, bags),
            Dtype::Bf16 => pool_as::<bf16>(instructions, table, bags),
        }
    });
    Ok(())
}

/// Consecutive bags of one feature, and where their sums go.
#[derive(Clone, Copy)]
struct Bags<'a> {
    /// `[bags + 1]`.
    offsets: &'a [u64],
    values: &'a [i64],
    weights: Option<&'a [f32]>,
    mean: bool,
    dim: usize,
    out: SharedMut<'a, f32>,
    /// Place in `out` of the first bag.
    first: usize,
    stride: usize,
}

fn pool_as<E: Element>(instructions: Instructions, table: &Table, bags: Bags<'_>) {
    // SAFETY: a lookup only reads weights, and the tables are borrowed for it as a whole.
    let rows = unsafe { table.weights.slice::<E>() };
    match bags.weights {
        None => dispatch(instructions, PoolKernel::<E, false> { rows, bags }),
        Some(_) => dispatch(instructions, PoolKernel::<E, true> { rows, bags }),
    }
}

struct PoolKernel<'a, E, const WEIGHTED: bool> {
    rows: &'a [E],
    bags: Bags<'a>,
}

impl<E: Element, const WEIGHTED: bool> Kernel for PoolKernel<'_, E, WEIGHTED> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, bags } = self;
        let dim = bags.dim;
        let distance = (PREFETCH_BYTES / (dim * size_of::<E>())).clamp(4, 64);
        let end = bags.offsets[bags.offsets.len() - 1] as usize;
        let ids = &bags.values[..end];
        let mut ahead = bags.offsets[0] as usize;
        for (b, pair) in bags.offsets.windows(2).enumerate() {
            let (from, to) = (pair[0] as usize, pair[1] as usize);
            let target = (to + distance).min(end);
            while ahead < target {
                let start = ids[ahead] as usize * dim;
                prefetch(&rows[start..start + dim]);
                ahead += 1;
            }
            let weights = if WEIGHTED { bags.weights.map(|w| &w[from..to]) } else { None };
            let bag = Bag { rows, dim, ids: &ids[from..to], weights: weights.unwrap_or(&[]) };
            // SAFETY: features have disjoint columns and bags disjoint rows of the output.
            let out = unsafe { bags.out.part(bags.first + b * bags.stride, dim) };
            bag.sum::<WEIGHTED>(out);
            if bags.mean {
                let total = bag.total::<WEIGHTED>();
                // Where the weights sum to 0 there is no mean; the output is 0.
                let nothing = total == 0.0;
                for value in out {
                    *value = if nothing { 0.0 } else { *value / total };
                }
            }
        }
    }
}

/// One bag.
#[derive(Clone, Copy)]
struct Bag<'a, E> {
    rows: &'a [E],
    dim: usize,
    ids: &'a [i64],
    weights: &'a [f32],
}

impl<E: Element> Bag<'_, E> {
    /// `out = sum_i w_i * row(id_i)`, rows in bag order.
    #[inline(always)]
    fn sum<const WEIGHTED: bool>(&self, out: &mut [f32]) {
        let mut column = 0;
        while column + 64 <= out.len() {
            self.tile::<WEIGHTED, 64>(column, out);
            column += 64;
        }
        let rest = out.len() - column;
        if rest & 32 != 0 {
            self.tile::<WEIGHTED, 32>(column, out);
            column += 32;
        }
        if rest & 16 != 0 {
            self.tile::<WEIGHTED, 16>(column, out);
            column += 16;
        }
        if rest & 8 != 0 {
            self.tile::<WEIGHTED, 8>(column, out);
            column += 8;
        }
        if rest & 4 != 0 {
            self.tile::<WEIGHTED, 4>(column, out);
            column += 4;
        }
        if rest & 2 != 0 {
            self.tile::<WEIGHTED, 2>(column, out);
            column += 2;
        }
        if rest & 1 != 0 {
            self.tile::<WEIGHTED, 1>(column, out);
        }
    }

    /// Columns `column..column + N` of the sum, held in registers.
    #[inline(always)]
    fn tile<const WEIGHTED: bool, const N: usize>(&self, column: usize, out: &mut [f32]) {
        let mut sum = [0.0_f32; N];
        for (k, &id) in self.ids.iter().enumerate() {
            let start = id as usize * self.dim + column;
            let row: &[E; N] = self.rows[start..start + N].try_into().expect("invariant: N long");
            if WEIGHTED {
                let weight = self.weights[k];
                for (sum, w) in sum.iter_mut().zip(row) {
                    *sum += weight * w.load();
                }
            } else {
                for (sum, w) in sum.iter_mut().zip(row) {
                    *sum += w.load();
                }
            }
        }
        out[column..column + N].copy_from_slice(&sum);
    }

    /// Sum of the weights, in bag order.
    #[inline(always)]
    fn total<const WEIGHTED: bool>(&self) -> f32 {
        if WEIGHTED { self.weights.iter().sum() } else { self.ids.len() as f32 }
    }
}
