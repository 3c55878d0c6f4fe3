//! What baselines refuse, by name and number.

use crate::common::{machines, named, workload};
use emb_shard::{Bytes, Error, Kind, Layout, Task, baselines};

#[test]
fn u30_every_baseline_names_the_table_without_room_and_its_bytes() {
    // 10,000 rows of 36 bytes on two ranks of 100,000: not even halves fit.
    let (workload, topology) =
        (workload(&[(10, 8, 1.0, true), (10_000, 8, 1.0, true)]), machines(&[2], 100_000));
    for planner in baselines() {
        let name = planner.name();
        let Err(Error::DoesNotFit(why)) = planner.plan(&Task::new(&workload, &topology)) else {
            panic!("{name} finds room");
        };
        assert_eq!(why.table, "t1", "{name}");
        assert!(why.short() > Bytes::default() && why.needs > why.has, "{name}: {why}");
        // 360,000 bytes: two ranks are 160,000 short, four ranks hold 90,000 each.
        assert_eq!(why.row_wise_short, Bytes::new(80_000), "{name}: {why}");
        assert_eq!(why.row_wise_world, Some(4), "{name}: {why}");
    }
}

#[test]
fn u30_reserved_bytes_are_no_room() {
    let (workload, topology) = (workload(&[(1_000, 8, 1.0, true)]), machines(&[1], 40_000));
    for planner in baselines() {
        let mut task = Task::new(&workload, &topology);
        task.constraints.reserved = Bytes::new(10_000);
        let refused = planner.plan(&task);
        assert!(matches!(refused, Err(Error::DoesNotFit(_))), "{}", planner.name());
    }
}

#[test]
fn kinds_that_a_planner_does_not_make_are_refused_by_name() {
    let (workload, topology) = (workload(&[(1_000, 6, 1.0, true)]), machines(&[2, 2], 1 << 30));
    let mut task = Task::new(&workload, &topology);
    task.constraints.kinds = Some([Kind::ColumnWise].into());
    for planner in baselines() {
        let error = planner.plan(&task).expect_err("no columns to cut").to_string();
        assert!(error.contains("\"t0\""), "{}: {error}", planner.name());
    }
    let error = named("greedy-dim").plan(&task).expect_err("whole").to_string();
    assert!(error.contains("table_wise, which is not allowed"), "{error}");
}

#[test]
fn pinned_tables_stay_where_they_are_or_the_shortage_is_said() {
    let shapes = [(1_000, 8, 1.0, true), (1_000, 8, 1.0, true)];
    let (workload, topology) = (workload(&shapes), machines(&[2], 50_000));
    let mut task = Task::new(&workload, &topology);
    task.constraints.pinned = [("t0".into(), 1)].into();
    for planner in baselines() {
        // The other table finds the other rank, or half of each is too much.
        match planner.plan(&task) {
            Ok(plan) => {
                let t0 = &plan.placed().as_slice()[0].tiers[0].blocks[0].owners;
                assert_eq!(t0.iter().collect::<Vec<_>>(), [1], "{}", planner.name());
            }
            Err(error) => assert!(error.to_string().contains("t1"), "{error}"),
        }
    }
    task.constraints.pinned = [("t0".into(), 1), ("t1".into(), 1)].into();
    for planner in baselines() {
        let Err(Error::DoesNotFit(why)) = planner.plan(&task) else {
            panic!("{} puts 72,000 bytes on one rank", planner.name());
        };
        assert_eq!((why.table.as_str(), why.placement), ("t1", "table_wise"));
        // TorchRec counts ids and outputs beside.
        let beside = if planner.name() == "torchrec" { 2 * 64 * 2 * (8 + 32) } else { 0 };
        assert_eq!(why.short().get(), 22_000 + beside, "{}", planner.name());
    }
    task.constraints.pinned = [("t9".into(), 0)].into();
    let error = named("random").plan(&task).expect_err("no such table").to_string();
    assert!(error.contains("t9"), "{error}");
    task.constraints.pinned = [("t0".into(), 2)].into();
    let error = named("random").plan(&task).expect_err("no such position").to_string();
    assert!(error.contains("position 2"), "{error}");
}

#[test]
fn replicas_beyond_the_most_allowed_are_refused() {
    let (workload, topology) = (workload(&[(10, 8, 1.0, true)]), machines(&[4], 1 << 30));
    let mut task = Task::new(&workload, &topology);
    task.constraints.replicas = Some((4, Layout::Strided));
    task.constraints.max_replicas = Some(2);
    for planner in baselines() {
        let error = planner.plan(&task).expect_err("4 replicas").to_string();
        assert!(error.contains("at most 2"), "{}: {error}", planner.name());
    }
}
