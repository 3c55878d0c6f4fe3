//! `mpirun` of Open MPI: where it is, and how it is called.

use super::hints::Allocation;
use super::keeper::VARIABLE;
use super::start::MpiRun;
use super::{Error, environment};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where packages put it beside the search path: Debian, Fedora and RHEL, `module load` aside.
const PLACES: [&str; 3] =
    ["/usr/lib64/openmpi/bin/mpirun", "/usr/lib/openmpi/bin/mpirun", "/usr/local/bin/mpirun"];
/// What lets root call it.
const ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];

/// The program: that of `asked`, else the first on the search path, else where packages put it.
///
/// # Errors
/// There is none; the error names what was tried, and the packages.
pub fn find(asked: Option<&Path>) -> Result<PathBuf, Error> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    find_in(asked, &search, &PLACES)
}

fn find_in(asked: Option<&Path>, search: &OsString, places: &[&str]) -> Result<PathBuf, Error> {
    if let Some(path) = asked {
        if is_program(path) {
            return Ok(path.to_owned());
        }
        return Err(Error::Start(format!("--mpirun {}: no such program", path.display())));
    }
    let folders: Vec<PathBuf> = std::env::split_paths(search).collect();
    let on_path = folders.iter().map(|folder| folder.join("mpirun"));
    let mut tried = on_path.chain(places.iter().map(PathBuf::from));
    tried.find(|path| is_program(path)).ok_or_else(|| {
        let folders: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        Error::Start(format!(
            "no mpirun: looked in PATH ({}) and at {}; install Open MPI (Debian and Ubuntu: \
             openmpi-bin, Fedora and RHEL: openmpi), or name it by --mpirun PATH",
            folders.join(":"),
            places.join(", ")
        ))
    })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// What `mpirun` is given before the program.
pub(super) fn arguments(run: &MpiRun, world: usize) -> Vec<OsString> {
    // Ranks bring threads of their own: bound to a core each, all threads of a rank would share
    // it. Hosts are filled in their order, so that it is known which ranks were on which.
    let mut all: Vec<String> = ["--bind-to", "none", "--map-by", "slot", "-x", VARIABLE]
        .into_iter()
        .map(str::to_owned)
        .collect();
    let hosts = run.hosts.as_ref().map(ToString::to_string);
    // This host is named, because mpirun would otherwise take all hosts of an allocation it is in.
    let here = || format!("localhost:{world}");
    all.extend(["--host".to_owned(), hosts.unwrap_or_else(here)]);
    if run.hosts.is_none() {
        // A scheduler may have given this job fewer tasks than the host has cores.
        all.push("--oversubscribe".to_owned());
    }
    if run.hosts.is_none() && world > cores() {
        // Ranks that wait leave the cores to the others.
        all.extend(["--mca", "mpi_yield_when_idle", "1"].map(str::to_owned));
    }
    all.extend(run.arguments.iter().cloned());
    all.extend(["-n".to_owned(), world.to_string()]);
    all.into_iter().map(OsString::from).collect()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What a person should know before `mpirun` starts; lines.
pub fn notes(run: &MpiRun, world: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let cores = cores();
    if run.hosts.is_none()
        && let Some(unused) = Allocation::find(&environment).and_then(|all| all.unused())
    {
        notes.push(unused);
    }
    if run.hosts.is_none() && world > cores {
        notes.push(format!("{world} ranks share {cores} cores"));
    }
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let may = run.arguments.iter().any(|argument| argument == "--allow-run-as-root");
    if rustix::process::geteuid().is_root() && !may && !ROOT.iter().all(set) {
        notes.push(format!(
            "mpirun does not start for root; in a container, where root is nobody else, set {}=1 \
             and {}=1",
            ROOT[0], ROOT[1]
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u42_a_missing_mpirun_names_what_was_tried_and_what_to_install() {
        let search = OsString::from("/nowhere/a:/nowhere/b");
        let error = find_in(None, &search, &["/nowhere/c/mpirun"]).expect_err("none").to_string();
        for word in ["/nowhere/a:/nowhere/b", "/nowhere/c/mpirun", "openmpi-bin", "--mpirun PATH"] {
            assert!(error.contains(word), "{error}");
        }
        let asked = find_in(Some(Path::new("/etc/passwd")), &search, &[]).expect_err("no program");
        assert!(asked.to_string().contains("--mpirun /etc/passwd"), "{asked}");
    }

    #[test]
    fn hosts_are_handed_on_and_one_host_takes_more_ranks_than_cores() {
        let here = arguments(&MpiRun::default(), 4000);
        assert!(here.contains(&"mpi_yield_when_idle".into()), "{here:?}");
        // In a job of one task, too: Slurm's slots are not cores.
        let one = arguments(&MpiRun::default(), 1);
        assert!(one.contains(&"--oversubscribe".into()), "{one:?}");
        assert!(here.contains(&"localhost:4000".into()), "{here:?}");
        let hosts = crate::launch::Hosts::parse("a:2,b:2").ok();
        let there = MpiRun { hosts, arguments: vec!["--verbose".into()], ..MpiRun::default() };
        let there = arguments(&there, 4);
        assert!(!there.contains(&"--oversubscribe".into()), "{there:?}");
        assert!(there.contains(&"a:2,b:2".into()) && there.contains(&"--verbose".into()));
        assert_eq!(there[there.len() - 2..], [OsString::from("-n"), OsString::from("4")]);
    }
}
