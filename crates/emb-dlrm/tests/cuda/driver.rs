//! A program that knows of CUDA and NCCL, on a machine without either.

use crate::support::{Folder, devices};
use std::process::{Command, Output};

/// The program, with nowhere to find a driver but the system's own folders.
fn emb(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    for variable in ["LD_LIBRARY_PATH", "LD_PRELOAD", "EMB_NCCL", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(variable);
    }
    command.args(args).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SMALL: [&str; 13] = [
    "train",
    "--data",
    "synthetic",
    "--steps",
    "2",
    "--rows-per-table",
    "50",
    "--dim",
    "4",
    "--bottom",
    "4",
    "--top",
    "4",
];

/// What the program says of a device that is asked for, one line; `None` where the system has one.
fn refusal(more: &[&str]) -> Option<String> {
    let output = emb(&[&SMALL[..], more].concat());
    let said = text(&output.stderr);
    if !said.contains("cannot be loaded") {
        eprintln!("skipped: this system has a driver of its own: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty());
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    Some(said)
}

#[test]
fn u40_a_missing_driver_is_one_line_with_what_was_tried() {
    for more in [&["--device", "cuda"][..], &["--device", "cuda", "--world", "2"]] {
        let Some(said) = refusal(more) else { return };
        for word in ["error: ", "the CUDA driver (libcuda)", "libcuda.so.1", "LD_LIBRARY_PATH"] {
            assert!(said.contains(word), "{word:?} is missing from: {said}");
        }
    }
    let nccl = ["--device", "cuda", "--world", "2", "--transport", "nccl"];
    let said = refusal(&nccl).expect("none, as before");
    assert!(said.contains("libcuda.so.1"), "{said}");
}

#[test]
fn u42_all_else_works_without_a_driver() {
    if refusal(&["--device", "cuda"]).is_none() {
        return;
    }
    let folder = Folder::new();
    let tables =
        "name = \"a\"\nbatch = { global = 64 }\n[[tables]]\nname = \"t\"\nrows = 90\ndim = 8\n";
    let workload = folder.file("tables.toml", tables).display().to_string();
    let plan = folder.path("plan.json").display().to_string();
    let plans = ["plan", "--workload", &workload, "--topology", "cpu:2", "--out", &plan];
    for args in [&["--help"][..], &["train", "--help"], &plans, &SMALL] {
        let output = emb(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    }
    let output = emb(&[&SMALL[..], &["--device", "auto", "--world", "2"]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let header = said.lines().find(|line| line.starts_with("device ")).expect("a header");
    assert!(header.contains("cpu (auto took cpu: the CUDA driver (libcuda)"), "{header}");
}

/// A folder with the driver alone, of the libraries that `LD_LIBRARY_PATH` has; `None` without one.
fn only_the_driver() -> Option<Folder> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("libcuda.so.1"));
    let Some(driver) = found.into_iter().find_map(|file| file.canonicalize().ok()) else {
        eprintln!("skipped: there is no libcuda.so.1 in LD_LIBRARY_PATH");
        return None;
    };
    let folder = Folder::new();
    std::os::unix::fs::symlink(driver, folder.path("libcuda.so.1")).expect("a link");
    Some(folder)
}

#[test]
fn u40_a_missing_nccl_is_one_line_with_what_was_tried() {
    let Some(folder) = only_the_driver().filter(|_| devices(2)) else { return };
    let nccl = ["--device", "cuda", "--world", "2", "--transport", "nccl"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    command.env("LD_LIBRARY_PATH", folder.path("")).args(SMALL).args(nccl);
    let output = command.output().expect("the program runs");
    let said = text(&output.stderr);
    if !said.contains("cannot be loaded") {
        eprintln!("skipped: this system has an NCCL of its own: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    for word in ["error: ", "NCCL (libnccl)", "libnccl.so.2"] {
        assert!(said.contains(word), "{word:?} is missing from: {said}");
    }
}
