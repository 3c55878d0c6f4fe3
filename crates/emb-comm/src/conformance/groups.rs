//! Sets of ranks within the world.

use crate::{Collective, Error, Result};

/// The sum of the ranks `world` numbers, taken by the members of `group` alone.
fn sum_of<C: Collective>(group: &mut C, world_rank: usize) -> Result<u64> {
    let mut sum = [world_rank as u64];
    group.all_reduce(&mut sum)?;
    Ok(sum[0])
}

pub(super) fn u29_pairs_made_together_do_not_mix<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    // The first with the last, the second with the last but one: {0, 3} and {1, 2} of 4.
    let pairs: Vec<Vec<usize>> = (0..world / 2).map(|low| vec![low, world - 1 - low]).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    let lists: Vec<&[usize]> = pairs.iter().map(Vec::as_slice).collect();
    let pair = comm.subgroups(&lists)?;
    let middle = world % 2 == 1 && me == world / 2;
    assert_eq!(pair.is_none(), middle, "rank {me}");
    if let Some(mut pair) = pair {
        assert_eq!(pair.world(), 2);
        for _ in 0..10 {
            assert_eq!(sum_of(&mut pair, me)?, world as u64 - 1, "rank {me}");
        }
    }
    comm.barrier()
}

pub(super) fn u29_left_out_ranks_go_on<C: Collective>(comm: &mut C) -> Result<()> {
    let me = comm.rank();
    let alone = comm.subgroup(&[0])?;
    assert_eq!(alone.is_some(), me == 0, "rank {me}");
    if let Some(mut alone) = alone {
        assert_eq!((alone.rank(), alone.world()), (0, 1));
        assert_eq!(sum_of(&mut alone, me)?, 0);
    }
    comm.barrier()?;
    assert!(comm.split(None, 0)?.is_none());
    comm.barrier()
}

pub(super) fn u29_order_of_the_list_is_the_order_of_ranks<C: Collective>(
    comm: &mut C,
) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let reversed: Vec<usize> = (0..world).rev().filter(|rank| rank % 2 == 1).collect();
    if reversed.is_empty() {
        return Ok(());
    }
    let Some(mut odd) = comm.subgroup(&reversed)? else {
        return Ok(());
    };
    assert_eq!(reversed[odd.rank()], me);
    for (root, &expected) in reversed.iter().enumerate() {
        let mut value = [me as u32];
        odd.broadcast(&mut value, root)?;
        assert_eq!(value, [expected as u32], "rank {me}, root {root} of {reversed:?}");
    }
    let mut order = vec![0; reversed.len()];
    odd.all_gather_v(&[me as u64], &mut order, &vec![1; reversed.len()])?;
    assert!(order.iter().zip(&reversed).all(|(&found, &listed)| found == listed as u64));
    Ok(())
}

pub(super) fn u29_impossible_lists_are_refused_on_every_rank<C: Collective>(
    comm: &mut C,
) -> Result<()> {
    let world = comm.world();
    let last = world - 1;
    let cases: [(&[&[usize]], String); 4] = [
        (&[&[last], &[last]], format!("rank {last} is listed more than once")),
        (&[&[0, world]], format!("rank {world} does not exist")),
        (&[&[0], &[]], "no rank in list 1".to_owned()),
        (
            &[&[0, 0, world + 4], &[], &[world]],
            format!(
                "rank 0 is listed more than once; ranks {world} and {} do not exist; \
                 no rank in list 1",
                world + 4
            ),
        ),
    ];
    for (lists, problem) in cases {
        let error = comm.subgroups(lists).err();
        assert_eq!(error, Some(Error::Subgroups { world, problem }), "{lists:?}");
    }
    comm.barrier()
}

pub(super) fn u29_a_hundred_groups_in_turn<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    for turn in 0..100 {
        let mut half = comm.split(Some((me + turn) % 2), turn)?;
        let half = half.as_mut().map(|half| sum_of(half, me)).transpose()?;
        let expected = (0..world).filter(|rank| rank % 2 == me % 2).sum::<usize>();
        assert_eq!(half, Some(expected as u64), "rank {me}, turn {turn}");
    }
    Ok(())
}

pub(super) fn split_orders_by_key<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    let reversed = comm.split(Some(7), world - me)?;
    assert_eq!(reversed.map(|reversed| reversed.rank()), Some(world - 1 - me));
    let same = comm.split(Some(usize::MAX), 0)?;
    assert_eq!(same.map(|same| same.rank()), Some(me), "equal keys keep the order");
    let some = comm.split((me % 2 == 0).then_some(0), 0)?;
    assert_eq!(some.map(|some| some.world()), (me % 2 == 0).then_some(world.div_ceil(2)));
    Ok(())
}

pub(super) fn groups_of_two_dimensions<C: Collective>(comm: &mut C) -> Result<()> {
    let (me, world) = (comm.rank(), comm.world());
    for columns in (1..=world).filter(|columns| world.is_multiple_of(*columns)) {
        let (row, column) = (me / columns, me % columns);
        let rows = comm.split(Some(row), column)?;
        let columns_of = comm.split(Some(column), row)?;
        let (Some(mut along_row), Some(mut along_column)) = (rows, columns_of) else {
            unreachable!("every rank has both colors");
        };
        assert_eq!((along_row.rank(), along_row.world()), (column, columns));
        assert_eq!((along_column.rank(), along_column.world()), (row, world / columns));
        for _ in 0..5 {
            // The sum over rows of sums over columns is that over all.
            let mut sum = [me as u64];
            along_row.all_reduce(&mut sum)?;
            along_column.all_reduce(&mut sum)?;
            assert_eq!(sum[0] as usize, world * (world - 1) / 2, "rank {me}");
        }
    }
    Ok(())
}

pub(super) fn a_duplicate_works_at_the_same_time<C: Collective>(comm: &mut C) -> Result<()> {
    const TIMES: usize = 50;
    let (me, world) = (comm.rank(), comm.world());
    let mut copy = comm.duplicate()?;
    assert_eq!((copy.rank(), copy.world()), (me, world));
    std::thread::scope(|scope| {
        // Sums on another thread, while this one exchanges in an order of its own.
        let sums = scope.spawn(move || -> Result<()> {
            for time in 0..TIMES {
                copy.set_step(1000 + time as u64);
                let mut sum = vec![(me + time) as u64; 100];
                copy.all_reduce(&mut sum)?;
                let expected = (world * (world - 1) / 2 + world * time) as u64;
                assert!(sum.iter().all(|&sum| sum == expected), "rank {me}, time {time}");
            }
            Ok(())
        });
        for time in 0..TIMES {
            let mut all = vec![0; world];
            comm.all_gather_v(&[me as u64], &mut all, &vec![1; world])?;
            assert!(all.iter().enumerate().all(|(rank, &found)| found == rank as u64));
            if time % 7 == 0 {
                comm.barrier()?;
            }
        }
        sums.join().expect("no panic")
    })
}
