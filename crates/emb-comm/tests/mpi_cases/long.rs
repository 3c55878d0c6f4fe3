//! Transfers of more bytes than 32 bits count. They take 6 GiB of memory, so they run where asked.

use super::{Case, options, start};
use emb_comm::Collective;
use std::process::ExitCode;
use std::time::Duration;

/// Set to run what takes gigabytes of memory.
const LARGE: &str = "EMB_MPI_LARGE";

pub(super) fn cases() -> Vec<Case> {
    let skipped = std::env::var_os(LARGE).is_none();
    if skipped && std::env::var_os(super::super::CASE).is_none() {
        eprintln!("skipped: u25_more_than_2_to_the_31_bytes_arrive_whole, {LARGE} is not set");
    }
    vec![Case {
        name: "u25_more_than_2_to_the_31_bytes_arrive_whole",
        worlds: if skipped { &[] } else { &[2] },
        rank: whole,
        succeeds: true,
        within: Duration::from_mins(2),
        code: Some(0),
        says: |_, _| None,
    }]
}

/// Word `index` of what rank 0 sends (`splitmix64`).
fn word(index: usize) -> u64 {
    let mixed = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn whole() -> ExitCode {
    let words = ((1usize << 31) + 8) / 8;
    let mut rank = start(&options(Duration::from_mins(1)));
    let mut sums = [0u64];
    if rank.rank() == 0 {
        let sent: Vec<u64> = (0..words).map(word).collect();
        rank.all_to_all_v(&sent, &[0, words], &mut [], &[0, 0]).expect("it is sent");
    } else {
        let mut received = vec![0u64; words];
        rank.all_to_all_v(&[], &[0, 0], &mut received, &[words, 0]).expect("it arrives");
        let wrong = received.iter().enumerate().filter(|&(index, &got)| got != word(index));
        sums[0] = wrong.count() as u64;
    }
    rank.all_reduce(&mut sums).expect("a sum");
    assert_eq!(sums, [0], "every word is what was sent");
    rank.close().expect("all close");
    ExitCode::SUCCESS
}
