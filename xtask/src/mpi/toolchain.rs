//! The MPI on this machine: what starts programs, and what builds them.

use std::process::Command;

/// What builds need where it is missing.
const INSTALL: &str = "install openmpi-bin, libopenmpi-dev and libclang-dev (Debian, Ubuntu)";

/// An MPI that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// What `mpirun --version` says first.
    pub(crate) version: String,
}

/// Looks for the compiler wrapper, which `MPICC` may name, and for the launcher.
///
/// # Errors
/// What was tried, and what to install.
pub(crate) fn find() -> Result<Toolchain, String> {
    let named = std::env::var("MPICC").ok().filter(|name| !name.is_empty());
    find_of(named.as_deref().unwrap_or("mpicc"), "mpirun")
}

fn find_of(compiler: &str, launcher: &str) -> Result<Toolchain, String> {
    let first_line = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
    };
    if first_line(compiler, "-show").is_none() {
        return Err(format!("no MPI: tried `{compiler} -show` (MPICC names another); {INSTALL}"));
    }
    match first_line(launcher, "--version") {
        Some(version) => Ok(Toolchain { version }),
        None => Err(format!("no MPI: tried `{launcher} --version`; {INSTALL}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_named_where_there_is_no_mpi() {
        let reason = find_of("/nowhere/mpicc", "/nowhere/mpirun").expect_err("neither is there");
        for text in ["`/nowhere/mpicc -show`", "MPICC", "libopenmpi-dev"] {
            assert!(reason.contains(text), "{reason}");
        }
        let reason = find_of("true", "/nowhere/mpirun").expect_err("no launcher is there");
        assert!(reason.contains("`/nowhere/mpirun --version`"), "{reason}");
    }
}
