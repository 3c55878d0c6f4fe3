//! The processor: its instructions, and how many cores this process may use.

use super::system::list;
use super::{Check, System};

const AREA: &str = "processor";

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    vec![model(system), instructions(system), cores(system)]
}

/// Cores that this process may keep busy, at least 1: those that it may run on, or its control
/// group's quota of time if that is less; `None` where neither can be read.
pub fn usable_cores(system: &System<'_>) -> Option<usize> {
    let allowed = allowed(system).ok()?.len();
    let quota = quota(system).map_or(usize::MAX, |cores| cores.ceil() as usize);
    Some(allowed.min(quota).max(1))
}

fn model(system: &System<'_>) -> Check {
    let model = system.entry("proc/cpuinfo", "model name");
    Check::of(AREA, "model", model, |model| Check::ok(AREA, "model", model))
}

fn instructions(system: &System<'_>) -> Check {
    let name = "instructions";
    let flags = system.entry("proc/cpuinfo", "flags");
    Check::of(AREA, name, flags, |flags| {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let has = |flag: &&str| flags.contains(flag);
        let found: Vec<&str> = ["avx2", "fma", "avx512f"].into_iter().filter(has).collect();
        let missing: Vec<&str> =
            ["avx2", "fma"].into_iter().filter(|flag| !flags.contains(flag)).collect();
        let check = Check::ok(
            AREA,
            name,
            if found.is_empty() {
                "none of avx2, fma, avx512f".to_owned()
            } else {
                found.join(", ")
            },
        );
        if missing.is_empty() {
            check
        } else {
            check.warn(format!(
                "no {}: kernels run several times slower; in a virtual machine pass the host's processor on",
                missing.join(", ")
            ))
        }
    })
}

fn cores(system: &System<'_>) -> Check {
    let name = "cores";
    let both = allowed(system).and_then(|allowed| Ok((allowed, online(system)?)));
    Check::of(AREA, name, both, |(allowed, online)| {
        let (allowed, online) = (allowed.len(), online.len());
        let quota = quota(system);
        let limited = match quota {
            Some(quota) if quota < allowed as f64 => {
                format!(", a quota of {quota:.2} cores of time")
            }
            _ => String::new(),
        };
        let check = Check::ok(AREA, name, format!("{allowed} usable of {online} online{limited}"));
        if !limited.is_empty() {
            return check.warn(
                "the control group throttles threads beyond its quota: raise it (docker --cpus), or use \
                 fewer --threads and ranks",
            );
        }
        if allowed < online {
            return check.warn(
                "this process is bound to some of the cores: mpirun --bind-to none, srun \
                 --cpus-per-task, or taskset",
            );
        }
        check
    })
}

/// Cores that the process may run on.
fn allowed(system: &System<'_>) -> Result<Vec<u32>, String> {
    let text = system.entry("proc/self/status", "Cpus_allowed_list")?;
    list(&text).ok_or_else(|| format!("/proc/self/status: Cpus_allowed_list is {text:?}"))
}

fn online(system: &System<'_>) -> Result<Vec<u32>, String> {
    let text = system.read("sys/devices/system/cpu/online")?;
    list(&text).ok_or_else(|| format!("/sys/devices/system/cpu/online is {text:?}"))
}

/// Cores of time a period, the least of all control groups around the process.
fn quota(system: &System<'_>) -> Option<f64> {
    let new = |text: &str| {
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    };
    // Version 1 has the period in a file of its own; its default is what is set in practice.
    let old = |text: &str| {
        let quota: f64 = text.parse().ok()?;
        (quota > 0.0).then_some(quota / 100_000.0)
    };
    let read = |text: &str| if text.contains(' ') { new(text) } else { old(text) };
    let found = system.control_group(("cpu.max", ("cpu", "cpu.cfs_quota_us")), read);
    found.into_iter().reduce(f64::min)
}
