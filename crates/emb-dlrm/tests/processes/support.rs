//! Starting the program by `mpirun`, and what trainings leave behind.

use emb_dlrm::checkpoint::Manifest;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Processes share few cores: one training at a time.
static TURN: Mutex<()> = Mutex::new(());

/// How long anything may take: also what fails.
const LONG: Duration = Duration::from_mins(1);

/// A fresh folder, removed at the end.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("emb-processes-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a file");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A part of the Criteo sample: `train`, `dev` or `test`; says so where it is not there.
pub(crate) fn criteo(part: &str) -> Option<String> {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let file = folder.join(format!("criteo8k_{part}.tsv"));
    if file.exists() {
        return Some(file.display().to_string());
    }
    eprintln!("skipped: there is no {} (set EMB_DATA)", file.display());
    None
}

/// Rows of Criteo form whose label has to do with their ids.
pub(crate) fn rows(number: usize) -> String {
    let row = |row: usize| {
        let id = |column: usize| (row * (column + 7) + row / 3) % 89;
        let dense: Vec<String> = (0..13).map(|column| (id(column) % 40).to_string()).collect();
        let sparse: Vec<String> = (13..39).map(|column| format!("{:x}", id(column))).collect();
        let label = usize::from(id(13) + id(14) > 90);
        format!("{label}\t{}\t{}\n", dense.join("\t"), sparse.join("\t"))
    };
    (0..number).map(row).collect()
}

/// A small model, without a word of data and ranks.
pub(crate) fn small() -> Vec<String> {
    words("train --rows-per-table 1000 --dim 4 --bottom 8 --top 8 --initial-accumulator 0.1 --json")
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// These arguments and more.
pub(crate) fn with(base: &[String], more: &str) -> Vec<String> {
    base.iter().cloned().chain(words(more)).collect()
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) seconds: f64,
}

impl Run {
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The lines that begin with `error:`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let errors = self.errors();
        errors.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect()
    }

    /// The report of a run that went well: one JSON object, of rank 0, and nothing else.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        assert!(self.output.status.success(), "{:?}: {}", self.output.status, self.errors());
        let text = String::from_utf8_lossy(&self.output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Every rank has said that it failed, with these words, in time.
    #[track_caller]
    pub(crate) fn fails_on_all(&self, ranks: usize, words: &[&str]) {
        let errors = self.errors();
        assert!(!self.output.status.success(), "{errors}");
        for rank in 0..ranks {
            let name = format!("error: rank {rank} on ");
            let lines = self.lines();
            let own = lines.iter().find(|line| line.starts_with(&name));
            let own = own.unwrap_or_else(|| panic!("no word of rank {rank}: {errors}"));
            for word in words {
                assert!(own.contains(word), "{word:?} is missing from: {own}");
            }
        }
        assert!(self.seconds < 30.0, "{:.1} s", self.seconds);
        assert!(self.output.stdout.is_empty(), "{}", String::from_utf8_lossy(&self.output.stdout));
    }
}

/// Waits for a command, for as long as anything may take.
fn finish(command: &mut Command, turn: MutexGuard<'_, ()>) -> Run {
    let begun = Instant::now();
    let mut limited = Command::new("timeout");
    limited.arg(LONG.as_secs().to_string()).arg(command.get_program()).args(command.get_args());
    limited.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = limited.output().expect("it starts");
    drop(turn);
    let seconds = begun.elapsed().as_secs_f64();
    assert_ne!(output.status.code(), Some(124), "it hangs: {command:?}");
    Run { output, seconds }
}

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts ranks, so many with each list of arguments, and waits for them.
pub(crate) fn mpirun(ranks: &[(usize, Vec<String>)]) -> Run {
    let turn = turn();
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none"]);
    for (number, (count, arguments)) in ranks.iter().enumerate() {
        if number > 0 {
            command.arg(":");
        }
        command.args(["-n", &count.to_string(), env!("CARGO_BIN_EXE_emb")]).args(arguments);
        if arguments[0] == "train" {
            command.args(["--transport", "mpi", "--threads-per-rank", "1", "--timeout", "20"]);
        }
    }
    finish(&mut command, turn)
}

/// The program by itself, or by `ci/hosts.sh`.
pub(crate) fn run(program: &str, arguments: &[String]) -> Run {
    let turn = turn();
    finish(Command::new(program).args(arguments), turn)
}

/// The same training with threads of one process.
pub(crate) fn threads(world: usize, arguments: &[String]) -> Run {
    let ranks = with(arguments, &format!("--world {world} --threads-per-rank 1 --timeout 20"));
    run(env!("CARGO_BIN_EXE_emb"), &ranks)
}

/// The tensors that a run left behind.
pub(crate) fn tensors(dir: &str) -> Vec<u8> {
    let dir = Path::new(dir);
    std::fs::read(Manifest::read(dir).expect("a checkpoint").path(dir)).expect("tensors")
}

/// The losses of two trainings within 1e-5, and their checkpoints; returns whether these are equal
/// in every bit.
#[track_caller]
pub(crate) fn assert_equal(case: &str, got: (&Value, &str), expected: (&Value, &str)) -> bool {
    for at in ["/loss", "/eval/loss", "/eval/auc"] {
        let number = |report: &Value| report.pointer(at).and_then(Value::as_f64);
        match (number(got.0), number(expected.0)) {
            (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-5, "{case}: {at}: {a}, not {b}"),
            (a, b) => assert_eq!(a.is_some(), b.is_some(), "{case}: {at}"),
        }
    }
    for at in ["/steps", "/samples", "/eval/rows", "/exchange/inter_node_bytes_per_step"] {
        assert_eq!(got.0.pointer(at), expected.0.pointer(at), "{case}: {at}");
    }
    let (got, expected) = (tensors(got.1), tensors(expected.1));
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        let file = safetensors::SafeTensors::deserialize(bytes).expect("tensors");
        let mut all = file.tensors();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let values = all.iter().flat_map(|(_, view)| view.data().as_chunks::<4>().0);
        values.map(|&four| f64::from(f32::from_le_bytes(four))).collect()
    };
    let (a, b) = (numbers(&got), numbers(&expected));
    assert_eq!(a.len(), b.len(), "{case}");
    let apart: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
    let norm: f64 = b.iter().map(|b| b * b).sum();
    assert!((apart / norm).sqrt() <= 1e-5, "{case}: weights are {:e} apart", (apart / norm).sqrt());
    got == expected
}
