//! Latency of small collectives and bandwidth of all-to-all between threads, beside two threads
//! that copy memory. `--json` prints one object; `--quick` measures for a shorter time.

use emb_comm::{Collective, Error, Failure, Local, Options, run};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Barrier;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    let seconds = if flag("--quick") { 0.05 } else { 0.4 };
    let mut latencies = Vec::new();
    for world in [2, 4] {
        latencies.push(("barrier", world, 0, latency(world, seconds, Collective::barrier)?));
        for bytes in [8, 1024, 16 << 10] {
            let reduce = |comm: &mut Local| comm.all_reduce(&mut [1.0f32; 4096][..bytes / 4]);
            latencies.push(("all_reduce", world, bytes, latency(world, seconds, reduce)?));
        }
    }
    let mut bandwidths = Vec::new();
    for bytes in (12..=26).step_by(2).map(|power| 1usize << power) {
        // In turns, so that a busy moment of the machine does not meet one of them alone.
        let (mut copy, mut exchange) = (0f64, 0f64);
        for _ in 0..4 {
            copy = copy.max(two_copies(bytes, seconds / 4.0));
            exchange = exchange.max(all_to_all(2, bytes, seconds / 4.0)?);
        }
        bandwidths.push((bytes, copy, exchange));
    }
    let text = if flag("--json") {
        json(&latencies, &bandwidths)?
    } else {
        table(&latencies, &bandwidths)?
    };
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

type Latency = (&'static str, usize, usize, f64);
type Bandwidth = (usize, f64, f64);

fn table(latencies: &[Latency], bandwidths: &[Bandwidth]) -> Result<String, std::fmt::Error> {
    let mut text = String::from("operation   ranks   bytes  microseconds (median)\n");
    for (operation, world, bytes, micros) in latencies {
        writeln!(text, "{operation:<10}  {world:>5}  {bytes:>6}  {micros:>8.2}")?;
    }
    text.push_str(
        "\nall-to-all of 2 ranks beside 2 threads that copy, GB/s written by both (best)\n",
    );
    text.push_str("bytes a pair   copies  all_to_all_v  share\n");
    for (bytes, copy, exchange) in bandwidths {
        let share = exchange / copy;
        writeln!(text, "{bytes:>12}  {copy:>7.2}  {exchange:>12.2}  {share:>5.2}")?;
    }
    Ok(text)
}

fn json(latencies: &[Latency], bandwidths: &[Bandwidth]) -> Result<String, std::fmt::Error> {
    let mut text = String::from("{\"bench\":\"local\"");
    for (operation, world, bytes, micros) in latencies {
        write!(text, ",\"{operation}_{world}_ranks_{bytes}_bytes_us\":{micros:.3}")?;
    }
    for (bytes, copy, exchange) in bandwidths {
        let share = exchange / copy;
        write!(text, ",\"copy_{bytes}_bytes_gb_s\":{copy:.3}")?;
        write!(text, ",\"all_to_all_{bytes}_bytes_gb_s\":{exchange:.3}")?;
        write!(text, ",\"all_to_all_{bytes}_bytes_share\":{share:.3}")?;
    }
    text.push_str("}\n");
    Ok(text)
}

/// Median microseconds of an operation, over batches that fill `seconds`.
fn latency(
    world: usize,
    seconds: f64,
    operation: impl Fn(&mut Local) -> Result<(), Error> + Sync,
) -> Result<f64, Failure> {
    const CALLS: u32 = 50;
    let micros = run(world, &Options::default(), |comm| {
        let mut batches = Vec::new();
        let mut go_on = [1u64];
        let began = Instant::now();
        while go_on == [1] {
            let batch = Instant::now();
            for _ in 0..CALLS {
                operation(comm)?;
            }
            batches.push(batch.elapsed().as_secs_f64() / f64::from(CALLS));
            go_on = [u64::from(began.elapsed().as_secs_f64() < seconds)];
            comm.broadcast(&mut go_on, 0)?;
        }
        Ok::<_, Error>(median(batches) * 1e6)
    })?;
    Ok(median(micros))
}

/// Gigabytes a second, written by all ranks, where each sends `bytes` to every rank.
fn all_to_all(world: usize, bytes: usize, seconds: f64) -> Result<f64, Failure> {
    let took = run(world, &Options::default(), |comm| {
        let (send, counts) = (vec![1u8; bytes * world], vec![bytes; world]);
        let mut recv = vec![0u8; bytes * world];
        // Pages are there from now on.
        comm.all_to_all_v(&send, &counts, &mut recv, &counts)?;
        let mut turns = Vec::new();
        let mut go_on = [1u64];
        let began = Instant::now();
        while go_on == [1] {
            comm.barrier()?;
            let turn = Instant::now();
            for _ in 0..repeats(bytes * world) {
                comm.all_to_all_v(&send, &counts, &mut recv, &counts)?;
            }
            turns.push(turn.elapsed().as_secs_f64() / repeats(bytes * world) as f64);
            go_on = [u64::from(turns.len() < 4 || began.elapsed().as_secs_f64() < seconds)];
            comm.broadcast(&mut go_on, 0)?;
        }
        Ok::<_, Error>(best(turns))
    })?;
    Ok((world * world * bytes) as f64 / median(took) / 1e9)
}

/// Gigabytes a second, written by two threads that each copy two buffers of `bytes`: the same
/// copies without any exchange, half of them from the other thread's memory.
fn two_copies(bytes: usize, seconds: f64) -> f64 {
    let sources = [vec![1u8; 2 * bytes], vec![2u8; 2 * bytes]];
    let barrier = Barrier::new(2);
    let turns_of = |me: usize| {
        let mut to = vec![0u8; 2 * bytes];
        let mut turns = Vec::new();
        let turns_needed =
            3.max((seconds * 5e9 / (4 * bytes * repeats(2 * bytes)) as f64) as usize);
        for _ in 0..turns_needed {
            barrier.wait();
            let turn = Instant::now();
            for _ in 0..repeats(2 * bytes) {
                for from in [me, 1 - me] {
                    let part = &sources[from][me * bytes..][..bytes];
                    to[from * bytes..][..bytes].copy_from_slice(std::hint::black_box(part));
                }
                std::hint::black_box(&mut to);
            }
            turns.push(turn.elapsed().as_secs_f64() / repeats(2 * bytes) as f64);
        }
        best(turns)
    };
    let turns_of = &turns_of;
    let took = std::thread::scope(|scope| {
        let threads = [0, 1].map(|me| scope.spawn(move || turns_of(me)));
        threads.map(|thread| thread.join().unwrap_or(f64::NAN))
    });
    (4 * bytes) as f64 / median(took.to_vec()) / 1e9
}

/// Calls to a measurement, so that it takes long enough to be measured.
fn repeats(bytes: usize) -> usize {
    ((4 << 20) / bytes).clamp(1, 200)
}

/// The shortest: what the machine does when nothing else runs on it.
fn best(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
