//! What one rank computes and reads while all ranks do: [`Rates`].

use super::{Progress, Sampler};
use crate::Result;
use emb_comm::Collective;
use emb_kernels::{
    Accumulate, Backend, Cpu, CpuOptions, Feature, FeatureMap, Jagged, Mat, Pooling, TableSpec,
    Transpose,
};
use emb_optim::{Optimizer, RuleKind};
use std::time::Duration;

/// Rows of the table looked up: with [`DIM`] columns 64 MiB, beyond caches.
const ROWS: u64 = 1 << 18;

/// Columns of a row: 256 bytes.
const DIM: usize = 64;

/// Bags, and rows of each.
const BAGS: (usize, usize) = (2048, 16);

/// Rows and columns of the matrices multiplied.
const SIDE: usize = 512;

/// Bytes copied.
const COPIED: usize = 32 << 20;

/// Rates of one rank, with all ranks of its host at work.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rates {
    /// Bytes a second of rows looked up at random and summed, by the kernel that trains.
    pub lookup: f64,
    /// Bytes a second read and written by a copy of a long slice.
    pub copy: f64,
    /// Floating-point operations a second of a product of matrices.
    pub flops: f64,
}

/// Called by every rank.
pub(super) fn measure<C: Collective>(
    ranks: &mut C,
    threads: usize,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<Rates> {
    let mut cpu = Cpu::new(CpuOptions { threads })?;
    let specs = [TableSpec::new("rows", ROWS, DIM, Optimizer::new(RuleKind::Sgd))];
    let mut tables = cpu.create_tables(&specs, 1)?;
    let feature = Feature { name: "rows".into(), table: 0, pooling: Pooling::Sum };
    let map = FeatureMap::new(vec![feature], &specs, 0)?;
    let (bags, bag) = BAGS;
    // First every row in order, so that all are in memory; then at random.
    let all: Vec<i64> = (0..ROWS as i64).collect();
    let lengths = vec![ROWS as i64 / bags as i64; bags];
    let whole = Jagged::from_lengths(&["rows"], bags, &lengths, all, None)?;
    let batch =
        Jagged::from_lengths(&["rows"], bags, &vec![bag as i64; bags], ids(bags * bag), None)?;
    let mut out = vec![0.0_f32; bags * DIM];
    cpu.pool(&mut tables, &map, whole.as_ref().view(), Mat::new(&mut out[..], bags, DIM))?;
    let (from, mut to) = (vec![1_u8; COPIED], vec![0_u8; COPIED]);
    let (a, b) = (vec![0.5_f32; SIDE * SIDE], vec![0.25_f32; SIDE * SIDE]);
    let mut c = vec![0.0_f32; SIDE * SIDE];
    let told = |done| progress("look-ups, copies and products of a rank", done);
    let sampler = Sampler::run(ranks, 3, budget, &told, |_, operation| {
        match operation {
            0 => {
                let out = Mat::new(&mut out[..], bags, DIM);
                cpu.pool(&mut tables, &map, batch.as_ref().view(), out)?;
            }
            1 => to.copy_from_slice(std::hint::black_box(&from)),
            _ => {
                let square = |values| Mat::new(values, SIDE, SIDE);
                let (no, set) = (Transpose::No, Accumulate::Replace);
                let c = Mat::new(&mut c[..], SIDE, SIDE);
                cpu.gemm(square(&a[..]), no, square(&b[..]), no, set, c)?;
            }
        }
        Ok(())
    })?;
    std::hint::black_box((&out, &to, &c));
    let seconds = sampler.undisturbed();
    Ok(Rates {
        lookup: (bags * bag * DIM * size_of::<f32>()) as f64 / seconds[0],
        copy: 2.0 * COPIED as f64 / seconds[1],
        // A multiplication and an addition each.
        flops: 2.0 * (SIDE as f64).powi(3) / seconds[2],
    })
}

/// Rows that follow no order that a processor foresees: a full-period generator modulo 2^18
/// (Knuth, The Art of Computer Programming 2, section 3.2.1.2).
fn ids(count: usize) -> Vec<i64> {
    let mut id = 12345_u64;
    let mut next = || {
        id = (id * 69069 + 1013) % ROWS;
        id as i64
    };
    (0..count).map(|_| next()).collect()
}
