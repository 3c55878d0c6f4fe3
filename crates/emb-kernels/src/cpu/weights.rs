//! Gradients of per-sample weights.

use super::Cpu;
use super::detect::{Instructions, Kernel, dispatch, prefetch};
use super::dtype::Element;
use super::ids::{check_and_touch, check_shapes, expect, expect_shape};
use super::parallel::split;
use super::shared::SharedMut;
use super::table::{CpuTables, Table};
use crate::{Dtype, FeatureMap, JaggedView, Mat, Pooling, Result};
use half::{bf16, f16};

/// Bags of one part.
const PART: usize = 256;

/// Rows between a prefetch and its use.
const DISTANCE: usize = 24;

/// Partial sums of a product of two rows; their order is the same on every machine.
const LANES: usize = 8;

pub(crate) fn weight_gradients(
    threads: usize,
    instructions: Instructions,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    gradient: Mat<&[f32]>,
    out: &mut [f32],
) -> Result<()> {
    check_shapes("weight_gradients", tables, map, batch)?;
    let shape = (gradient.rows, gradient.cols, gradient.stride, gradient.data.len());
    expect_shape("weight_gradients", "pooled gradient", shape, batch.batch, map.width())?;
    expect("weight_gradients", "output", batch.len, out.len())?;
    check_and_touch(threads, tables, map, batch, 0..map.features().len())?;
    let pieces = batch.batch.div_ceil(PART);
    let out = SharedMut::new(out);
    split(threads, map.features().len() * pieces, &|part: usize| {
        let f = part / pieces;
        let first = part % pieces * PART;
        let end = (first + PART).min(batch.batch);
        let offsets = &batch.offsets[f * batch.batch + first..=f * batch.batch + end];
        let (from, to) = (offsets[0] as usize, offsets[end - first] as usize);
        // SAFETY: the values of different bags do not overlap.
        let out = unsafe { out.part(from, to - from) };
        let pooling = map.features()[f].pooling;
        if pooling == Pooling::None {
            return out.fill(0.0);
        }
        let bags = Bags {
            offsets,
            ids: &batch.values[..to],
            weights: batch.weights,
            mean: pooling == Pooling::Mean,
            dim: map.dim(f),
            gradient: &gradient.data[first * gradient.stride + map.column(f)..],
            stride: gradient.stride,
            out,
        };
        let table = &tables.tables()[map.features()[f].table];
        match table.dtype {
            Dtype::F32 => run::<f32>(instructions, table, bags),
            Dtype::F16 => run::<f16>(instructions, table, bags),
            Dtype::Bf16 => run::<bf16>(instructions, table, bags),
        }
    });
    Ok(())
}

fn run<E: Element>(instructions: Instructions, table: &Table, bags: Bags<'_, '_>) {
    // SAFETY: only read here, and the tables are borrowed as a whole.
    let rows = unsafe { table.weights.slice::<E>() };
    dispatch(instructions, WeightKernel { rows, bags });
}

/// Consecutive bags of one feature.
struct Bags<'a, 'b> {
    offsets: &'a [u64],
    ids: &'a [i64],
    weights: Option<&'a [f32]>,
    mean: bool,
    dim: usize,
    /// From the first bag's columns on.
    gradient: &'a [f32],
    stride: usize,
    /// One value an id, from the first bag's on.
    out: &'b mut [f32],
}

struct WeightKernel<'a, 'b, E> {
    rows: &'a [E],
    bags: Bags<'a, 'b>,
}

impl<E: Element> Kernel for WeightKernel<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, bags } = self;
        let start = bags.offsets[0] as usize;
        for (b, pair) in bags.offsets.windows(2).enumerate() {
            let (from, to) = (pair[0] as usize, pair[1] as usize);
            let out = &mut bags.out[from - start..to - start];
            if from == to {
                continue;
            }
            let gradient = &bags.gradient[b * bags.stride..][..bags.dim];
            let (mut total, mut weighted) = (0.0_f32, 0.0_f64);
            for (k, out) in (from..to).zip(out.iter_mut()) {
                if let Some(&next) = bags.ids.get(k + DISTANCE) {
                    prefetch(&rows[next as usize * bags.dim..][..bags.dim]);
                }
                let product = dot(&rows[bags.ids[k] as usize * bags.dim..][..bags.dim], gradient);
                let weight = bags.weights.map_or(1.0, |weights| weights[k]);
                total += weight;
                weighted += f64::from(weight) * product;
                *out = product as f32;
            }
            if bags.mean {
                // <pooled, g> without the pooled row: the mean of the products.
                let total = f64::from(total);
                for out in out {
                    let difference = f64::from(*out) - weighted / total;
                    *out = if total == 0.0 { 0.0 } else { (difference / total) as f32 };
                }
            }
        }
    }
}

/// `<row, gradient>` in `f64`, by lanes.
#[inline(always)]
fn dot<E: Element>(row: &[E], gradient: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (rows, row_rest) = row.as_chunks::<LANES>();
    let (gradients, gradient_rest) = gradient.as_chunks::<LANES>();
    for (w, g) in rows.iter().zip(gradients) {
        for lane in 0..LANES {
            sums[lane] += f64::from(w[lane].load()) * f64::from(g[lane]);
        }
    }
    for ((sum, w), &g) in sums.iter_mut().zip(row_rest).zip(gradient_rest) {
        *sum += f64::from(w.load()) * f64::from(g);
    }
    sums.iter().sum()
}
