//! Memory: how much, in which pages, on which nodes.

use super::system::{bytes, list};
use super::{Check, System};

const AREA: &str = "memory";

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    vec![
        available(system),
        limit(system),
        overcommit(system),
        transparent(system),
        reserved(system),
        nodes(system),
    ]
}

/// Bytes that the processes of this machine, or of this control group, may have together.
pub fn usable_bytes(system: &System<'_>) -> Option<u64> {
    let total = kibibytes(system, "MemTotal").ok()?;
    Some(group_limit(system).map_or(total, |limit| limit.min(total)))
}

fn kibibytes(system: &System<'_>, name: &str) -> Result<u64, String> {
    let text = system.entry("proc/meminfo", name)?;
    let number = text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    number.map(|kibi| kibi * 1024).ok_or_else(|| format!("/proc/meminfo: {name} is {text:?}"))
}

fn available(system: &System<'_>) -> Check {
    let name = "available";
    let both = kibibytes(system, "MemTotal")
        .and_then(|total| Ok((total, kibibytes(system, "MemAvailable")?)));
    Check::of(AREA, name, both, |(total, free)| {
        let check = Check::ok(AREA, name, format!("{} of {}", bytes(free), bytes(total)));
        if free < total / 10 {
            check.warn("less than a tenth is left: other processes hold the rest")
        } else {
            check
        }
    })
}

/// The least limit of all control groups around the process.
fn group_limit(system: &System<'_>) -> Option<u64> {
    // Version 1 says "no limit" as the largest number of pages there can be.
    let read = |text: &str| text.parse::<u64>().ok().filter(|&limit| limit < 1 << 60);
    let found = system.control_group(("memory.max", ("memory", "memory.limit_in_bytes")), read);
    found.into_iter().min()
}

fn limit(system: &System<'_>) -> Check {
    let name = "group limit";
    let Some(limit) = group_limit(system) else { return Check::ok(AREA, name, "none") };
    let read = |text: &str| text.parse::<u64>().ok();
    let used = system.control_group(("memory.current", ("memory", "memory.usage_in_bytes")), read);
    let used = used.first().copied().unwrap_or(0);
    let check = Check::ok(AREA, name, format!("{}, {} of it used", bytes(limit), bytes(used)));
    if used > limit / 10 * 9 {
        check.warn("beyond it the kernel kills a rank without a word: raise it (docker --memory)")
    } else {
        check
    }
}

fn overcommit(system: &System<'_>) -> Check {
    let name = "overcommit";
    Check::of(AREA, name, system.read("proc/sys/vm/overcommit_memory"), |mode| {
        let check = Check::ok(AREA, name, format!("mode {mode}"));
        if mode == "2" {
            check.warn(
                "tables are reserved whole and filled when first touched: vm.overcommit_memory=0 \
                 lets large ones start",
            )
        } else {
            check
        }
    })
}

fn transparent(system: &System<'_>) -> Check {
    let name = "huge pages";
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    Check::of(AREA, name, system.read(path), |text| {
        let chosen = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')));
        let chosen = chosen.unwrap_or(&text);
        let check = Check::ok(AREA, name, format!("transparent: {chosen}"));
        if chosen == "never" {
            check.warn(format!(
                "random rows of large tables miss the TLB at 4 KiB a page: echo madvise > /{path}"
            ))
        } else {
            check
        }
    })
}

fn reserved(system: &System<'_>) -> Check {
    let name = "reserved pages";
    let entry = |name| system.entry("proc/meminfo", name);
    let all = entry("HugePages_Total")
        .and_then(|total| Ok((total, entry("HugePages_Free")?, entry("Hugepagesize")?)));
    Check::of(AREA, name, all, |(total, free, size)| {
        let check = Check::ok(AREA, name, format!("{total} of {size}, {free} free"));
        if total != "0" && total == free {
            check.warn("memory is set aside that nobody uses, emb neither: vm.nr_hugepages=0")
        } else {
            check
        }
    })
}

fn nodes(system: &System<'_>) -> Check {
    let name = "NUMA nodes";
    let folder = "sys/devices/system/node";
    let online = system.read(&format!("{folder}/online"));
    Check::of(AREA, name, online, |text| {
        let nodes = list(&text).unwrap_or_default();
        let cores = |node: &u32| {
            let cores = system.read(&format!("{folder}/node{node}/cpulist"));
            format!("cores {}", cores.unwrap_or_else(|_| "unknown".to_owned()))
        };
        match nodes.len() {
            0 | 1 => Check::ok(AREA, name, "1"),
            count => {
                let each: Vec<String> = nodes.iter().map(cores).collect();
                let found =
                    format!("{count}: {}; a rank for each keeps tables near", each.join(", "));
                Check::ok(AREA, name, found)
            }
        }
    })
}
