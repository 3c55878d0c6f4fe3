//! MPI: the library built with, the launcher found.

use super::known::{trouble, version};
use super::{Check, System};

const AREA: &str = "MPI";

/// Whether this build has MPI.
pub(super) const BUILT: bool = cfg!(feature = "mpi");

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let library = BUILT.then(library);
    let mut checks = vec![match &library {
        None => Check::ok(AREA, "library", "not built in: build with --features mpi"),
        Some(text) => judged(Check::ok(AREA, "library", text), text),
    }];
    let launcher = (system.program)("mpirun", "--version").map(|text| {
        let line = text.lines().find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
        line.unwrap_or("a version that it does not tell").trim().to_owned()
    });
    checks.push(match launcher {
        Err(why) if BUILT => Check::ok(AREA, "mpirun", why)
            .warn("--transport mpi is started by it: install openmpi-bin, or extend PATH"),
        Err(why) => Check::ok(AREA, "mpirun", why),
        Ok(text) => {
            let check = judged(Check::ok(AREA, "mpirun", &text), &text);
            match library {
                Some(library) if differ(&library, &text) => check.problem(format!(
                    "it is not of the library that emb was built with, {library}: ranks would not find \
                     each other; put that one's mpirun first in PATH, or build again"
                )),
                _ => check,
            }
        }
    });
    checks
}

/// What the library says that it is.
#[cfg(feature = "mpi")]
fn library() -> String {
    emb_comm::Mpi::library()
}

/// Nothing, in a build without it.
#[cfg(not(feature = "mpi"))]
fn library() -> String {
    String::new()
}

/// A warning for other libraries than Open MPI, and for versions with known trouble.
fn judged(check: Check, text: &str) -> Check {
    if !text.contains("Open MPI") && !text.contains("OpenRTE") {
        return check
            .warn("emb is tested with Open MPI alone: install openmpi-bin and libopenmpi-dev");
    }
    match version(text).and_then(|version| trouble("Open MPI", version)) {
        Some(known) => check.warn(format!("{known}: take a newer version")),
        None => check,
    }
}

/// Whether two texts name different versions.
fn differ(library: &str, launcher: &str) -> bool {
    match (version(library), version(launcher)) {
        (Some(library), Some(launcher)) => library != launcher,
        _ => false,
    }
}
