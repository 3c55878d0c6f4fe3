//! With the feature `mpi`, says at once and in one message where no MPI library is found: the crates
//! that bind it fail later, after minutes, in the midst of a trace. Without, it does nothing.

#[path = "build/search.rs"]
mod search;

use std::process::{Command, Stdio};

fn main() {
    tell("rerun-if-changed=build.rs");
    tell("rerun-if-changed=build/search.rs");
    if std::env::var_os("CARGO_FEATURE_MPI").is_none() {
        return;
    }
    for name in ["MPI_PKG_CONFIG", "CRAY_MPICH_DIR", "MPICC", "PATH", "PKG_CONFIG_PATH"] {
        tell(&format!("rerun-if-env-changed={name}"));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let runs = |program: &str, arguments: &[&str]| {
        let (out, error) = (Stdio::null(), Stdio::null());
        let run = Command::new(program).args(arguments).stdout(out).stderr(error).status();
        run.is_ok_and(|status| status.success())
    };
    if let Err(tried) = search::find(variable, runs) {
        tell(&format!("error={}", search::message(&tried)));
    }
}

/// Tells cargo.
fn tell(what: &str) {
    println!("cargo::{what}");
}
