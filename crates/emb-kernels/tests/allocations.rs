//! A training step allocates nothing once every buffer has been seen at its largest.

use emb_kernels::RowGradients;
use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{
    Backend, Bucketized, Dtype, Feature, FeatureMap, Gradients, Jagged, Mat, Pooling, RowMapView,
    TableSpec, Unique,
};
use emb_optim::{Optimizer, RuleKind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SAMPLES: usize = 64;

/// Batches of changing lengths, with weights or without.
fn batches(features: usize, weighted: bool) -> Vec<Jagged> {
    let names: Vec<String> = (0..features).map(|f| format!("f{f}")).collect();
    let batch = |b: usize| {
        let lengths: Vec<i64> =
            (0..features * SAMPLES).map(|bag| ((bag * 7 + b * 3) % 9) as i64).collect();
        let n = lengths.iter().sum::<i64>();
        let values = (0..n).map(|k| (k * 2_654_435_761 + b as i64) % 1000).collect();
        let weights = weighted.then(|| (0..n).map(|k| 0.5 + (k % 3) as f32).collect());
        Jagged::from_lengths(&names, SAMPLES, &lengths, values, weights).expect("a batch")
    };
    (0..8).map(batch).collect()
}

fn steps_allocate_nothing(threads: usize, weighted: bool, steps: usize) {
    let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads");
    let kinds = [RuleKind::RowWiseAdaGrad, RuleKind::Sgd, RuleKind::Adam];
    let dtypes = [Dtype::F32, Dtype::F16, Dtype::Bf16];
    let specs: Vec<TableSpec> = (0..3)
        .map(|t| TableSpec {
            dtype: dtypes[t],
            ..TableSpec::new(format!("t{t}"), 1000, [16, 33, 64][t], Optimizer::new(kinds[t]))
        })
        .collect();
    let pooling = [Pooling::Sum, Pooling::Mean, Pooling::None, Pooling::Sum];
    let features =
        (0..4).map(|f| Feature { name: format!("f{f}"), table: f % 3, pooling: pooling[f] });
    let map = FeatureMap::new(features.collect(), &specs, 0).expect("features");
    let mut tables = cpu.create_tables(&specs, 1).expect("tables");
    let batches = batches(4, weighted);
    let mut out = vec![0.0; SAMPLES * map.width()];
    let pooled = vec![1e-3; SAMPLES * map.width()];
    let most = batches.iter().map(|batch| batch.as_ref().values.len()).max().expect("batches");
    let mut sequence = vec![0.0; most * 64];
    let mut weight_gradients = vec![0.0; most];
    let (mut lengths, mut ids, mut positions) =
        (vec![0; 2 * 4 * SAMPLES], vec![0; most], vec![0; most]);
    let mut inverse = vec![0; most];
    let maps = [RowMapView::Modulo { owners: 2 }; 4];

    let mut sums = RowGradients::new();
    let mut one = |step: usize| {
        let batch = batches[step % batches.len()].as_ref();
        let view = batch.view();
        let n = batch.values.len();
        let of_sequence = batch.feature_range(2).len();
        let mut split = Bucketized {
            lengths: &mut lengths,
            ids: &mut ids[..n],
            positions: &mut positions[..n],
        };
        cpu.bucketize(batch, &maps, &mut split).expect("owners");
        let mut distinct = Unique { ids: &mut ids[..n], inverse: &mut inverse[..n] };
        cpu.unique(batch.values, &mut distinct).expect("ids");
        let to = Mat::new(&mut out[..], SAMPLES, map.width());
        cpu.pool(&mut tables, &map, view, to).expect("lookup");
        let to = Mat::new(&mut sequence[..of_sequence * 64], of_sequence, 64);
        cpu.gather(&mut tables, &map, 2, view, to).expect("lookup");
        cpu.gather_all(&mut tables, &map, view, &mut sequence[..of_sequence * 64]).expect("lookup");
        let gradient = Mat::new(&pooled[..], SAMPLES, map.width());
        cpu.weight_gradients(&mut tables, &map, view, gradient, &mut weight_gradients[..n])
            .expect("gradients of weights");
        let sequences = [(2, Mat::new(&sequence[..of_sequence * 64], of_sequence, 64))];
        let gradients = Gradients { pooled: gradient, sequences: &sequences };
        let rules: [_; 3] = std::array::from_fn(|t| specs[t].optimizer.rule(0.01, step as u64 + 1));
        cpu.scatter_update(&mut tables, &map, view, &gradients, &rules, step as u64)
            .expect("update");
        // The same in two phases, as owners of column cuts do it.
        cpu.row_gradients(&mut tables, &map, view, &gradients, &rules, &mut sums).expect("sums");
        let totals: [_; 3] = std::array::from_fn(|t| sums.statistics(t));
        cpu.apply(&mut tables, &sums, &totals, &rules, step as u64).expect("update");
    };
    for step in 0..50 {
        one(step);
    }
    let before = (ALLOCATIONS.load(Ordering::Relaxed), LIVE.load(Ordering::Relaxed));
    for step in 50..50 + steps {
        one(step);
    }
    let after = (ALLOCATIONS.load(Ordering::Relaxed), LIVE.load(Ordering::Relaxed));
    assert_eq!(after, before, "allocations and live bytes, {threads} threads");
}

/// One test, for the counters are of the whole process.
#[test]
fn five_thousand_steps_allocate_nothing() {
    for threads in [1, 2] {
        steps_allocate_nothing(threads, false, 5000);
        steps_allocate_nothing(threads, true, 500);
    }
}
