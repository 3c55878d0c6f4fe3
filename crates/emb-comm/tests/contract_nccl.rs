//! The failure contract of ranks over NCCL. Needs a driver: `cargo xtask test-simt` and
//! `cargo xtask test-mpi` have one.
#![cfg(not(loom))]

mod devices;
#[path = "contract/rows.rs"]
mod rows;
#[path = "contract/threads.rs"]
mod threads;

use emb_comm::conformance::Placed;
use emb_comm::conformance::contract::{Case, Fault, WORLD};
use emb_comm::{DeviceSpace, Nccl, NcclOptions};

#[test]
fn u28_whatever_a_rank_of_nccl_does_every_other_is_told() {
    if let Err(error) = Nccl::library() {
        eprintln!("skipped: {error}");
        return;
    }
    let devices = devices::devices(WORLD);
    if devices.len() < WORLD {
        return;
    }
    let cases = Case::of(&Fault::OF_RANKS);
    let rows = threads::run("nccl", &cases, |timeout| {
        let options = NcclOptions::default().with_timeout(timeout);
        let ranks = Nccl::threads(&devices, &options).expect("all come");
        let place = |rank: Nccl| {
            let stream = rank.space().stream().device().stream().expect("a stream");
            Placed::new(DeviceSpace::new(&stream), rank)
        };
        ranks.into_iter().map(place).collect()
    });
    rows::assert_kept(&rows);
}
