//! The failure contract of ranks over NCCL. Needs a driver: `cargo xtask test-simt` and
//! `cargo xtask test-mpi` have one.
#![cfg(not(loom))]

mod control;
mod devices;
#[path = "contract/rows.rs"]
mod rows;
#[path = "contract/threads.rs"]
mod threads;

use control::controls;
use emb_comm::conformance;
use emb_comm::conformance::contract::{Case, Fault, Sets, WORLD};
use emb_comm::{DeviceSpace, Nccl, NcclControl, NcclOptions, UniqueId};
use emb_cuda::Device;
use std::time::Duration;
use threads::Promise;

type Placed = conformance::Placed<DeviceSpace, Nccl>;

/// Devices for four ranks; without, the reason is printed and the test is skipped.
fn four() -> Option<Vec<Device>> {
    if let Err(error) = Nccl::library() {
        eprintln!("skipped: {error}");
        return None;
    }
    Some(devices::devices(WORLD)).filter(|devices| devices.len() == WORLD)
}

fn place(rank: Nccl) -> Placed {
    let stream = rank.space().stream().device().stream().expect("a stream");
    conformance::Placed::new(DeviceSpace::new(&stream), rank)
}

#[test]
fn u28_whatever_a_rank_of_nccl_does_every_other_is_told() {
    let Some(devices) = four() else { return };
    let cases: Vec<_> =
        Case::of(&Fault::OF_RANKS).into_iter().map(|c| (c, Promise::WHOLE)).collect();
    let rows = threads::run("nccl", &cases, |timeout| {
        let options = NcclOptions::default().with_timeout(timeout);
        let ranks = Nccl::threads(&devices, &options).expect("all come");
        ranks.into_iter().map(place).collect()
    });
    rows::assert_kept(&rows);
}

/// The ranks of a world that joined as processes do, by an id; with a control, if there is one.
fn by_id(devices: &[Device], controls: &[NcclControl], timeout: Duration) -> Vec<Placed> {
    let options = &NcclOptions::default().with_timeout(timeout);
    let id = UniqueId::new().expect("an id");
    std::thread::scope(|scope| {
        let join = |(rank, device)| {
            let control = controls.get(rank);
            scope.spawn(move || match control {
                Some(control) => Nccl::from_id_with(device, id, control, options),
                None => Nccl::from_id(device, id, rank, WORLD, options),
            })
        };
        let threads: Vec<_> = devices.iter().enumerate().map(join).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.map(|rank| place(rank.expect("all come"))).collect()
    })
}

#[test]
fn u28_whatever_a_rank_of_nccl_does_that_joined_as_processes_do_every_other_is_told() {
    let Some(devices) = four() else { return };
    let cases: Vec<_> =
        Case::of(&Fault::OF_RANKS).into_iter().map(|c| (c, Promise::WHOLE)).collect();
    let rows =
        threads::run("nccl by id", &cases, |timeout| by_id(&devices, &controls(WORLD), timeout));
    rows::assert_kept(&rows);
}

/// Without a control, processes have no way to each other but NCCL's. In one dimension, the next
/// call tells all; in two, with a duplicate at work, an end of the library's may overtake the reason.
#[test]
fn u28_without_a_control_every_other_rank_ends_all_the_same() {
    let Some(devices) = four() else { return };
    let cases = Case::of(&Fault::OF_RANKS).into_iter().filter_map(|case| {
        let is_silent = case.fault == Fault::Leaves || case.fault.takes_the_timeout();
        match case.sets {
            Sets::World if is_silent => Some((case, Promise { waits: true, names: true })),
            Sets::World => Some((case, Promise::WHOLE)),
            Sets::Group => Some((case, Promise { waits: true, names: false })),
            _ => None,
        }
    });
    let cases: Vec<_> = cases.collect();
    let rows = threads::run("nccl, id alone", &cases, |timeout| by_id(&devices, &[], timeout));
    rows::assert_kept(&rows);
}
