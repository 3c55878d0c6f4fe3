//! Medians of samples in which no thread of ours waited for a core.

use std::time::Instant;

/// Share of a sample's time that its threads may have waited.
const MAX_WAIT: f64 = 0.02;

/// Median milliseconds of `work(i)` and the number of samples it is of. When fewer than five
/// samples were undisturbed the fastest fifth stands for them.
pub(crate) fn median_ms(seconds: f64, mut work: impl FnMut(usize)) -> (f64, usize) {
    for i in 0..3 {
        work(i);
    }
    let (mut kept, mut all) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    let mut i = 3;
    while (begin.elapsed().as_secs_f64() < seconds || all.len() < 10) && all.len() < 10_000 {
        let waited = waited_ns();
        let start = Instant::now();
        work(i);
        let took = start.elapsed().as_nanos() as f64;
        if (waited_ns() - waited) < MAX_WAIT * took {
            kept.push(took);
        }
        all.push(took);
        i += 1;
    }
    if kept.len() < 5 {
        all.sort_by(f64::total_cmp);
        all.truncate(all.len().div_ceil(5));
        kept = all;
    }
    kept.sort_by(f64::total_cmp);
    (kept[kept.len() / 2] / 1e6, kept.len())
}

/// Nanoseconds that the threads of this process were ready and had no core; 0 where unknown.
fn waited_ns() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let waits = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<f64>().ok()
    });
    waits.sum()
}
