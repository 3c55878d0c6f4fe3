//! No allocation in the step after warm-up, and memory that stays flat.

use emb_dlrm::config::{Config, Options};
use emb_dlrm::data::{Batch, Source};
use emb_dlrm::sources;
use emb_dlrm::train::{Samples, build};
use emb_kernels::{Cpu, CpuOptions};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

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
        let region = Region::new(ALLOCATOR);
        for i in 0..5000 {
            step(if i % 10 == 3 { 17 } else { 32 });
        }
        let change = region.change();
        let calls = (change.allocations, change.reallocations, change.bytes_allocated);
        assert_eq!(calls, (0, 0, 0), "{threads} threads, {model}: {change:?}");
    }
}
