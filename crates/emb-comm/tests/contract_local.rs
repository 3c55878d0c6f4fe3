//! The failure contract of [`Local`]: every fault in one dimension and in two.
#![cfg(not(loom))]

#[path = "contract/rows.rs"]
mod rows;
#[path = "contract/threads.rs"]
mod threads;

use emb_comm::conformance::contract::{Case, Fault, Told, WORLD};
use emb_comm::{Local, Options};
use threads::Promise;

#[test]
fn u28_whatever_a_rank_of_local_does_every_other_is_told() {
    let cases: Vec<_> =
        Case::of(&Fault::OF_RANKS).into_iter().map(|c| (c, Promise::WHOLE)).collect();
    let rows = threads::run("local", &cases, |timeout| {
        Local::world(WORLD, &Options::default().with_timeout(timeout))
    });
    rows::assert_kept(&rows);
}

#[test]
fn every_case_is_found_by_its_name_and_told_by_a_line() {
    for case in Case::of(&[&Fault::OF_RANKS[..], &Fault::OF_PROCESSES[..]].concat()) {
        assert_eq!(Case::named(&case.name()), Some(case));
    }
    let line = "2\t1700000000000001\t5\tMissing\t1,3\t4\t\tall_reduce on rank 2: x\n";
    let told = Told::from_line(line).expect("a line of a rank");
    assert_eq!((told.rank, told.step, told.failed_in, &told.ranks[..]), (2, 5, 4, &[1, 3][..]));
    assert_eq!(told.to_line(), line);
    assert_eq!(Told::from_line("2\tlater"), None);
}
