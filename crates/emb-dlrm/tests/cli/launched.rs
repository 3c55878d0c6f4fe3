//! A process that a launcher started together with others, as its variables say.

use crate::support::{Folder, refused, rows};
use std::process::{Command, Output};

/// The variables of each launcher for rank 2 of 4, and its program.
const LAUNCHERS: [(&str, &[(&str, &str)]); 3] = [
    ("mpirun", &[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")]),
    ("srun", &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")]),
    ("torchrun", &[("RANK", "2"), ("WORLD_SIZE", "4")]),
];

fn emb(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emb"));
    command.args(args).envs(variables.iter().copied());
    command.output().expect("the program runs")
}

#[test]
fn four_trainings_side_by_side_are_refused_with_the_remedy() {
    let folder = Folder::new("launched");
    let data = folder.file("data.tsv", &rows(10));
    for (program, variables) in LAUNCHERS {
        for what in ["train", "eval", "predict"] {
            let saved = folder.path("none");
            let mut args = vec![what, "--data", &data];
            if what != "train" {
                args.extend(["--load", &saved]);
            }
            let place = format!("rank 2 of 4 by {program}");
            refused(&emb(variables, &args), &[&place, "--transport mpi", "side by side"]);
        }
    }
    // What is true of several is not of one.
    let one = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")];
    let rows = ["--rows-per-table", "10", "--bottom", "4", "--top", "4"];
    let alone = emb(&one, &[&["train", "--data", &data][..], &rows].concat());
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
}

#[test]
fn what_a_launcher_says_that_makes_no_sense_is_refused_as_an_option_would_be() {
    let garbage: [(&[(&str, &str)], &str); 5] = [
        (&[("RANK", "x"), ("WORLD_SIZE", "4")], "RANK=x"),
        (&[("RANK", "4"), ("WORLD_SIZE", "4")], "RANK=4"),
        (&[("RANK", "1")], "not WORLD_SIZE"),
        (
            &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "-1"), ("SLURM_NTASKS", "4")],
            "SLURM_PROCID=-1",
        ),
        (
            &[
                ("RANK", "1"),
                ("WORLD_SIZE", "4"),
                ("OMPI_COMM_WORLD_RANK", "2"),
                ("OMPI_COMM_WORLD_SIZE", "4"),
            ],
            "rank 2 of 4 by Open MPI, and rank 1 of 4 by torchrun",
        ),
    ];
    for (variables, says) in garbage {
        refused(&emb(variables, &["train", "--data", "synthetic"]), &[says]);
    }
}

#[test]
fn the_doctor_of_many_processes_has_no_threads_for_ranks() {
    for (_, variables) in LAUNCHERS {
        refused(&emb(variables, &["doctor", "--world", "3"]), &["--world 3 asks for threads"]);
    }
}

#[test]
fn launchers_side_by_side_are_refused_too() {
    for (program, variables) in LAUNCHERS {
        let args = ["launch", "-n", "2", "--", "train", "--data", "synthetic"];
        let place = format!("rank 2 of 4 by {program}: emb launch starts the ranks itself");
        refused(&emb(variables, &args), &[&place, &format!("without {program}")]);
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn u42_a_build_without_mpi_says_how_to_build_with_it() {
    let folder = Folder::new("no-mpi");
    let data = folder.file("data.tsv", &rows(10));
    let args = ["train", "--data", &data, "--transport", "mpi"];
    let words = ["this build has no mpi", "--features mpi"];
    refused(&emb(&[], &args), &words);
    refused(&emb(LAUNCHERS[0].1, &args), &words);
}

#[cfg(feature = "mpi")]
#[test]
fn mpi_without_a_launcher_says_how_to_start_it() {
    let folder = Folder::new("no-launcher");
    let data = folder.file("data.tsv", &rows(10));
    let args = ["train", "--data", &data, "--transport", "mpi"];
    refused(&emb(&[], &args), &["mpirun -n 4 emb train", "emb launch -n 4"]);
}
