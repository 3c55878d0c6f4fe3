//! A step asks the host for no memory and holds no more of the device than before: a program of its
//! own, since memory of a device is counted for all.
#![cfg(not(loom))]

mod control;
mod devices;

use allocation_counter::measure;
use control::controls;
use emb_comm::{Collective, Nccl, NcclOptions, Result, Staged, UniqueId};
use emb_cuda::Device;
use std::time::Duration;

/// Devices for ranks of NCCL; without the library, the reason is printed and the test is skipped.
fn devices(most: usize) -> Vec<Device> {
    match Nccl::library() {
        Ok(_) => devices::devices(most),
        Err(error) => {
            eprintln!("skipped: {error}");
            Vec::new()
        }
    }
}

/// What a step of training exchanges, in the order of a step, twice so that sizes differ.
fn step(rank: &mut Staged<Nccl>, room: &mut [f32]) -> Result<()> {
    let (me, world) = (rank.rank(), rank.world());
    for len in [1000, 24] {
        let counts = [len; 8];
        let counts = &counts[..world];
        let (send, recv) = room[..2 * len * world].split_at_mut(len * world);
        let mut sizes = [0; 8];
        rank.exchange_counts(counts, &mut sizes[..world])?;
        rank.all_to_all_v(send, counts, recv, counts)?;
        rank.all_reduce(send)?;
        rank.all_reduce(&mut send[..len - 1])?;
        rank.reduce_scatter(send, &mut recv[..len])?;
        rank.all_gather_v(&recv[me * len..][..len], send, counts)?;
        rank.broadcast(&mut send[..len], world - 1)?;
        rank.barrier()?;
    }
    Ok(())
}

/// Host memory asked for in a step of `rank`, and device memory taken by one, after the first.
fn taken(rank: Nccl) -> Result<(u64, u64)> {
    let device = rank.space().stream().device().clone();
    let mut rank = Staged::new(rank, &device.stream()?);
    let mut room = vec![0.5; 2 * 1000 * rank.world()];
    step(&mut rank, &mut room)?;
    rank.barrier()?;
    let before = device.memory()?.0;
    rank.barrier()?;
    let mut outcome = Ok(());
    let asked = measure(|| outcome = step(&mut rank, &mut room));
    outcome?;
    rank.barrier()?;
    let after = device.memory()?.0;
    rank.barrier()?;
    Ok((asked.count_total, before.abs_diff(after)))
}

#[test]
fn a_step_after_the_first_asks_for_no_host_memory_and_holds_no_more_of_the_device() {
    let all: Vec<Device> = devices(3);
    if all.is_empty() {
        return;
    }
    let options = NcclOptions::default().with_timeout(Duration::from_mins(1));
    for (by_id, told) in [(false, false), (true, false), (true, true)] {
        let id = UniqueId::new().expect("an id");
        let controls = if told { controls(all.len()) } else { Vec::new() };
        let mut threads = Vec::new();
        if !by_id {
            threads = Nccl::threads(&all, &options).expect("all come");
        }
        let mut threads = threads.into_iter();
        std::thread::scope(|scope| {
            let ranks: Vec<_> = all
                .iter()
                .enumerate()
                .map(|(rank, device)| {
                    let (own, options, world) = (threads.next(), &options, all.len());
                    let control = controls.get(rank);
                    scope.spawn(move || {
                        let join = || match control {
                            Some(control) => Nccl::from_id_with(device, id, control, options),
                            None => Nccl::from_id(device, id, rank, world, options),
                        };
                        taken(own.unwrap_or_else(|| join().expect("all come")))
                    })
                })
                .collect();
            for rank in ranks {
                let taken = rank.join().expect("no panic").expect("a step");
                assert_eq!(
                    taken,
                    (0, 0),
                    "times asked on the host, bytes of the device: {by_id}, {told}"
                );
            }
        });
    }
}
