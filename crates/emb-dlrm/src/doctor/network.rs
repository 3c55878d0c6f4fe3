//! Which interfaces there are, and which of them transports will use.

use super::interfaces::{Interface, all};
use super::{Check, System};
use std::net::{IpAddr, Ipv4Addr};

const AREA: &str = "network";

/// Variables with names of interfaces, as each library reads them.
const VARIABLES: [(&str, Reads); 6] = [
    ("NCCL_SOCKET_IFNAME", Reads::Prefixes),
    ("GLOO_SOCKET_IFNAME", Reads::Names),
    ("OMPI_MCA_btl_tcp_if_include", Reads::Names),
    ("OMPI_MCA_btl_tcp_if_exclude", Reads::Excluded),
    ("OMPI_MCA_oob_tcp_if_include", Reads::Names),
    ("OMPI_MCA_oob_tcp_if_exclude", Reads::Excluded),
];

/// How a variable names interfaces.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// Beginnings of names; `=` in front asks for whole names, `^` for all others (NCCL's manual,
    /// environment variables).
    Prefixes,
    /// Names, or networks such as `10.0.0.0/8` (Open MPI's manual, the TCP transport).
    Names,
    /// The same, of interfaces not to be used.
    Excluded,
}

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let interfaces = all(system);
    if interfaces.is_empty() {
        return vec![Check::unknown(AREA, "interfaces", "/sys/class/net lists none")];
    }
    let mut checks: Vec<Check> = interfaces.iter().map(describe).collect();
    for (variable, reads) in VARIABLES {
        if let Some(value) = (system.variable)(variable) {
            checks.push(named(variable, &value, reads, &interfaces));
        }
    }
    checks.push(chosen(system, &interfaces));
    checks
}

fn describe(interface: &Interface) -> Check {
    let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
    let addresses =
        if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
    let speed = interface.speed.map_or_else(String::new, |speed| format!(", {speed} Mbit/s"));
    let state = if interface.up { "up" } else { "down" };
    Check::ok(AREA, &interface.name, format!("{state}{speed}, {addresses}"))
}

/// A variable that names interfaces: each must be there, and up.
fn named(variable: &str, value: &str, reads: Reads, interfaces: &[Interface]) -> Check {
    let check = Check::ok(AREA, variable, value);
    let excluded = reads == Reads::Excluded || value.starts_with('^');
    let names = value.trim_start_matches(['^', '=']).split(',').map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let name = name.split(':').next().unwrap_or(name);
        let mut found =
            interfaces.iter().filter(|interface| is_named(interface, name, value, reads));
        let Some(first) = found.next() else {
            // What is to be left out need not be there.
            if excluded {
                continue;
            }
            let there: Vec<&str> =
                interfaces.iter().map(|interface| interface.name.as_str()).collect();
            return check.problem(format!(
                "there is no interface {name:?}: set {variable} to one of {}",
                there.join(", ")
            ));
        };
        if !excluded && !first.up && !found.any(|interface| interface.up) {
            let fix = format!("{} is down: ip link set {} up", first.name, first.name);
            return check.problem(fix);
        }
    }
    check
}

fn is_named(interface: &Interface, name: &str, value: &str, reads: Reads) -> bool {
    if name.contains('/') {
        return interface.addresses.iter().any(|address| inside(*address, name));
    }
    let whole = reads != Reads::Prefixes || value.trim_start_matches('^').starts_with('=');
    if whole { interface.name == name } else { interface.name.starts_with(name) }
}

/// Whether an address is in a network such as `10.0.0.0/8`.
fn inside(address: IpAddr, network: &str) -> bool {
    let Some((base, bits)) = network.split_once('/') else { return false };
    let (Ok(base), Ok(bits), IpAddr::V4(address)) =
        (base.parse::<Ipv4Addr>(), bits.parse::<u32>(), address)
    else {
        return false;
    };
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    u32::from(address) & mask == u32::from(base) & mask
}

/// What reaches other hosts: the first that is up and not the loopback (NCCL's manual leaves out
/// `docker*`, too), unless a variable says otherwise.
fn chosen(system: &System<'_>, interfaces: &[Interface]) -> Check {
    let name = "between hosts";
    let outward = |interface: &&Interface| {
        interface.up && !interface.is_loopback() && !interface.addresses.is_empty()
    };
    let all: Vec<&Interface> = interfaces.iter().filter(outward).collect();
    let of = |variable: &str, reads: Reads| -> Vec<&str> {
        let value = (system.variable)(variable);
        let chosen = all.iter().filter(|interface| match &value {
            None => !interface.name.starts_with("docker"),
            Some(value) => {
                let names = value.trim_start_matches(['^', '=']).split(',');
                let hit = names.map(str::trim).any(|name| is_named(interface, name, value, reads));
                hit != value.starts_with('^')
            }
        });
        chosen.map(|interface| interface.name.as_str()).collect()
    };
    let nccl = of("NCCL_SOCKET_IFNAME", Reads::Prefixes);
    let mpi = of("OMPI_MCA_btl_tcp_if_include", Reads::Names);
    match (nccl.first(), mpi.is_empty()) {
        (None, _) | (_, true) if all.is_empty() => {
            Check::ok(AREA, name, "none is up but the loopback: ranks of this host alone")
        }
        (nccl, _) => {
            let nccl = nccl.copied().unwrap_or("none");
            let mpi = if mpi.is_empty() { "none".to_owned() } else { mpi.join(", ") };
            let check = Check::ok(AREA, name, format!("NCCL takes {nccl}, Open MPI {mpi}"));
            if all.len() > 1 {
                let found = check.found.clone();
                Check::ok(
                    AREA,
                    name,
                    format!(
                        "{found}; several are up: NCCL_SOCKET_IFNAME and OMPI_MCA_btl_tcp_if_include choose"
                    ),
                )
            } else {
                check
            }
        }
    }
}
