//! Network interfaces and their addresses: [`Interface`].

use super::System;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) up: bool,
    /// Megabits a second, where the driver tells.
    pub(super) speed: Option<u64>,
    pub(super) addresses: Vec<IpAddr>,
}

impl Interface {
    pub(super) fn is_loopback(&self) -> bool {
        self.name == "lo"
    }
}

/// All of them, by name.
pub(super) fn all(system: &System<'_>) -> Vec<Interface> {
    let fourth = fourth(system);
    let sixth = sixth(system);
    let of = |found: &[(String, IpAddr)], name: &str| -> Vec<IpAddr> {
        found.iter().filter(|(other, _)| other == name).map(|&(_, address)| address).collect()
    };
    let names = system.names("sys/class/net");
    // The folder holds a file beside the interfaces where bonding is loaded.
    let names = names.into_iter().filter(|name| name != "bonding_masters");
    names
        .map(|name| {
            let state = system.read(&format!("sys/class/net/{name}/operstate"));
            // The loopback and tunnels have no carrier to lose and say "unknown".
            let up = matches!(state.as_deref(), Ok("up" | "unknown"));
            let speed = system.read(&format!("sys/class/net/{name}/speed")).ok();
            let speed = speed.and_then(|text| text.parse().ok()).filter(|&speed: &u64| speed > 0);
            let mut addresses = of(&fourth, &name);
            addresses.extend(of(&sixth, &name));
            Interface { name, up, speed, addresses }
        })
        .collect()
}

/// Addresses of version 4: the kernel lists those of the machine without interfaces, and routes by
/// interface without addresses; an address belongs to the interface whose route covers it most
/// closely.
fn fourth(system: &System<'_>) -> Vec<(String, IpAddr)> {
    let routes = routes(system);
    let text = system.read("proc/net/fib_trie").unwrap_or_default();
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    let mut last = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last
        {
            let bits = u32::from(address);
            let covers = |route: &&(String, u32, u32)| bits & route.2 == route.1;
            let closest = routes.iter().filter(covers).max_by_key(|route| route.2);
            let name = match closest {
                _ if address.is_loopback() => "lo".to_owned(),
                Some(route) => route.0.clone(),
                None => continue,
            };
            let entry = (name, IpAddr::V4(address));
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found
}

/// `(interface, network, mask)` of routes that lead somewhere without a gateway.
fn routes(system: &System<'_>) -> Vec<(String, u32, u32)> {
    let text = system.read("proc/net/route").unwrap_or_default();
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Numbers stand in the machine's order of bytes.
        let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::swap_bytes);
        let mask = number(words.get(7)?)?;
        (mask != 0).then_some((words[0].to_owned(), number(words[1])?, mask))
    };
    text.lines().skip(1).filter_map(of).collect()
}

/// Addresses of version 6: the kernel lists them by interface.
fn sixth(system: &System<'_>) -> Vec<(String, IpAddr)> {
    let text = system.read("proc/net/if_inet6").unwrap_or_default();
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bits = u128::from_str_radix(words.first()?, 16).ok()?;
        Some(((*words.get(5)?).to_owned(), IpAddr::V6(Ipv6Addr::from(bits))))
    };
    text.lines().filter_map(of).collect()
}
