//! Reductions that take several rounds have the bits that threads have.

use super::{Case, options, start};
use emb_comm::{Collective, Error, Mpi, Options, Sum};
use half::{bf16, f16};
use std::process::ExitCode;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);
/// Bytes that a rank sends to another in a round.
const PART: usize = 512 << 10;
/// How far the values of a rank are from those of the next in the same numbers.
const APART: usize = 7919;

pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        name: "reductions_of_several_rounds_have_the_bits_of_threads",
        worlds: &[2, 3],
        rank: compare,
        succeeds: true,
        within: LONG,
        code: Some(0),
        says: |_, _| None,
    }]
}

/// Numbers that look random and are the same on every rank (`splitmix64`).
fn random(index: usize) -> u64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn compare() -> ExitCode {
    let mut rank = start(&options(LONG));
    let mut run = || {
        same(&mut rank, |value| value as f32)?;
        same(&mut rank, |value| value)?;
        same(&mut rank, f16::from_f64)?;
        same(&mut rank, bf16::from_f64)
    };
    run().unwrap_or_else(|error: Error| panic!("{error}"));
    rank.close().expect("all close");
    ExitCode::SUCCESS
}

fn same<T: Sum>(rank: &mut Mpi, cast: fn(f64) -> T) -> Result<(), Error> {
    let (me, world) = (rank.rank(), rank.world());
    // Elements of a part of a round, and of a round of all ranks.
    let (part, round) = (PART / size_of::<T>(), world * PART / size_of::<T>());
    // Magnitudes from 2^-8 to 2^7, of both signs: no other order of a sum has the same bits.
    let value = |index| {
        let bits = random(index);
        let digits = (bits >> 12) as f64 / f64::from(1 << 26) / f64::from(1 << 26) - 0.5;
        cast(digits * 2f64.powi((bits & 15) as i32 - 8))
    };
    let numbers: Vec<T> = (0..2 * round + part + world * APART).map(value).collect();
    let values = |rank: usize, len: usize| numbers[rank * APART..][..len].to_vec();

    let longest = 2 * round + part;
    let sums = by_threads(rank, longest, |thread, sums| thread.all_reduce(sums), values)?;
    let largest = by_threads(rank, longest, |thread, sums| thread.all_reduce_max(sums), values)?;
    let around = [round - 1, round, round + 1, round + world - 1, 2 * round, 2 * round + 1];
    for len in [0, 1, world - 1, part, longest].into_iter().chain(around) {
        let mut own = values(me, len);
        rank.all_reduce(&mut own)?;
        equal(&own, &sums[..len], &format!("rank {me}, sum of {len} {}", T::NAME));
    }
    for len in [world + 1, round - 1, round + 1, longest] {
        let mut own = values(me, len);
        rank.all_reduce_max(&mut own)?;
        equal(&own, &largest[..len], &format!("rank {me}, largest of {len} {}", T::NAME));
    }

    let lengths = [0, 1, part - 1, part, part + 1, 2 * part];
    for turn in 0..8 {
        let pick = |peer| lengths[random(turn * world + peer) as usize % lengths.len()];
        let counts: Vec<usize> = (0..world).map(pick).collect();
        let (len, start) = (counts.iter().sum(), counts[..me].iter().sum::<usize>());
        let mut own = values(me, counts[me]);
        rank.reduce_scatter_v(&values(me, len), &mut own, &counts)?;
        let what = format!("rank {me}, parts of {counts:?} {}", T::NAME);
        equal(&own, &sums[start..][..counts[me]], &what);
    }
    let each = part + 1;
    let mut own = values(me, each);
    rank.reduce_scatter(&values(me, world * each), &mut own)?;
    let what = format!("rank {me}, equal parts of {each} {}", T::NAME);
    equal(&own, &sums[me * each..][..each], &what);
    Ok(())
}

/// What threads make of the values of all ranks: computed by rank 0, told to the others.
fn by_threads<T: Sum>(
    rank: &mut Mpi,
    len: usize,
    reduce: impl Fn(&mut emb_comm::Local, &mut [T]) -> Result<(), Error> + Sync,
    values: impl Fn(usize, usize) -> Vec<T> + Sync,
) -> Result<Vec<T>, Error> {
    let mut result = values(0, len);
    if rank.rank() == 0 {
        let threads = emb_comm::run(rank.world(), &Options::default(), |thread| {
            let mut own = values(thread.rank(), len);
            reduce(thread, &mut own)?;
            Ok::<_, Error>(own)
        });
        result = threads.expect("threads reduce").swap_remove(0);
    }
    rank.broadcast(&mut result, 0)?;
    Ok(result)
}

fn equal<T: Sum>(own: &[T], expected: &[T], what: &str) {
    let [own, expected] = [own, expected].map(bytemuck::cast_slice::<T, u8>);
    let differs = own.iter().zip(expected).position(|(own, expected)| own != expected);
    assert_eq!((own.len(), differs), (expected.len(), None), "{what}: bytes, first that differs");
}
