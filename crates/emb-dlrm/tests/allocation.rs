//! No allocation in the step after warm-up, and memory that stays flat.
#![expect(missing_docs, reason = "a test")]

use emb_dlrm::config::{Config, Options};
use emb_dlrm::data::{Batch, Source};
use emb_dlrm::sources;
use emb_dlrm::train::{Samples, build};
use emb_kernels::{Cpu, CpuOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counts calls and live bytes.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is passed on to the system allocator unchanged; the counters are atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn five_thousand_steps_allocate_nothing_and_memory_stays_flat() {
    for (threads, model) in [(1, "dlrm"), (2, "dlrm"), (2, "dlrm-dcn")] {
        let options = Options {
            data: vec!["synthetic".into()],
            rows_per_table: Some(1000),
            dim: Some(8),
            bottom: Some(vec![32]),
            top: Some(vec![32]),
            batch_size: Some(32),
            threads: Some(threads),
            model: Some(model.parse().expect("a model")),
            dcn_rank: (model == "dlrm-dcn").then_some(8),
            ..Options::default()
        };
        let config = Config::resolve(options).expect("a configuration");
        let cpu = Cpu::new(CpuOptions { threads }).expect("a backend");
        let mut trainer = build(cpu, &config).expect("a model");
        let mut source = sources::training(&config).expect("data");
        let mut batch = Batch::default();
        let mut step = |rows: usize| {
            source.next(rows, &mut batch).expect("samples");
            let samples = Samples {
                dense: &batch.dense,
                labels: &batch.labels,
                sparse: batch.sparse.as_ref(),
            };
            trainer.train_step(samples).expect("a step")
        };
        for rows in [32, 7, 32, 1, 32] {
            step(rows);
        }
        let (calls, live) = (CALLS.load(Ordering::Relaxed), LIVE.load(Ordering::Relaxed));
        for i in 0..5000 {
            step(if i % 10 == 3 { 17 } else { 32 });
        }
        let calls = CALLS.load(Ordering::Relaxed) - calls;
        let live = LIVE.load(Ordering::Relaxed) - live;
        assert_eq!((calls, live), (0, 0), "{threads} threads, {model}: calls, bytes");
    }
}
