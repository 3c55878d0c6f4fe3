//! What only the inside shows: nothing is left behind, parts cover everything.

use super::reduce::chunk;
use super::{Local, Options, run};
use crate::{Collective, Error, Result};
use std::sync::{Arc, Weak};

#[test]
fn u29_a_hundred_groups_and_worlds_leave_nothing_behind() {
    for turn in 0..100 {
        let mut ranks = Local::world(4, &Options::default());
        let world = Arc::downgrade(&ranks[0].world);
        let groups: Vec<Weak<_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = ranks
                .iter_mut()
                .map(|rank| {
                    scope.spawn(move || {
                        let pair = rank.subgroups(&[&[0, 3], &[1, 2]]).expect("lists are fine");
                        let half = rank.split(Some((rank.rank() + turn) % 2), 0);
                        let half = half.expect("all arrive").expect("has a color");
                        let pair = pair.expect("is listed");
                        [Arc::downgrade(&pair.group), Arc::downgrade(&half.group)]
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(groups.iter().all(|group| group.strong_count() == 0), "turn {turn}");
        drop(ranks);
        assert_eq!(world.strong_count(), 0, "turn {turn}");
    }
}

#[test]
fn nothing_is_allocated_after_warm_up() {
    let ranks = 3;
    let allocations = run(ranks, &Options::default(), |comm| {
        let me = comm.rank();
        let (send, mut recv) = (vec![1.0f32; 300], vec![0.0f32; 300]);
        let mut values = vec![me as f32; 1000];
        let counts = vec![100; ranks];
        let mut received = vec![0; ranks];
        let mut step = |comm: &mut Local| -> Result<()> {
            comm.exchange_counts(&counts, &mut received)?;
            comm.all_to_all_v(&send, &counts, &mut recv, &counts)?;
            comm.all_reduce(&mut values)?;
            comm.all_reduce_max(&mut values)?;
            comm.reduce_scatter_v(&send, &mut recv[..100], &counts)?;
            comm.all_gather_v(&send[..100], &mut recv, &counts)?;
            comm.broadcast(&mut values, 1)?;
            comm.barrier()
        };
        step(comm)?;
        let mut outcome = Ok(());
        let counted = allocation_counter::measure(|| {
            for _ in 0..100 {
                outcome = outcome.clone().and_then(|()| step(comm));
            }
        });
        outcome.map(|()| counted.count_total)
    });
    assert_eq!(allocations, Ok(vec![0; ranks]));
}

#[test]
fn parts_cover_all_elements_in_order() {
    for world in 1..9 {
        for len in [0, 1, world - 1, world, 100, usize::MAX] {
            let mut next = 0;
            for rank in 0..world {
                let part = chunk(rank, world, len);
                assert_eq!(part.start, next);
                assert!(part.len().abs_diff(len / world) <= 1);
                next = part.end;
            }
            assert_eq!(next, len, "{world} ranks");
        }
    }
}

#[test]
fn a_failure_frees_what_was_made() {
    let ranks = Local::world(2, &Options::default());
    let world = Arc::downgrade(&ranks[0].world);
    ranks[0].abort("no reason");
    drop(ranks);
    assert_eq!(world.strong_count(), 0);
    assert!(run(2, &Options::default(), |_| Err::<(), _>(Error::Space(String::new()))).is_err());
}
