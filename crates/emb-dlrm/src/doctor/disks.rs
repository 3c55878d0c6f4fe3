//! Shared memory, and where files go.

use super::system::bytes;
use super::{Check, Disk, System};
use std::path::{Path, PathBuf};

const AREA: &str = "disks";

/// Shared memory below which transports between processes do not start: the default of container
/// programs, of which NCCL's manual says that it is too little.
const LEAST_SHARED: u64 = 64 << 20;

/// What NCCL's manual advises to give a container is 1 GiB; below a quarter of it, few ranks fit.
const LOW_SHARED: u64 = 256 << 20;

/// Bytes below which a folder takes no checkpoint worth the name.
const LOW_FOLDER: u64 = 1 << 30;

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let temporary = (system.variable)("TMPDIR").unwrap_or_else(|| "/tmp".to_owned());
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    vec![
        shared(system),
        folder(system, "current folder", &current),
        folder(system, "temporary files", Path::new(&temporary)),
    ]
}

fn text(disk: Disk) -> String {
    format!("{} free of {}", bytes(disk.free), bytes(disk.total))
}

fn shared(system: &System<'_>) -> Check {
    let name = "/dev/shm";
    let fix = "processes of one host meet there, NCCL's and MPI's: docker --shm-size=1g, or mount -o \
               remount,size=50% /dev/shm";
    match (system.disk)(&system.path("dev/shm")) {
        Err(why) => Check::ok(AREA, name, why).problem(fix),
        Ok(disk) if disk.free < LEAST_SHARED => Check::ok(AREA, name, text(disk)).problem(fix),
        Ok(disk) if disk.free < LOW_SHARED => Check::ok(AREA, name, text(disk)).warn(fix),
        Ok(disk) => Check::ok(AREA, name, text(disk)),
    }
}

fn folder(system: &System<'_>, name: &str, folder: &Path) -> Check {
    match (system.disk)(folder) {
        Err(why) => Check::ok(AREA, name, why).problem(if name == "temporary files" {
            "TMPDIR must name a folder"
        } else {
            "go to one that is there"
        }),
        Ok(disk) => {
            let check = Check::ok(AREA, name, format!("{}: {}", folder.display(), text(disk)));
            if disk.free < LOW_FOLDER {
                check.warn(format!("less than {} is left: clear it", bytes(LOW_FOLDER)))
            } else {
                check
            }
        }
    }
}
