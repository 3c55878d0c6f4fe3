//! Ranks that are processes train as ranks that are threads do.

use crate::support::{
    Folder, assert_equal, criteo, mpirun, rows, run, small, threads, with, words,
};

/// Trains with processes and with threads; whether they left the same bits.
fn same(folder: &Folder, case: &str, world: usize, arguments: &[String]) -> bool {
    let [by_mpi, by_threads] =
        ["mpi", "threads"].map(|name| folder.path(&format!("{case}-{name}")));
    let processes = mpirun(&[(world, with(arguments, &format!("--save {by_mpi}")))]).report();
    let threads = threads(world, &with(arguments, &format!("--save {by_threads}"))).report();
    assert_eq!((&processes["transport"], &threads["transport"]), (&"mpi".into(), &"local".into()));
    let equal = assert_equal(case, (&processes, &by_mpi), (&threads, &by_threads));
    eprintln!("{case}: {}", if equal { "bit by bit" } else { "within 1e-5" });
    equal
}

#[test]
fn every_plan_trains_as_threads_do_bit_by_bit() {
    let (Some(train), Some(dev)) = (criteo("train"), criteo("dev")) else { return };
    let folder = Folder::new();
    // The last batch has 200 samples.
    let base = with(&small(), &format!("--data {train} --eval {dev} --batch-size 250"));
    for plan in ["table-wise", "row-wise", "column-wise", "data-parallel"] {
        let base = with(&base, &format!("--plan {plan}"));
        for (world, more) in [(2, ""), (4, ""), (4, "--replicas 2 --check-replicas")] {
            if plan == "data-parallel" && !more.is_empty() {
                continue;
            }
            let case = format!("{plan}-{world}{}", if more.is_empty() { "" } else { "-2d" });
            assert!(same(&folder, &case, world, &with(&base, more)), "{case}: other bits");
        }
    }
}

#[test]
fn what_launch_starts_trains_as_threads_do() {
    let (Some(train), Some(dev)) = (criteo("train"), criteo("dev")) else { return };
    let folder = Folder::new();
    let base = with(&small(), &format!("--data {train} --eval {dev} --batch-size 250"));
    for (case, more) in [("1d", "--plan row-wise"), ("2d", "--plan row-wise --replicas 2")] {
        let [launched, by_threads] =
            ["launch", "threads"].map(|name| folder.path(&format!("{case}-{name}")));
        let train = with(&base, more);
        let own = words("launch -n 4 --transport mpi --mpirun-arg=--oversubscribe --");
        let started = with(&train, &format!("--threads-per-rank 1 --save {launched}"));
        let report = run(env!("CARGO_BIN_EXE_emb"), &[own, started].concat()).report();
        let threads = threads(4, &with(&train, &format!("--save {by_threads}"))).report();
        assert!(assert_equal(case, (&report, &launched), (&threads, &by_threads)), "{case}");
    }
}

#[test]
fn u26_fewer_rows_than_ranks_and_a_short_last_batch() {
    let folder = Folder::new();
    let data = folder.file("33.tsv", &rows(33));
    let few = folder.file("3.tsv", &rows(3));
    for (case, data, more, steps) in
        [("33", &data, "", 3), ("33-drop", &data, "--drop-last", 2), ("3", &few, "", 1)]
    {
        let base = with(&small(), &format!("--data {data} --eval {data} --batch-size 16 {more}"));
        let base = with(&base, "--plan row-wise --replicas 2");
        assert!(same(&folder, case, 4, &base), "{case}: other bits");
        let report = mpirun(&[(4, base)]).report();
        assert_eq!(report["steps"], steps, "{case}");
        assert_eq!(report["eval"]["rows"], if case == "3" { 3 } else { 33 });
    }
}

#[test]
fn rank_0_alone_speaks_for_all() {
    let folder = Folder::new();
    let data = folder.file("data.tsv", &rows(210));
    let (file, dir) = (folder.path("timeline.json"), folder.path("saved"));
    let base = with(&small(), &format!("--data {data} --batch-size 20 --plan row-wise"));
    let speaks = with(&base, &format!("--timeline {file} --health 4 --save {dir} --save-every 5"));
    let run = mpirun(&[(3, speaks)]);
    let report = run.report();
    let errors = run.errors();
    assert_eq!(errors.matches("saved: ").count(), 3, "{errors}");
    assert_eq!(errors.matches("transport   mpi").count(), 1, "{errors}");
    // Every rank's figures are in what rank 0 says, and its spans in the file.
    assert!(report["health"]["step"].as_u64() == Some(8), "{report}");
    assert!(report["exchange"]["intra_node_bytes_per_step"].as_f64() > Some(0.0), "{report}");
    let text = std::fs::read_to_string(&file).expect("a timeline");
    let events: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for rank in 0..3 {
        let own = events["traceEvents"].as_array().expect("events").iter();
        let own = own.filter(|event| event["pid"] == rank && event["ph"] == "X");
        assert!(own.clone().count() > 50, "rank {rank}");
        let late = own.filter_map(|event| event["ts"].as_f64()).fold(0.0, f64::max);
        assert!(late < 60e6, "rank {rank}: {late} microseconds");
    }
}
