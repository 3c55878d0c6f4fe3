//! No allocation in a whole training step over ranks after warm-up: tables, dense part and the
//! sums of its gradients, by any of the threads.

use emb_comm::{Collective, Options as WorldOptions, run};
use emb_dlrm::Error;
use emb_dlrm::config::{Config, Options};
use emb_dlrm::data::{Batch, Source, share};
use emb_dlrm::sources;
use emb_dlrm::train::{Samples, Watch, build_rank};
use emb_kernels::{Cpu, CpuOptions};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WORLD: usize = 4;
/// Samples of the global batches: uneven shares, and ranks without any.
const ROWS: [usize; 4] = [18, 3, 16, 7];
const WARM_UP: usize = 16;
const STEPS: usize = 60;

/// By rank and batch.
fn shares(config: &Config) -> Vec<Vec<Batch>> {
    let mut source = sources::training(config).expect("data");
    let mut shares = vec![Vec::new(); WORLD];
    for rows in ROWS {
        let mut batch = Batch::default();
        source.next(rows, &mut batch).expect("samples");
        for (rank, shares) in shares.iter_mut().enumerate() {
            let mut own = Batch::default();
            batch.copy_rows(share(rows, WORLD, rank), &mut own).expect("a share");
            shares.push(own);
        }
    }
    shares
}

fn allocations(plan: &str, sync: &str) -> usize {
    let options = Options {
        data: vec!["synthetic".into()],
        world: Some(WORLD as u32),
        // Watched, without a look in these steps.
        health: Some(1000),
        replicas: Some(2),
        plan: Some(plan.into()),
        sync: Some(sync.parse().expect("a sync")),
        rows_per_table: Some(200),
        dim: Some(8),
        bottom: Some(vec![16]),
        top: Some(vec![16]),
        ..Options::default()
    };
    let config = Config::resolve(options).expect("a configuration");
    let ranks = config.ranks.as_ref().expect("ranks");
    let shares = shares(&config);
    let counts = run(WORLD, &WorldOptions::default(), |world| {
        let cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut trainer = build_rank(world, cpu, &config, ranks)?;
        let mut watch = Watch::new(&config, ranks, &mut trainer)?.expect("wanted");
        let own = &shares[world.rank()];
        let mut steps = |count: usize| {
            for step in 0..count {
                let (batch, rows) = (&own[step % own.len()], ROWS[step % ROWS.len()]);
                let samples = Samples {
                    dense: &batch.dense,
                    labels: &batch.labels,
                    sparse: batch.sparse.as_ref(),
                };
                trainer.train_share(samples, rows)?;
                watch.after_step(&mut trainer, batch.sparse.as_ref())?;
            }
            Ok::<_, Error>(())
        };
        steps(WARM_UP)?;
        world.barrier()?;
        let region = Region::new(ALLOCATOR);
        world.barrier()?;
        steps(STEPS)?;
        world.barrier()?;
        let change = region.change();
        world.barrier()?;
        Ok::<_, Error>(change.allocations + change.reallocations)
    });
    counts.unwrap_or_else(|failure| panic!("{failure}")).into_iter().max().unwrap_or(0)
}

/// One test alone: threads of another would be counted.
#[test]
fn sixty_training_steps_over_ranks_allocate_nothing() {
    for (plan, sync) in
        [("table-wise", "weights"), ("row-wise", "weights"), ("column-wise", "gradients")]
    {
        assert_eq!(allocations(plan, sync), 0, "{plan}, sync {sync}");
    }
}
