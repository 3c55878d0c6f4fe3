//! One rank alone: exchanges copy, and mistakes are refused as between many.

use emb_comm::{Collective, Error, Solo};

#[test]
fn exchanges_of_one_rank_are_copies() {
    let mut solo = Solo;
    assert_eq!((solo.rank(), solo.world()), (0, 1));
    let ids = [5i64, -1, 9];
    let mut received = [0i64; 3];
    solo.all_to_all_v(&ids, &[3], &mut received, &[3]).expect("counts agree");
    assert_eq!(received, ids);
    let mut gathered = [0i64; 3];
    solo.all_gather_v(&ids, &mut gathered, &[3]).expect("counts agree");
    assert_eq!(gathered, ids);
    let mut sums = [1.5f32, -2.0];
    solo.all_reduce(&mut sums).expect("one rank");
    solo.broadcast(&mut sums, 0).expect("rank 0 exists");
    assert_eq!(sums, [1.5, -2.0]);
    solo.barrier().expect("nobody to wait for");
}

#[test]
fn u27_zero_size_messages_are_ordinary() {
    Solo.all_to_all_v::<f32>(&[], &[0], &mut [], &[0]).expect("nothing to send");
    Solo.all_gather_v::<u8>(&[], &mut [], &[0]).expect("nothing to send");
    Solo.all_reduce::<f64>(&mut []).expect("nothing to sum");
}

#[test]
fn wrong_counts_are_refused_by_name_and_nothing_is_written() {
    let mut recv = [7u32; 2];
    let text = |result: emb_comm::Result<()>| result.expect_err("must be refused").to_string();
    assert_eq!(
        text(Solo.all_to_all_v(&[1, 2], &[2, 0], &mut recv, &[2])),
        "all_to_all_v: send_counts: expected length 1, got 2"
    );
    assert_eq!(
        text(Solo.all_to_all_v(&[1, 2], &[3], &mut recv, &[2])),
        "all_to_all_v: send: expected length 3, got 2"
    );
    assert_eq!(
        text(Solo.all_to_all_v(&[1], &[1], &mut recv, &[2])),
        "all_to_all_v: rank 0 sends 1 elements to rank 0, which expects 2"
    );
    assert_eq!(
        text(Solo.all_gather_v(&[1], &mut recv, &[1])),
        "all_gather_v: recv: expected length 1, got 2"
    );
    let error = Solo.broadcast(&mut recv, 3).expect_err("one rank");
    assert_eq!(error, Error::NoSuchRank { operation: "broadcast", rank: 3, world: 1 });
    assert_eq!(recv, [7; 2]);
}
