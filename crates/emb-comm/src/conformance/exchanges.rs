//! Operations that move elements unchanged.

use super::Random;
use crate::{Collective, Element, Result};
use half::{bf16, f16};

/// Sends `matrix[from][to]` elements from each rank to each; element `k` of rank `from` is
/// `1000 * from + k`.
fn exchange<C: Collective>(comm: &mut C, matrix: &[Vec<usize>]) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let send_counts = &matrix[me];
    let recv_counts: Vec<usize> = (0..world).map(|from| matrix[from][me]).collect();
    let sent: usize = send_counts.iter().sum();
    let send: Vec<f64> = (0..sent).map(|k| (1000 * me + k) as f64).collect();
    let expected: Vec<f64> = (0..world)
        .flat_map(|from| {
            let start: usize = matrix[from][..me].iter().sum();
            (start..start + matrix[from][me]).map(move |k| (1000 * from + k) as f64)
        })
        .collect();
    let mut recv = vec![f64::NAN; expected.len()];
    comm.all_to_all_v(&send, send_counts, &mut recv, &recv_counts)?;
    assert_eq!(recv, expected, "rank {me} of {world}, counts {matrix:?}");
    Ok(())
}

pub(super) fn all_to_all_moves_every_element_once<C: Collective>(comm: &mut C) -> Result<()> {
    let world = comm.world();
    let matrix: Vec<Vec<usize>> =
        (0..world).map(|from| (0..world).map(|to| 3 * from + 5 * to + 1).collect()).collect();
    exchange(comm, &matrix)?;
    exchange(comm, &vec![vec![70_000; world]; world])
}

pub(super) fn u27_silent_ranks_and_zero_matrices<C: Collective>(comm: &mut C) -> Result<()> {
    let world = comm.world();
    exchange(comm, &vec![vec![0; world]; world])?;
    let reported = [[0, 2, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [0, 3, 0, 0]];
    let count = |from: usize, to: usize| {
        let row = reported.get(from);
        row.and_then(|row| row.get(to)).copied().unwrap_or(0)
    };
    let matrix: Vec<Vec<usize>> =
        (0..world).map(|from| (0..world).map(|to| count(from, to)).collect()).collect();
    exchange(comm, &matrix)?;
    for silent in 0..world {
        let count = |rank: usize| usize::from(rank != silent) * 4;
        let rows = (0..world).map(|from| (0..world).map(|_| count(from)).collect());
        exchange(comm, &rows.collect::<Vec<_>>())?;
        let columns = (0..world).map(|_| (0..world).map(count).collect());
        exchange(comm, &columns.collect::<Vec<_>>())?;
    }
    comm.all_gather_v::<u8>(&[], &mut [], &vec![0; world])?;
    comm.all_reduce::<f32>(&mut [])?;
    comm.all_reduce_max::<f64>(&mut [])?;
    comm.reduce_scatter_v::<f32>(&[], &mut [], &vec![0; world])?;
    comm.reduce_scatter::<f32>(&[], &mut [])?;
    comm.exchange_counts(&[], &mut [])?;
    comm.broadcast::<u32>(&mut [], world - 1)
}

pub(super) fn u27_random_counts_half_of_them_zero<C: Collective>(comm: &mut C) -> Result<()> {
    let world = comm.world();
    let mut random = Random(27);
    for _ in 0..1000 {
        let row = |random: &mut Random| (0..world).map(|_| random.count()).collect();
        let matrix: Vec<Vec<usize>> = (0..world).map(|_| row(&mut random)).collect();
        exchange(comm, &matrix)?;
    }
    Ok(())
}

pub(super) fn u25_counts_are_exchanged_in_64_bits<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    for each in [1, 3] {
        let count = |from: usize, to: usize, k: usize| usize::MAX - (from * 1000 + to * 10 + k);
        let pairs = |count: &dyn Fn(usize, usize) -> usize| -> Vec<usize> {
            (0..world)
                .flat_map(|peer| (0..each).map(move |k| (peer, k)))
                .map(|(peer, k)| count(peer, k))
                .collect()
        };
        let send = pairs(&|peer, k| count(me, peer, k));
        let mut recv = vec![0; send.len()];
        comm.exchange_counts(&send, &mut recv)?;
        assert_eq!(recv, pairs(&|peer, k| count(peer, me, k)), "rank {me}, {each} for each");
    }
    Ok(())
}

pub(super) fn all_gather_orders_by_rank<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let mut random = Random(3);
    for _ in 0..50 {
        let counts: Vec<usize> = (0..world).map(|_| random.count()).collect();
        let of = |rank: usize| (0..counts[rank]).map(move |k| (1000 * rank + k) as i64);
        let send: Vec<i64> = of(me).collect();
        let expected: Vec<i64> = (0..world).flat_map(of).collect();
        let mut recv = vec![-1; expected.len()];
        comm.all_gather_v(&send, &mut recv, &counts)?;
        assert_eq!(recv, expected, "rank {me}, counts {counts:?}");
    }
    Ok(())
}

pub(super) fn broadcast_from_every_root<C: Collective>(comm: &mut C) -> Result<()> {
    let me = comm.rank() as u64;
    for root in 0..comm.world() {
        for len in [1, 2, 1001] {
            let of = |rank: u64| (0..len).map(|k| 1000 * rank + k).collect::<Vec<_>>();
            let mut values = of(me);
            comm.broadcast(&mut values, root)?;
            assert_eq!(values, of(root as u64), "rank {me}, root {root}");
        }
        comm.barrier()?;
    }
    Ok(())
}

pub(super) fn every_element_type_travels<C: Collective>(comm: &mut C) -> Result<()> {
    round_trip(comm, u8::try_from)?;
    round_trip(comm, u32::try_from)?;
    round_trip(comm, u64::try_from)?;
    round_trip(comm, i64::try_from)?;
    round_trip(comm, |value| u8::try_from(value).map(f32::from))?;
    round_trip(comm, |value| u8::try_from(value).map(f64::from))?;
    round_trip(comm, |value| u8::try_from(value).map(f16::from))?;
    round_trip(comm, |value| u8::try_from(value).map(bf16::from))
}

fn round_trip<C: Collective, T: Element + std::fmt::Debug, E>(
    comm: &mut C,
    number: impl Fn(usize) -> Result<T, E>,
) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let value = |from: usize, to: usize| number((7 * from + 3 * to) % 100).unwrap_or_default();
    let send: Vec<T> = (0..world).map(|to| value(me, to)).collect();
    let expected: Vec<T> = (0..world).map(|from| value(from, me)).collect();
    let mut recv = vec![T::default(); world];
    comm.all_to_all_v(&send, &vec![1; world], &mut recv, &vec![1; world])?;
    assert_eq!(recv, expected, "rank {me}, {}", T::NAME);
    Ok(())
}
