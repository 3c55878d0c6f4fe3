//! Training over NCCL with the processor computing: what moves data apart from what computes.

use crate::support::{criteo, devices, on_the_processor, options, over};
use emb_comm::{Collective, Local, Nccl, NcclOptions, Staged, run};
use emb_cuda::Device;
use emb_dlrm::Error;
use emb_dlrm::config::{Config, Options, Ranks};
use emb_dlrm::data::{Batch, share};
use emb_dlrm::sources;
use emb_dlrm::train::{Samples, build_rank};
use emb_kernels::{Cpu, CpuOptions};

const STEPS: usize = 10;

/// Losses and dense weights of a rank after a few steps.
fn steps<C: Collective + 'static>(
    world: &mut C,
    config: &Config,
    ranks: &Ranks,
    batches: &[Batch],
) -> Result<(Vec<u64>, Vec<u32>), Error> {
    let cpu = Cpu::new(CpuOptions { threads: 1 })?;
    let mut trainer = build_rank(world, cpu, config, ranks)?;
    let mut losses = Vec::new();
    for batch in batches {
        let mut own = Batch::default();
        batch.copy_rows(share(batch.rows, world.world(), world.rank()), &mut own)?;
        let (dense, labels) = (&own.dense[..], &own.labels[..]);
        let samples = Samples { dense, labels, sparse: own.sparse.as_ref() };
        losses.push(trainer.train_share(samples, batch.rows)?.sum.to_bits());
    }
    trainer.sync()?;
    let weights = trainer.model.dense.weights.iter().map(|weight| weight.to_bits()).collect();
    Ok((losses, weights))
}

#[test]
fn ranks_over_nccl_train_to_the_bits_of_ranks_over_memory() {
    let Some(data) = criteo("train").filter(|_| devices(4)) else { return };
    for (world, replicas) in [(2, 1), (4, 2)] {
        let options: Options = on_the_processor(&over(&options(&data), world, replicas));
        let config = Config::resolve(options).expect("consistent");
        let ranks = config.ranks.as_ref().expect("ranks");
        let mut source = sources::training(&config).expect("data");
        let mut read = || {
            let mut batch = Batch::default();
            source.next(config.batch_size, &mut batch).expect("samples");
            batch
        };
        let batches: Vec<Batch> = (0..STEPS).map(|_| read()).collect();
        let world = world as usize;
        let options = emb_comm::Options::default();
        let expected =
            run(world, &options, |threads: &mut Local| steps(threads, &config, ranks, &batches));
        let devices: Vec<Device> =
            (0..world).map(|device| Device::open(device).expect("a device")).collect();
        let got = run(world, &options, |threads: &mut Local| {
            let (rank, device) = (threads.rank(), &devices[threads.rank()]);
            let own = threads.split(Some(0), rank)?.expect("all ranks");
            let nccl = Nccl::over(own, device, &NcclOptions::default())?;
            let stream = device.stream().map_err(emb_kernels::Error::from)?;
            steps(&mut Staged::new(nccl, &stream), &config, ranks, &batches)
        });
        let expected = expected.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(got.unwrap_or_else(|failure| panic!("{failure}")), expected, "{world} ranks");
    }
}

#[test]
fn a_rank_that_fails_is_named_by_all_over_nccl() {
    if !devices(2) {
        return;
    }
    let failure = run(2, &emb_comm::Options::default(), |threads: &mut Local| {
        let (rank, device) = (threads.rank(), Device::open(threads.rank()));
        let own = threads.split(Some(0), rank)?.expect("all ranks");
        let device = device.map_err(emb_kernels::Error::from)?;
        let mut nccl = Nccl::over(own, &device, &NcclOptions::default())?;
        nccl.set_step(7);
        if rank == 1 {
            return Err(Error::Config("out of samples".to_owned()));
        }
        Ok(nccl.barrier()?)
    });
    let failure = failure.expect_err("rank 1 does not come").to_string();
    assert_eq!(failure, "rank 1 failed in step 7: out of samples");
}
