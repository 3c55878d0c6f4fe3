//! What this machine's memory gives: a stream, and random rows through the lookup of one big table.

use crate::Options;
use crate::clock::median_ms;
use crate::config::Random;
use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{Backend, Feature, FeatureMap, Init, JaggedView, Mat, Pages, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};

/// Bytes of the table: far more than any cache here.
const TABLE_BYTES: u64 = 1 << 29;

/// Rows read in one sample.
const ROWS: usize = 1 << 17;

/// Measured gigabytes a second.
pub(crate) struct Peak {
    pub(crate) stream: f64,
    rows: Vec<((usize, usize), f64)>,
}

impl Peak {
    pub(crate) fn measure(options: &Options) -> Self {
        let seconds = options.seconds.min(0.5);
        let mut rows = Vec::new();
        for threads in [1, 2] {
            for row_bytes in [128, 256, 512] {
                rows.push(((row_bytes, threads), random_rows(row_bytes, threads, seconds)));
            }
        }
        Self { stream: stream(seconds), rows }
    }

    /// Random rows of this width on this many threads.
    pub(crate) fn rows(&self, row_bytes: usize, threads: usize) -> f64 {
        let found = self.rows.iter().find(|(key, _)| *key == (row_bytes, threads));
        found.map_or(self.stream, |(_, gb)| *gb)
    }
}

fn stream(seconds: f64) -> f64 {
    let data = vec![1_u64; 1 << 25];
    let mut sink = 0_u64;
    let (ms, _) = median_ms(seconds, |_| {
        let (chunks, _) = data.as_chunks::<16>();
        let mut sums = [0_u64; 16];
        for chunk in chunks {
            for (sum, x) in sums.iter_mut().zip(chunk) {
                *sum = sum.wrapping_add(*x);
            }
        }
        sink = sink.wrapping_add(std::hint::black_box(sums.iter().sum::<u64>()));
    });
    std::hint::black_box(sink);
    (data.len() * 8) as f64 / ms / 1e6
}

/// One bag of very many random rows: nothing but reading them.
fn random_rows(row_bytes: usize, threads: usize, seconds: f64) -> f64 {
    let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads");
    let (dim, rows) = (row_bytes / 4, TABLE_BYTES / row_bytes as u64);
    let init = Init::Constant(1.0);
    let spec = TableSpec {
        pages: Pages::Huge,
        init,
        ..TableSpec::new("t", rows, dim, Optimizer::new(RuleKind::Sgd))
    };
    let mut tables = cpu.create_tables(&[spec], 1).expect("table");
    let feature = Feature { name: "f".to_owned(), table: 0, pooling: Pooling::Sum };
    let map = FeatureMap::new(vec![feature], Cpu::specs(&tables), 0).expect("map");
    let mut random = Random(1);
    let sets: Vec<Vec<i64>> =
        (0..4).map(|_| (0..ROWS).map(|_| random.below(rows) as i64).collect()).collect();
    let names = ["f".to_owned()];
    let bags = 512;
    let offsets: Vec<u64> = (0..=bags).map(|bag| (bag * (ROWS / bags)) as u64).collect();
    let mut out = vec![0.0; bags * dim];
    let (ms, _) = median_ms(seconds, |i| {
        let values = &sets[i % sets.len()][..];
        let view = JaggedView::<Cpu> {
            names: &names,
            batch: bags,
            len: ROWS,
            offsets: &offsets,
            values,
            weights: None,
        };
        cpu.pool(&mut tables, &map, view, Mat::new(&mut out[..], bags, dim)).expect("lookup");
    });
    (ROWS * row_bytes) as f64 / ms / 1e6
}
