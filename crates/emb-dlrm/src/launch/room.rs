//! The folder in which `mpirun` keeps its files: [`look_at_folder`].

use super::{Error, environment};
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};

/// Variables that name the folder for files of a moment, in the order in which Open MPI looks at them,
/// and what it takes where none is set (`opal_tmp_directory`).
const VARIABLES: [&str; 3] = ["TMPDIR", "TEMP", "TMP"];
const FOLDER: &str = "/tmp";
/// The parameter of Open MPI that names another.
const PARAMETER: &str = "tmpdir_base";
/// Bytes that have to be free. On a disk of 8 MiB Open MPI 4.1.4 starts neither 2 ranks nor 8, on one of
/// 16 MiB both.
const ROOM: u64 = 16 << 20;

/// Refuses a folder in which `mpirun` could not keep its files: what it says itself of one that is
/// full does not name it.
///
/// # Errors
/// The folder is not there, can't be written to, or is full: its name, where that comes from, what is
/// free and what to do.
pub fn look_at_folder(arguments: &[String]) -> Result<(), Error> {
    // Who names another folder knows which.
    if arguments.iter().any(|argument| argument.contains(PARAMETER)) {
        return Ok(());
    }
    let set = |name: &&str| environment(name).is_some_and(|value| !value.is_empty());
    let variable = VARIABLES.into_iter().find(|name| set(name));
    let folder = variable.and_then(environment).unwrap_or_else(|| FOLDER.to_owned());
    refuse_unusable(variable, &PathBuf::from(folder), ROOM)
}

fn refuse_unusable(variable: Option<&str>, folder: &Path, room: u64) -> Result<(), Error> {
    let name = variable.map_or(String::new(), |name| format!("{name}="));
    let refuse = |what: &str| {
        let remedy = "or set TMPDIR to a folder on every host that has room";
        Err(Error::Start(format!(
            "mpirun keeps files in {name}{}: {what}, {remedy}",
            folder.display()
        )))
    };
    if !folder.is_dir() {
        return refuse("there is no such folder: create it");
    }
    let probe = folder.join(format!("emb-probe-{}", std::process::id()));
    let made = std::fs::File::create(&probe);
    drop(std::fs::remove_file(&probe));
    let full = |error: &std::io::Error| error.kind() == std::io::ErrorKind::StorageFull;
    match (made, statvfs(folder)) {
        (Err(error), _) if !full(&error) => {
            refuse(&format!("nothing can be written there ({error}): make it writable"))
        }
        (made, Ok(disk)) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if made.is_ok() && free >= room {
                return Ok(());
            }
            refuse(&format!(
                "its disk is full: {} KiB and {} files are free, {} KiB are needed: free some",
                free >> 10,
                disk.f_favail,
                room >> 10
            ))
        }
        // What can't be asked may still do.
        (Ok(_), Err(_)) => Ok(()),
        (Err(error), Err(_)) => refuse(&format!("it is full ({error}): free some")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_none_or_full_is_named_with_its_variable_and_the_remedy() {
        let error = |variable, folder: &str, room| {
            let refused = refuse_unusable(variable, Path::new(folder), room);
            refused.expect_err("it is of no use").to_string()
        };
        let none = error(Some("TMPDIR"), "/nowhere/at/all", 0);
        for word in ["TMPDIR=/nowhere/at/all", "no such folder", "set TMPDIR"] {
            assert!(none.contains(word), "{none}");
        }
        assert!(error(Some("TEMP"), "/etc/passwd", 0).contains("TEMP=/etc/passwd"));
        // No disk has as much.
        let here = std::env::temp_dir();
        let full = error(None, &here.display().to_string(), u64::MAX);
        for word in [&here.display().to_string(), "KiB and", "are needed", "free some"] {
            assert!(full.contains(word), "{word}: {full}");
        }
        // Of what the system makes up, nothing can be created.
        assert!(error(Some("TMP"), "/proc", 0).contains("nothing can be written there"));
        refuse_unusable(None, &here, 0).expect("it is of use");
    }
}
