//! Limits of the process that transports run into.

use super::system::bytes;
use super::{Check, System};

const AREA: &str = "limits";

/// Files that a rank with a few hundred peers needs: a socket or two each.
const OPEN_FILES: u64 = 1024;

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    vec![locked(system), files(system)]
}

/// The soft limit in a line of `/proc/self/limits`; `None` for unlimited.
fn soft(system: &System<'_>, name: &str) -> Result<Option<u64>, String> {
    let text = system.read("proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("/proc/self/limits has no {name:?}"))?;
    match line.split_whitespace().next() {
        Some("unlimited") => Ok(None),
        Some(number) => {
            number.parse().map(Some).map_err(|_| format!("/proc/self/limits: {name} is {number:?}"))
        }
        None => Err(format!("/proc/self/limits: {name} has no value")),
    }
}

/// Adapters of `InfiniBand` register memory, which locks it.
fn locked(system: &System<'_>) -> Check {
    let name = "locked memory";
    Check::of(AREA, name, soft(system, "Max locked memory"), |limit| {
        let adapters = system.names("sys/class/infiniband");
        match limit {
            None => Check::ok(AREA, name, "unlimited"),
            Some(limit) if adapters.is_empty() => {
                Check::ok(AREA, name, format!("{}; no adapter needs more", bytes(limit)))
            }
            Some(limit) => Check::ok(AREA, name, bytes(limit)).problem(format!(
                "{} can't register the buffers of exchanges: ulimit -l unlimited, also for the \
                 launcher's daemon (docker --ulimit memlock=-1)",
                adapters.join(", ")
            )),
        }
    })
}

fn files(system: &System<'_>) -> Check {
    let name = "open files";
    Check::of(AREA, name, soft(system, "Max open files"), |limit| match limit {
        None => Check::ok(AREA, name, "unlimited"),
        Some(limit) if limit < OPEN_FILES => Check::ok(AREA, name, limit.to_string())
            .warn(format!("every peer takes sockets: ulimit -n {}", 16 * OPEN_FILES)),
        Some(limit) => Check::ok(AREA, name, limit.to_string()),
    })
}
