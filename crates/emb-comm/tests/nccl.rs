//! Ranks over NCCL, a device each. Needs a driver: `cargo xtask test-simt` has one.
#![cfg(not(loom))]

mod control;
mod devices;

use control::controls;
use emb_comm::conformance::{self, Check as Claim, Placed};
use emb_comm::{
    Check, Collective, DeviceSpace, Nccl, NcclOptions, Operation, Staged, Sums, UniqueId,
};
use emb_cuda::Device;
use std::time::Duration;

type Rank = Placed<DeviceSpace, Nccl>;

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

fn options() -> NcclOptions {
    NcclOptions::default().with_timeout(Duration::from_mins(1))
}

/// How ranks come together.
#[derive(Clone, Copy, Debug)]
enum By {
    /// As threads that know each other.
    Threads,
    /// As processes do, by an id.
    Id,
    /// As processes do that tell each other of failures.
    Control,
}

fn ranks(by: By, devices: &[Device], options: &NcclOptions) -> Vec<Nccl> {
    let world = devices.len();
    match by {
        By::Threads => Nccl::threads(devices, options).expect("all come"),
        By::Id | By::Control => {
            let id = UniqueId::new().expect("an id");
            let id = UniqueId::from_bytes(id.to_bytes());
            let controls = if matches!(by, By::Id) { Vec::new() } else { controls(world) };
            std::thread::scope(|scope| {
                let join = |(rank, device)| {
                    let control = controls.get(rank);
                    scope.spawn(move || match control {
                        Some(control) => Nccl::from_id_with(device, id, control, options),
                        None => Nccl::from_id(device, id, rank, world, options),
                    })
                };
                let threads: Vec<_> = devices.iter().enumerate().map(join).collect();
                let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
                joined.map(|rank| rank.expect("all come")).collect()
            })
        }
    }
}

/// Runs `work` on a thread for each rank.
fn each(ranks: Vec<Nccl>, work: impl Fn(Nccl) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for rank in ranks {
            scope.spawn(move || work(rank));
        }
    });
}

fn place(rank: Nccl) -> Rank {
    let space = DeviceSpace::new(&rank.space().stream().device().stream().expect("a stream"));
    Placed::new(space, rank)
}

fn run_all<C: Collective>(rank: &mut C, claims: &[Claim<C>]) {
    for claim in claims {
        let outcome = claim.run(rank);
        outcome.unwrap_or_else(|error| panic!("{}: {error}", claim.name()));
    }
}

fn conforms(by: By, options: NcclOptions, worlds: &[usize]) {
    let all = devices(4);
    for &world in worlds.iter().filter(|&&world| world <= all.len()) {
        each(ranks(by, &all[..world], &options), |rank| {
            let mut placed = place(rank);
            run_all(&mut placed, &conformance::checks());
            placed.into_inner().close().expect("all close");
        });
    }
}

#[test]
fn threads_conform_in_worlds_of_1_to_4() {
    conforms(By::Threads, options(), &[1, 2, 3, 4]);
}

#[test]
fn processes_conform_in_worlds_of_1_to_4() {
    conforms(By::Id, options(), &[1, 2, 3, 4]);
}

#[test]
fn processes_with_a_control_conform_in_worlds_of_1_to_4() {
    conforms(By::Control, options(), &[1, 2, 3, 4]);
}

#[test]
fn sums_of_the_library_conform_where_it_adds_in_rank_order() {
    // The library of the tests does so. On a GPU it does not: there the bits are its own.
    if std::env::var_os("SIMT_DEVICES").is_none() {
        eprintln!("skipped: SIMT_DEVICES is not set, so the library is another one");
        return;
    }
    conforms(By::Threads, options().with_sums(Sums::Native), &[1, 4]);
}

#[test]
fn ranks_that_compare_nothing_conform() {
    conforms(By::Threads, options().with_check(Check::Nothing), &[3]);
    conforms(By::Id, options().with_check(Check::Nothing), &[3]);
}

fn refuses(by: By) {
    let all = devices(4);
    for world in 2..=all.len() {
        for claim in conformance::refusals::<Rank>() {
            each(ranks(by, &all[..world], &options()), |rank| {
                let mut placed = place(rank);
                run_all(&mut placed, std::slice::from_ref(&claim));
                let error = placed.into_inner().close().expect_err("the world has failed");
                assert!(error.to_string().contains("in step 7"), "{}: {error}", claim.name());
            });
        }
    }
}

#[test]
fn threads_refuse_in_worlds_of_2_to_4() {
    refuses(By::Threads);
}

#[test]
fn processes_refuse_in_worlds_of_2_to_4() {
    refuses(By::Id);
}

#[test]
fn processes_with_a_control_refuse_in_worlds_of_2_to_4() {
    refuses(By::Control);
}

#[test]
fn slices_are_staged_over_nccl() {
    let all = devices(3);
    if all.is_empty() {
        return;
    }
    each(ranks(By::Threads, &all, &options()), |rank| {
        let stream = rank.space().stream().device().stream().expect("a stream");
        let mut staged = Staged::new(rank, &stream);
        run_all(&mut staged, &conformance::checks());
        let world = staged.world() as u64;
        let before = staged.meters()[Operation::AllToAllV].bytes();
        let each = vec![5; staged.world()];
        let send = vec![1.5f64; 5 * staged.world()];
        staged.all_to_all_v(&send, &each, &mut send.clone(), &each).expect("an exchange");
        let taken = staged.meters()[Operation::AllToAllV].bytes() - before;
        assert_eq!(taken, 8 * 5 * (world - 1), "from each of the others");
        staged.into_inner().close().expect("all close");
    });
}
