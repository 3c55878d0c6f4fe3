//! Bandwidth of `Mpi` beside that of a C program that makes the same calls.
//!
//! `cargo bench -p emb-comm --features mpi --bench mpi` compiles `mpi.c` with `mpicc`, and starts
//! `mpirun` of that and of itself in turn, on 2 and on 4 processes; it prints medians. In the first
//! columns ranks of both programs first say what they are about to call; in the others neither do.
//! A number is GB/s of one rank's data: what it sends to all, itself included, or what it adds up.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use emb_comm::{Check, Collective, Mpi, MpiOptions, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes of one rank's data.
const SIZES: [usize; 4] = [64 << 10, 1 << 20, 16 << 20, 64 << 20];

/// Jobs of each program: memory lies better in some than in others.
const TURNS: usize = 7;

/// Batches of calls within a job; the median counts. As in `mpi.c`.
const BATCHES: usize = 15;

/// Set for processes that `mpirun` starts.
const RANK: &str = "EMB_MPI_BENCH";

/// Its values: whether ranks compare what they call.
const CALLS: &str = "calls";
const NOTHING: &str = "nothing";

fn main() {
    if let Ok(check) = std::env::var(RANK) {
        let check = if check == CALLS { Check::Calls } else { Check::Nothing };
        return measure(check).unwrap_or_else(|error| panic!("{error}"));
    }
    let folder = std::env::temp_dir().join(format!("emb-mpi-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the C program");
    let program = folder.join("mpi");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/mpi.c");
    let compiled = Command::new("mpicc")
        .args(["-O3", "-o"])
        .args([&program, &source])
        .status()
        .expect("mpicc starts");
    assert!(compiled.success(), "mpicc: {compiled}");
    println!("{}, medians of {TURNS} jobs", Mpi::library());
    for world in [2, 4] {
        compare(world, &program);
    }
    std::fs::remove_dir_all(&folder).expect("the folder can go");
}

fn compare(world: usize, program: &Path) {
    let own = std::env::current_exe().expect("this program");
    let programs = [(program, CALLS), (&own, CALLS), (program, NOTHING), (&own, NOTHING)];
    let mut seconds: BTreeMap<(String, usize), [Vec<f64>; 4]> = BTreeMap::new();
    for _ in 0..TURNS {
        for (which, (program, check)) in programs.into_iter().enumerate() {
            for (name, bytes, median) in start(world, program, check) {
                seconds.entry((name, bytes)).or_default()[which].push(median);
            }
        }
    }
    println!("\n{world} ranks           calls compared, GB/s     unchecked, GB/s");
    println!("                  data       C    Mpi  ratio       C    Mpi  ratio");
    for ((name, bytes), times) in &mut seconds {
        let [c, own, bare, unchecked] =
            times.each_mut().map(|times| *bytes as f64 / median(times) / 1e9);
        println!(
            "{name:12} {:>5} KiB {c:>7.2} {own:>6.2} {:>6.2} {bare:>7.2} {unchecked:>6.2} {:>6.2}",
            *bytes >> 10,
            own / c,
            unchecked / bare
        );
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Name, bytes and seconds that a job has printed.
fn start(world: usize, program: &Path, check: &str) -> Vec<(String, usize, f64)> {
    let run = Command::new("mpirun")
        .args(["--oversubscribe", "--bind-to", "none", "-n", &world.to_string()])
        .arg(program)
        .args(SIZES.map(|size| size.to_string()))
        .env(RANK, check)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("mpirun starts");
    assert!(run.status.success(), "{}: {}", program.display(), run.status);
    let text = String::from_utf8_lossy(&run.stdout);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let bytes = words.next()?.parse().ok()?;
        Some((name, bytes, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// What one process does, for every size on the command line: as `mpi.c`.
fn measure(check: Check) -> Result<()> {
    let mut rank = Mpi::start(&MpiOptions::default().with_check(check))?;
    let world = rank.world();
    for bytes in std::env::args().filter_map(|size| size.parse::<usize>().ok()) {
        let len = bytes / size_of::<f32>();
        // Written, so that every page is memory of its own: pages that were never written share one.
        let (mut values, mut room) = (vec![0.0f32; len], vec![0.0f32; len]);
        values.fill(std::hint::black_box(0.0));
        room.fill(std::hint::black_box(0.0));
        let counts = vec![len / world; world];
        let calls = ((16 << 20) / bytes).clamp(1, 50);
        time(&mut rank, ("all_to_all_v", bytes, calls), |rank| {
            rank.all_to_all_v(&values, &counts, &mut room, &counts)
        })?;
        time(&mut rank, ("all_reduce", bytes, calls), |rank| rank.all_reduce(&mut values))?;
    }
    rank.close()
}

fn time(
    rank: &mut Mpi,
    (name, bytes, calls): (&str, usize, usize),
    mut work: impl FnMut(&mut Mpi) -> Result<()>,
) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..=BATCHES {
        rank.barrier()?;
        let began = Instant::now();
        for _ in 0..calls {
            work(rank)?;
        }
        times.push(began.elapsed().as_secs_f64() / calls as f64);
    }
    if rank.rank() == 0 {
        // The first batch warms up.
        println!("{name} {bytes} {:.9}", median(&mut times[1..]));
    }
    Ok(())
}
