//! Sums and maxima: fixed order, the same bits on every rank.

use super::Random;
use crate::{Collective, Result, Sum};
use half::{bf16, f16};

/// Lengths around those where parts of ranks are empty, uneven, or longer than a block.
const LENGTHS: [usize; 9] = [0, 1, 2, 3, 7, 64, 513, 4099, 20_000];

/// What `rank` contributes.
fn values<T>(rank: usize, len: usize, cast: fn(f64) -> T) -> Vec<T> {
    let mut random = Random(rank as u64 * 1_000_003 + len as u64);
    (0..len).map(|_| cast(random.value())).collect()
}

/// The sum in rank order, computed by one.
fn in_rank_order<T: Sum>(world: usize, len: usize, cast: fn(f64) -> T) -> Vec<T> {
    let mut sums = values(0, len, cast);
    for rank in 1..world {
        for (sum, value) in sums.iter_mut().zip(values(rank, len, cast)) {
            *sum = sum.plus(value);
        }
    }
    sums
}

pub(super) fn sums_are_those_in_rank_order_on_every_rank<C: Collective>(
    comm: &mut C,
) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    for len in LENGTHS {
        let mut sums = values(me, len, |value| value as f32);
        comm.all_reduce(&mut sums)?;
        let expected = in_rank_order(world, len, |value| value as f32);
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&sums), bits(&expected), "rank {me}, {len} f32");
        let mut sums = values(me, len, |value| value);
        comm.all_reduce(&mut sums)?;
        assert_eq!(sums, in_rank_order(world, len, |value| value), "rank {me}, {len} f64");
    }
    Ok(())
}

/// Every addition is that of [`Sum::plus`], which is checked against `f64` here: rounded once.
pub(super) fn sums_of_16_bits_are_rounded_once_an_addition<C: Collective>(
    comm: &mut C,
) -> Result<()> {
    fn same<C: Collective, T: Sum + std::fmt::Debug>(
        comm: &mut C,
        cast: fn(f64) -> T,
        value: fn(T) -> f64,
    ) -> Result<()> {
        let (me, world) = (comm.rank(), comm.world());
        for len in LENGTHS {
            let mut sums = values(me, len, cast);
            comm.all_reduce(&mut sums)?;
            let mut expected = values(0, len, cast);
            let mut largest = expected.clone();
            for rank in 1..world {
                for (k, other) in values(rank, len, cast).into_iter().enumerate() {
                    // The sum of two is exact in `f64`.
                    expected[k] = cast(value(expected[k]) + value(other));
                    largest[k] = cast(value(largest[k]).max(value(other)));
                }
            }
            assert_eq!(sums, expected, "rank {me}, sum of {len} {}", T::NAME);
            let mut maxima = values(me, len, cast);
            comm.all_reduce_max(&mut maxima)?;
            assert_eq!(maxima, largest, "rank {me}, largest of {len} {}", T::NAME);
        }
        Ok(())
    }
    same(comm, f16::from_f64, f16::to_f64)?;
    same(comm, bf16::from_f64, bf16::to_f64)
}

pub(super) fn sums_are_near_the_f64_oracle<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let len = 4099;
    let mut sums = values(me, len, |value| value as f32);
    comm.all_reduce(&mut sums)?;
    let oracle = in_rank_order(world, len, |value| f64::from(value as f32));
    for (index, (sum, oracle)) in sums.iter().zip(oracle).enumerate() {
        // Every addition rounds once: at most 2^-24 of a partial sum, which is at most `world`.
        let bound = (world * world) as f64 / f64::from(1 << 24);
        let error = (f64::from(*sum) - oracle).abs();
        assert!(error <= bound, "rank {me}, element {index}: {sum} is {error:e} from {oracle}");
    }
    Ok(())
}

pub(super) fn repeated_sums_have_the_same_bits<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, len) = (comm.rank(), 4099);
    let mut first: Option<Vec<u32>> = None;
    for turn in 0..10 {
        let mut sums = values(me, len, |value| value as f32);
        comm.all_reduce(&mut sums)?;
        let bits: Vec<u32> = sums.iter().map(|sum| sum.to_bits()).collect();
        let first = first.get_or_insert_with(|| bits.clone());
        assert_eq!(&bits, first, "rank {me}, turn {turn}");
    }
    Ok(())
}

pub(super) fn integers_sum_exactly<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank() as u64, comm.world() as u64);
    let mut sums: Vec<u64> = (0..100).map(|k| (1 << 60) + me * 1000 + k).collect();
    comm.all_reduce(&mut sums)?;
    let ranks = world * (world - 1) / 2;
    for (k, sum) in (0..).zip(sums) {
        let expected = world.wrapping_mul((1 << 60) + k).wrapping_add(1000 * ranks);
        assert_eq!(sum, expected, "rank {me}, element {k}");
    }
    Ok(())
}

pub(super) fn maximum_and_not_a_number<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let len = 100;
    // Rank `k % world` has the largest value of element `k`.
    let of = |k: usize| if k % world == me { k as f32 } else { -1.0 - me as f32 };
    let mut largest: Vec<f32> = (0..len).map(of).collect();
    largest[17] = if me == world - 1 { f32::NAN } else { 1.0 };
    comm.all_reduce_max(&mut largest)?;
    for (k, largest) in largest.iter().enumerate() {
        let right = if k == 17 { largest.is_nan() } else { *largest == k as f32 };
        assert!(right, "rank {me}, element {k}: {largest}");
    }
    let mut largest = [me as u64, u64::MAX - me as u64];
    comm.all_reduce_max(&mut largest)?;
    assert_eq!(largest, [world as u64 - 1, u64::MAX]);
    Ok(())
}

pub(super) fn reduce_scatter_has_the_bits_of_all_reduce<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let mut random = Random(5);
    for turn in 0..20 {
        let counts: Vec<usize> = (0..world).map(|_| random.count() * 30).collect();
        let (len, start) = (counts.iter().sum(), counts[..me].iter().sum::<usize>());
        let send = values(me, len, |value| value as f32);
        let mut whole = send.clone();
        comm.all_reduce(&mut whole)?;
        let mut part = vec![f32::NAN; counts[me]];
        comm.reduce_scatter_v(&send, &mut part, &counts)?;
        assert_eq!(part, whole[start..][..counts[me]], "rank {me}, turn {turn}: {counts:?}");
    }
    let each = 257;
    let send = values(me, each * world, |value| value);
    let mut part = vec![f64::NAN; each];
    comm.reduce_scatter(&send, &mut part)?;
    let whole = in_rank_order(world, each * world, |value| value);
    assert_eq!(part, whole[me * each..][..each], "rank {me}");
    Ok(())
}
