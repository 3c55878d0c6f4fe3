//! Everything a change must pass, step by step.

use crate::workspace::{Workspace, output};
use crate::{Failure, features, layers, mpi, tidy, violation};
use std::time::Instant;

/// Crates that the sharded embedding collection alone must not bring: the CLI's and the readers'.
const NOT_IN_THE_CORE: [&str; 4] = ["clap", "flate2", "indicatif", "zstd"];

/// One step: its name, what to do when it fails, and its work.
struct Step {
    name: &'static str,
    remedy: &'static str,
    work: Work,
}

enum Work {
    Cargo(&'static [&'static str]),
    Docs,
    Layers,
    Tidy,
    Features,
}

const STEPS: [Step; 7] = [
    Step {
        name: "format",
        remedy: "run `cargo fmt --all`",
        work: Work::Cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "tidy",
        remedy: "mend the lines above; the rules are in CONTRIBUTING.md",
        work: Work::Tidy,
    },
    Step {
        name: "layers",
        remedy: "remove the edge, or give the dependency a row in docs/dependencies.md",
        work: Work::Layers,
    },
    Step {
        name: "clippy",
        remedy: "mend the lines above, or `#[expect(.., reason = \"..\")]` what is right as it is",
        work: Work::Cargo(&["clippy", "--all-targets", ALL_FEATURES, "--", "-D", "warnings"]),
    },
    Step {
        name: "features",
        remedy: "the crate must build with these features alone: gate what needs more",
        work: Work::Features,
    },
    Step { name: "docs", remedy: "mend the links and the examples named above", work: Work::Docs },
    Step {
        name: TESTS,
        remedy: "run the failing test alone: `cargo test -p <crate> <name>`",
        work: Work::Cargo(&["test", "--workspace"]),
    },
];

const TESTS: &str = "tests";

/// Stands for what [`features::all`] says.
const ALL_FEATURES: &str = "--all-features";

/// Feature sets that must build on their own, without a warning.
const FEATURE_SETS: [&[&str]; 6] = [
    &["-p", "emb-comm", "--features", "cuda"],
    &["-p", "emb-dlrm", "--no-default-features"],
    &["-p", "emb-dlrm", "--no-default-features", "--features", "data"],
    &["-p", "emb-dlrm", "--no-default-features", "--features", "cuda"],
    &["-p", "emb-kernels"],
    &["-p", "emb-kernels", "--features", "conformance"],
];

/// Runs the steps in order, the cheap ones first; `fast` leaves the tests out.
pub(crate) fn run(workspace: &Workspace, fast: bool) -> Result<(), Failure> {
    let start = Instant::now();
    if let Err(reason) = mpi::toolchain::find() {
        eprintln!("check: the feature `{}` is left out: {reason}", features::MPI);
    }
    let steps: Vec<&Step> = STEPS.iter().filter(|step| !(fast && step.name == TESTS)).collect();
    for (index, step) in steps.iter().enumerate() {
        eprintln!("[{}/{}] {}", index + 1, steps.len(), step.name);
        let step_start = Instant::now();
        let result = work(workspace, &step.work);
        let seconds = step_start.elapsed().as_secs_f64();
        result.map_err(|failure| {
            format!("{failure}\n{} failed after {seconds:.1} s: {}", step.name, step.remedy)
        })?;
        eprintln!("[{}/{}] {}: ok, {seconds:.1} s", index + 1, steps.len(), step.name);
    }
    eprintln!("check: all {} steps passed in {:.1} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn work(workspace: &Workspace, work: &Work) -> Result<(), Failure> {
    match work {
        Work::Cargo(arguments) => cargo(workspace, arguments, &[]),
        Work::Docs => cargo(
            workspace,
            &["doc", "--no-deps", ALL_FEATURES],
            &[("RUSTDOCFLAGS", "-D warnings")],
        ),
        Work::Layers => violation::report("layers", &layers::check(workspace)?),
        Work::Tidy => violation::report("tidy", &tidy::check(workspace)?),
        Work::Features => {
            for set in FEATURE_SETS {
                let clippy = [&["clippy"], set, &["--", "-D", "warnings"]].concat();
                cargo(workspace, &clippy, &[])?;
            }
            core_is_small(workspace)
        }
    }
}

fn cargo(
    workspace: &Workspace,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), Failure> {
    let mut command = workspace.command("cargo");
    for &argument in arguments {
        match argument {
            ALL_FEATURES => command.args(features::all(workspace)?),
            argument => command.arg(argument),
        };
    }
    let status = command.envs(environment.iter().copied()).status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`cargo {}` failed", arguments.join(" ")).into())
}

/// emb-dlrm without its default features brings no CLI and no readers.
fn core_is_small(workspace: &Workspace) -> Result<(), Failure> {
    let arguments =
        ["tree", "-p", "emb-dlrm", "--no-default-features", "-e", "normal", "--prefix", "none"];
    let tree = output(workspace.command("cargo").args(arguments))?;
    match unwanted(&tree) {
        None => Ok(()),
        Some(name) => Err(format!("emb-dlrm without default features brings {name}").into()),
    }
}

/// The first crate of a `cargo tree` listing that the core must not bring.
fn unwanted(tree: &str) -> Option<&str> {
    let mut names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| NOT_IN_THE_CORE.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_in_the_core_is_named() {
        assert_eq!(unwanted("emb-dlrm v0.1.0\nserde v1.0\nzstd v0.14.0\n"), Some("zstd"));
        assert_eq!(unwanted("emb-dlrm v0.1.0\nserde v1.0\nzstd-like v1.0\n"), None);
    }

    #[test]
    fn only_the_tests_are_left_out_of_a_fast_check() {
        assert_eq!(STEPS.iter().filter(|step| step.name == TESTS).count(), 1);
    }
}
