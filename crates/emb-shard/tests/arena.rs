//! The synthetic pool of tables and the tasks drawn from it are what they claim to be.

#[path = "support/data.rs"]
mod data;
#[path = "../benches/planner/draw.rs"]
mod draw;
#[path = "../benches/planner/pool.rs"]
mod pool;
#[path = "../benches/planner/tasks.rs"]
mod tasks;

use emb_shard::{Access, Plan, Workload, WorkloadSpec};
use pool::{BATCH, PoolTable, TABLES, pool};
use tasks::{ArenaTask, DREAMSHARD_TASKS, NEUROSHARD_TASKS, dreamshard, neuroshard};

/// The published sums of the batch, by column name; `None`, said aloud, without the file.
fn published() -> Option<impl Fn(&str) -> f64> {
    let text = data::text("dlrm_datasets_locality.csv")?;
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect());
    let names: Vec<String> = lines.next().expect("a header");
    let values: Vec<String> =
        lines.find(|line: &Vec<String>| line[1] == "fbgemm_t856_bs65536.pt").expect("the batch");
    Some(move |name: &str| {
        let at = names.iter().position(|other| other == name).expect("a column");
        values[at].parse().expect("a number")
    })
}

/// Distinct rows and look-ups of the pool by uses of a row, as the file has its columns.
fn by_uses(pool: &[PoolTable]) -> Vec<(String, f64, f64)> {
    let names = (0..16).map(|bin| (1_u64 << bin).to_string()).chain(["inf".to_owned()]);
    let mut bins: Vec<_> = names.map(|name| (name, 0.0, 0.0)).collect();
    for bucket in pool.iter().flat_map(|table| table.used.buckets()) {
        let uses = bucket.lookups as f64 / bucket.rows as f64;
        // A mean of a bin, rounded, may miss its edge by less than a hundredth.
        let bin = (uses * 0.99).log2().ceil().clamp(0.0, 16.0) as usize;
        bins[bin].1 += bucket.rows as f64;
        bins[bin].2 += bucket.lookups as f64;
    }
    bins
}

#[test]
fn the_pool_has_the_published_sums() {
    let Some(published) = published() else { return };
    let pool = pool();
    assert_eq!(pool.len(), published("tables") as usize);
    assert_eq!((BATCH as f64, TABLES), (published("batch"), pool.len()));
    let close = |what: &str, found: f64, expect: f64, part: f64| {
        let error = (found / expect - 1.0).abs();
        assert!(error <= part, "{what}: {found} instead of {expect}");
    };
    let mean = |of: fn(&PoolTable) -> f64| pool.iter().map(of).sum::<f64>() / pool.len() as f64;
    let pooling = published("indices") / published("batch") / published("tables");
    close("ids a bag", mean(|table| table.pooling_factor), pooling, 1e-9);
    let lookups = published("indices") / published("tables");
    close("look-ups a table", mean(|table| table.used.lookups() as f64), lookups, 0.01);
    let distinct = published("unique_rows") / published("tables");
    close("distinct rows a table", mean(|table| table.used.rows() as f64), distinct, 0.01);
    // Published to a thousandth.
    let bins = by_uses(&pool);
    let rows: f64 = bins.iter().map(|bin| bin.1).sum();
    let lookups: f64 = bins.iter().map(|bin| bin.2).sum();
    for (name, bin_rows, bin_lookups) in bins {
        let (rows, lookups) = (bin_rows / rows, bin_lookups / lookups);
        let expect =
            (published(&format!("rowbin_to_{name}")), published(&format!("idxbin_to_{name}")));
        assert!((rows - expect.0).abs() <= 0.005, "rows of up to {name} uses: {rows}, {expect:?}");
        assert!((lookups - expect.1).abs() <= 0.005, "look-ups of {name}: {lookups}, {expect:?}");
    }
}

#[test]
fn tables_of_the_pool_differ_and_the_pool_does_not() {
    let (pool, again) = (pool(), pool());
    let shapes = |pool: &[PoolTable]| -> Vec<(u64, f64, u64)> {
        pool.iter().map(|table| (table.rows, table.pooling_factor, table.used.rows())).collect()
    };
    assert_eq!(shapes(&pool), shapes(&again));
    let reuse = |table: &PoolTable| table.used.lookups() as f64 / table.used.rows() as f64;
    let mut reuse: Vec<f64> = pool.iter().map(reuse).collect();
    reuse.sort_by(f64::total_cmp);
    assert!(reuse[TABLES * 9 / 10] > 2.0 * reuse[TABLES / 10], "{reuse:?}");
    assert!(pool.iter().all(|table| table.rows >= table.used.rows().max(100)));
}

fn bytes(workload: &Workload) -> u64 {
    workload.tables().weight_bytes().expect("64 bits").get()
}

#[test]
fn tasks_are_as_their_papers_draw_them() {
    let pool = pool();
    let mut counts = Vec::new();
    for number in 0..NEUROSHARD_TASKS {
        let ArenaTask { workload, topology, table_bytes } = neuroshard(&pool, number);
        counts.push(workload.tables().tables().len());
        assert!(bytes(&workload) <= 15 << 30);
        assert_eq!((topology.world(), table_bytes.get()), (4, 4 << 30));
        let dims = workload.tables().tables().iter().map(|(_, table)| table.dim());
        assert!(dims.into_iter().all(|dim| [128, 64, 32, 16, 8, 4].contains(&dim)));
    }
    let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
    assert!(least < Some(15) && least >= Some(10), "{counts:?}");
    assert!(most > Some(54) && most <= Some(59), "{counts:?}");
    for number in 0..DREAMSHARD_TASKS {
        let ArenaTask { workload, topology, table_bytes } = dreamshard(&pool, number);
        assert_eq!(workload.tables().tables().len() as u64, 20 * (1 + number % 5));
        assert_eq!((topology.world(), table_bytes.get()), (4, 5 << 30));
        assert!(bytes(&workload) <= 20 << 30);
        let spec = WorkloadSpec::from(workload);
        let mut used = Vec::new();
        for table in &spec.tables {
            let Some(Access::Histogram(histogram)) = &table.access else { panic!("measured") };
            used.push((table.rows, histogram));
        }
        used.sort_by_key(|(rows, _)| *rows);
        assert!(used.windows(2).all(|pair| pair[0] != pair[1]), "a table twice");
    }
}

#[test]
fn a_task_is_the_same_each_time_and_can_be_planned() {
    let pool = pool();
    let (task, again) = (neuroshard(&pool, 3), neuroshard(&pool, 3));
    assert_eq!(task.workload, again.workload);
    assert_ne!(task.workload, neuroshard(&pool, 4).workload);
    let mesh = task.asked().mesh().expect("one group");
    assert!(Plan::table_wise(task.workload.tables(), mesh).is_ok());
}
