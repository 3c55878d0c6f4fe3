//! Where ranks meet before any transport joins them: [`Point`].

use super::place::{number, set};
use super::{Error, Launcher, Lookup, Place, nodes};
use std::fmt;

/// First of the ports that are taken where nobody names one, and how many of them there are: below
/// the range that Linux gives to connections by itself (`ip_local_port_range` begins at 32768).
const PORTS: std::ops::Range<u16> = 20000..30000;

/// Host and port where rank 0 waits for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Name or address of rank 0's host.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Point {
    /// Where the ranks of a launcher meet.
    ///
    /// The host is `MASTER_ADDR`, else this host where all ranks are on it, else the first host of
    /// Slurm's step. The port is `EMB_RENDEZVOUS_PORT`, else `MASTER_PORT` + 1 (on `MASTER_PORT`
    /// itself listens torchrun's own store), else one that follows from the number of the job, so
    /// that two jobs of a host do not meet.
    ///
    /// # Errors
    /// No host can be told; a port that is no number.
    pub fn find(place: &Place, lookup: Lookup<'_>) -> Result<Self, Error> {
        Ok(Self { host: host(place, lookup)?, port: port(place.launcher, lookup)? })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What tells the meetings of different jobs apart, the same for all ranks of one: the number that
/// the launcher gave the job, if it gave one.
pub fn meeting_name(launcher: Launcher, lookup: Lookup<'_>) -> String {
    let names: &[&str] = match launcher {
        Launcher::OpenMpi => &["OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"],
        // What Hydra numbers is of a rank or a host, not of the job.
        Launcher::Pmi => &[],
        Launcher::Slurm => &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        Launcher::Torchrun => {
            &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"]
        }
    };
    let values: Vec<String> = names.iter().filter_map(|name| set(lookup, name)).collect();
    values.join(".")
}

fn host(place: &Place, lookup: Lookup<'_>) -> Result<String, Error> {
    if let Some(host) = set(lookup, "MASTER_ADDR") {
        return Ok(host);
    }
    if place.local_world == Some(place.world) {
        return Ok("127.0.0.1".to_owned());
    }
    let lists = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
    let list = lists.iter().find_map(|name| set(lookup, name));
    match list.as_deref().and_then(nodes::hosts).and_then(|hosts| hosts.into_iter().next()) {
        Some(host) if place.launcher == Launcher::Slurm => Ok(host),
        _ => Err(Error::NoAddress(format!(
            "rank {} of {} by {}: nothing says on which host rank 0 is: set MASTER_ADDR to its \
             name or address",
            place.rank, place.world, place.launcher
        ))),
    }
}

fn port(launcher: Launcher, lookup: Lookup<'_>) -> Result<u16, Error> {
    let valid = |variable, value: usize, add: usize| {
        u16::try_from(value + add).ok().filter(|&port| value > 0 && port > 0).ok_or_else(|| {
            let problem = format!("a port is from 1 to {}", usize::from(u16::MAX) - add);
            Error::Variable { launcher, variable, value: value.to_string(), problem }
        })
    };
    if let Some(port) = number(lookup, launcher, "EMB_RENDEZVOUS_PORT")? {
        return valid("EMB_RENDEZVOUS_PORT", port, 0);
    }
    if let Some(port) = number(lookup, launcher, "MASTER_PORT")? {
        return valid("MASTER_PORT", port, 1);
    }
    let name = meeting_name(launcher, lookup);
    // FNV-1a, 32 bits (Fowler, Noll, Vo): any spread will do, the same in every process.
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = name.bytes().fold(0x811c_9dc5, mix);
    Ok(PORTS.start + (hash % PORTS.len() as u32) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(launcher: Launcher, world: usize, local_world: Option<usize>) -> Place {
        Place { rank: 0, world, local_rank: None, local_world, launcher }
    }

    fn point(place: &Place, set: &[(&str, &str)]) -> Result<String, String> {
        let lookup = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Point::find(place, &lookup).map(|point| point.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_meeting_is_one_port_above_that_of_torchruns_store() {
        let torchrun = place(Launcher::Torchrun, 4, Some(4));
        let master = [("MASTER_ADDR", "node7"), ("MASTER_PORT", "29500")];
        assert_eq!(point(&torchrun, &master), Ok("node7:29501".to_owned()));
        let asked = [&master[..], &[("EMB_RENDEZVOUS_PORT", "4000")]].concat();
        assert_eq!(point(&torchrun, &asked), Ok("node7:4000".to_owned()));
    }

    #[test]
    fn ports_that_are_none_are_refused_by_variable_and_value() {
        let torchrun = place(Launcher::Torchrun, 4, Some(4));
        for (name, value, says) in [
            ("MASTER_PORT", "65535", "MASTER_PORT=65535: a port is from 1 to 65534"),
            ("MASTER_PORT", "0", "MASTER_PORT=0"),
            (
                "EMB_RENDEZVOUS_PORT",
                "70000",
                "EMB_RENDEZVOUS_PORT=70000: a port is from 1 to 65535",
            ),
            ("EMB_RENDEZVOUS_PORT", "x", "EMB_RENDEZVOUS_PORT=x: not a whole number"),
        ] {
            let error = point(&torchrun, &[(name, value)]).expect_err("no port");
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn ranks_of_one_host_meet_on_it_and_others_need_an_address() {
        let one = point(&place(Launcher::OpenMpi, 4, Some(4)), &[]).expect("one host");
        assert!(one.starts_with("127.0.0.1:2"), "{one}");
        let many = point(&place(Launcher::OpenMpi, 4, Some(2)), &[]).expect_err("two hosts");
        assert!(many.contains("MASTER_ADDR"), "{many}");
    }

    #[test]
    fn steps_of_slurm_meet_on_their_first_host_at_a_port_of_their_own() {
        let slurm = place(Launcher::Slurm, 4, Some(2));
        let step = |id| {
            let set =
                [("SLURM_STEP_NODELIST", "n[07-08]"), ("SLURM_JOB_ID", "9"), ("SLURM_STEP_ID", id)];
            point(&slurm, &set).expect("a step")
        };
        assert!(step("0").starts_with("n07:2"), "{}", step("0"));
        assert_ne!(step("0"), step("1"));
    }
}
