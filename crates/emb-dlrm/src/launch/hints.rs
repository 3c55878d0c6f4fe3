//! Why `mpirun` may not have started ranks, where its own words do not tell what to do: [`hints`].

use super::start::MpiRun;
use super::{Hosts, Lookup, keeper, mpirun, nodes};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long an `mpirun` may take to say what it is.
const VERSION: Duration = Duration::from_secs(2);

/// What to look at, each a clause; `missing` are the ranks that did not start, `emb` is this
/// executable.
pub(super) fn hints(
    run: &MpiRun,
    missing: &[usize],
    emb: &Path,
    lookup: Lookup<'_>,
) -> Vec<String> {
    let program = mpirun::find(run.path.as_deref()).ok();
    let version = program.as_deref().and_then(version);
    if let (Some(program), Some(version)) = (&program, &version)
        && let Some(hint) = of_another_mpi(program, version)
    {
        return vec![hint];
    }
    let Some(hosts) = &run.hosts else { return Vec::new() };
    match Allocation::find(lookup) {
        Some(allocation) => allocation.lacks(hosts).into_iter().collect(),
        None => by_ssh(hosts, missing, &keeper::host_name(), emb).into_iter().collect(),
    }
}

/// The first line of what a program says of its version.
fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + VERSION;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = matches!(child.try_wait(), Ok(Some(_)));
    drop(child.kill());
    drop(child.wait());
    let mut text = String::new();
    // What a child of it holds open would never end.
    if ended {
        child.stdout.take()?.take(1 << 12).read_to_string(&mut text).ok()?;
    }
    text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

fn of_another_mpi(program: &Path, version: &str) -> Option<String> {
    let known = ["Open MPI", "OpenRTE", "PRTE", "prte"];
    (!known.iter().any(|name| version.contains(name))).then(|| {
        format!(
            "{} is not the mpirun of Open MPI, for which emb is built: it calls itself {version:?}; \
             name that of Open MPI by --mpirun PATH",
            program.display()
        )
    })
}

/// What Slurm gave this job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allocation(Vec<(String, usize)>);

impl Allocation {
    /// That of the environment; `None` outside.
    pub(super) fn find(lookup: Lookup<'_>) -> Option<Self> {
        let first = |names: [&str; 2]| names.into_iter().find_map(lookup);
        let hosts = nodes::hosts(&first(["SLURM_NODELIST", "SLURM_JOB_NODELIST"])?)?;
        let tasks = nodes::tasks(&lookup("SLURM_TASKS_PER_NODE")?)?;
        (hosts.len() == tasks.len()).then(|| Self(hosts.into_iter().zip(tasks).collect()))
    }

    /// Its hosts, and how many ranks each takes.
    fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(host, tasks)| format!("{host}:{tasks}")).collect();
        parts.join(",")
    }

    /// What of the asked hosts is not in it.
    fn lacks(&self, asked: &Hosts) -> Option<String> {
        // Slurm knows a host by its short name, as a person may not.
        let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        let problem = asked.each().find_map(|(name, ranks)| {
            match self.0.iter().find(|(host, _)| host == name || *host == short(name)) {
                None => Some(format!("host {name} is not in Slurm's allocation")),
                Some((_, tasks)) if ranks > *tasks => {
                    Some(format!("Slurm's allocation has {tasks} tasks on {name}, not {ranks}"))
                }
                Some(_) => None,
            }
        })?;
        Some(format!(
            "{problem}: give --hosts {} or less, or ask for more by --ntasks-per-node",
            self.text()
        ))
    }

    /// What a person may not have meant who names no hosts.
    pub(super) fn unused(&self) -> Option<String> {
        (self.0.len() > 1).then(|| {
            format!(
                "all ranks are on this host; Slurm's allocation has {} hosts: --hosts {} takes all",
                self.0.len(),
                self.text()
            )
        })
    }
}

fn by_ssh(hosts: &Hosts, missing: &[usize], here: &str, emb: &Path) -> Option<String> {
    let mut others: Vec<&str> = missing
        .iter()
        .filter_map(|&rank| hosts.of(rank))
        .filter(|&host| host != here && !host.starts_with("localhost"))
        .collect();
    others.dedup();
    let commands: Vec<String> = others
        .iter()
        .map(|host| format!("`ssh -o BatchMode=yes {host} {} --version`", emb.display()))
        .collect();
    (!commands.is_empty()).then(|| {
        format!(
            "mpirun reaches hosts by ssh and expects this program at the same path: see whether {} \
             answers",
            commands.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocation(hosts: &str, tasks: &str) -> Option<Allocation> {
        let set = |name: &str| match name {
            "SLURM_NODELIST" => Some(hosts.to_owned()),
            "SLURM_TASKS_PER_NODE" => Some(tasks.to_owned()),
            _ => None,
        };
        Allocation::find(&set)
    }

    #[test]
    fn hosts_and_ranks_beyond_slurms_allocation_are_named() {
        let given = allocation("node[1-2]", "2,1").expect("an allocation");
        let lacks = |hosts: &str| given.lacks(&Hosts::parse(hosts).expect("hosts"));
        assert_eq!(lacks("node1:2,node2:1"), None);
        assert_eq!(lacks("node2.rack.example"), None);
        let more = lacks("node1:4,node2:2").expect("too many");
        assert!(more.contains("has 2 tasks on node1, not 4"), "{more}");
        assert!(more.contains("--hosts node1:2,node2:1"), "{more}");
        let other = lacks("node1:2,node3:1").expect("another host");
        assert!(other.contains("host node3 is not in Slurm's allocation"), "{other}");
    }

    #[test]
    fn hosts_of_an_allocation_that_nobody_named_are_told_of() {
        let given = allocation("node[1-2]", "4(x2)").expect("an allocation");
        let unused = given.unused().expect("two hosts");
        assert!(unused.contains("--hosts node1:4,node2:4"), "{unused}");
        assert_eq!(allocation("node1", "4").expect("an allocation").unused(), None);
        assert_eq!(allocation("node[1-2]", "4"), None);
    }

    #[test]
    fn another_mpi_is_told_by_what_its_mpirun_calls_itself() {
        let of = |version| of_another_mpi(Path::new("/usr/bin/mpirun"), version);
        assert_eq!(of("mpirun (Open MPI) 4.1.4"), None);
        assert_eq!(of("mpirun (Open MPI) 5.0.3"), None);
        let hydra = of("HYDRA build details:").expect("not Open MPI");
        for word in ["/usr/bin/mpirun", "HYDRA build details:", "--mpirun PATH"] {
            assert!(hydra.contains(word), "{hydra}");
        }
    }

    #[test]
    fn u42_hosts_whose_ranks_did_not_start_are_named_with_what_to_try() {
        let hosts = Hosts::parse("node1:2,node2:2,node3:2").expect("hosts");
        let hint = |missing: &[usize]| by_ssh(&hosts, missing, "node1", Path::new("/opt/emb"));
        assert_eq!(hint(&[0, 1]), None);
        let one = hint(&[4, 5]).expect("a host");
        assert!(one.contains("`ssh -o BatchMode=yes node3 /opt/emb --version`"), "{one}");
        assert!(!one.contains("node2"), "{one}");
        assert!(hint(&[1, 2, 3, 4]).is_some_and(|hint| hint.contains("node2 /opt/emb")));
    }
}
