//! The processes that train together: [`Peers`].

use super::mpi::{self, Joined};
use super::nccl::Met;
use crate::config::{Config, Options, TransportKind, timeout};
use crate::launch::{Launcher, Place};
use crate::{Error, Result};
use std::net::TcpStream;
use std::time::Duration;

/// The other processes of a run, where each rank is a process of its own.
///
/// A program that may be started by `mpirun`, `srun`, `torchrun` or `emb launch` joins them first,
/// with the options it was given, and only then resolves these, for it is the others who decide how
/// many ranks there are:
///
/// ```no_run
/// use emb_dlrm::config::Options;
/// use emb_dlrm::train::{Peers, Silent, train_among};
///
/// let mut options = Options { data: vec!["day_0.gz".into()], ..Options::default() };
/// let peers = Peers::join(&mut options)?;
/// let config = peers.resolve(options)?;
/// let report = train_among(&config, peers, &mut Silent)?;
/// # Ok::<(), emb_dlrm::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Peers {
    pub(super) link: Link,
    /// How long they wait for each other.
    wait: Duration,
    /// What a person should know of them.
    notes: Vec<String>,
}

/// How they are reached.
#[derive(Default)]
pub(super) enum Link {
    /// There are none: ranks, if any, are threads.
    #[default]
    None,
    Mpi(Box<Joined>),
    Nccl(Met),
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Mpi(_) => "Mpi",
            Self::Nccl(_) => "Nccl",
        })
    }
}

impl Peers {
    /// Joins the processes that this one was started with, if the options ask for a transport
    /// between processes, and says in the options how many ranks and nodes there are.
    ///
    /// # Errors
    /// A launcher that started several processes which would not know of each other; a transport
    /// between processes that nobody started; another number of ranks than the options say;
    /// processes that do not come.
    pub fn join(options: &mut Options) -> Result<Self> {
        let found = Place::from_environment()?;
        let place = found.filter(|place| place.world > 1);
        let wait = timeout(options)?;
        if found.is_some_and(|place| place.world == 1)
            && options.transport == Some(TransportKind::Mpi)
            && options.world.unwrap_or(1) == 1
        {
            // The only process has nobody to carry to.
            find_mpi()?;
            (options.transport, options.timeout) = (None, None);
        }
        let link = match (options.transport.unwrap_or(TransportKind::Local), place) {
            (TransportKind::Local, Some(place)) => return Err(apart(&place, "--transport local")),
            (TransportKind::Local | TransportKind::Nccl, None) => Link::None,
            (TransportKind::Nccl, Some(place)) => Link::Nccl(Met::meet(&place, wait)?),
            (TransportKind::Mpi, None) => {
                find_mpi()?;
                return Err(Error::Config(
                    "--transport mpi: nobody started this process together with others: run \
                     mpirun -n 4 emb train ..., or emb launch -n 4 -- train ..."
                        .into(),
                ));
            }
            (TransportKind::Mpi, Some(place)) => {
                let nodes = options.nodes.filter(|&nodes| nodes > 0);
                let node = nodes.map(|nodes| (place.world / nodes as usize).max(1));
                let joined = Joined::start(wait, node)?;
                check_launcher(&place, joined.hosts().len())?;
                Link::Mpi(Box::new(joined))
            }
        };
        Self::by(link, options)
    }

    /// Rank `rank` among processes on `hosts`, one a rank, that found each other by means of their
    /// own and will meet by NCCL: `id` is one rank's `UniqueId` as bytes. As
    /// [`join`](Self::join), it completes the options.
    ///
    /// # Errors
    /// No such rank; another number of ranks than the options say; a build without NCCL.
    pub fn by_nccl(
        options: &mut Options,
        rank: usize,
        hosts: Vec<String>,
        id: [u8; 128],
    ) -> Result<Self> {
        Self::by_nccl_over(options, rank, hosts, id, Vec::new())
    }

    /// [`by_nccl`](Self::by_nccl), with connections on which the processes tell each other of
    /// failures, so that every error names the rank that failed first: on rank 0 one to every other
    /// rank, in their order, on another rank one to rank 0. Nothing is unread on them.
    ///
    /// # Errors
    /// As [`by_nccl`](Self::by_nccl); another number of connections.
    pub fn by_nccl_over(
        options: &mut Options,
        rank: usize,
        hosts: Vec<String>,
        id: [u8; 128],
        lines: Vec<TcpStream>,
    ) -> Result<Self> {
        Self::by(Link::Nccl(Met::of(rank, hosts, id, lines)?), options)
    }

    fn by(link: Link, options: &mut Options) -> Result<Self> {
        let wait = timeout(options)?;
        let mut peers = Self { link, wait, notes: Vec::new() };
        let placed = peers.place(options);
        peers.tell(placed)?;
        Ok(peers)
    }

    /// Refuses what can't be done by several processes together, if a launcher started several.
    ///
    /// # Errors
    /// A launcher that started several processes.
    pub fn refuse(command: &str) -> Result<()> {
        match Place::from_environment()?.filter(|place| place.world > 1) {
            Some(place) => Err(apart(&place, command)),
            None => Ok(()),
        }
    }

    /// This rank, if it is one of several processes.
    pub fn rank(&self) -> Option<usize> {
        match &self.link {
            Link::None => None,
            Link::Mpi(joined) => Some(joined.rank()),
            Link::Nccl(met) => Some(met.rank()),
        }
    }

    /// Whether this is the process that speaks: that of rank 0, or the only one.
    pub fn is_first(&self) -> bool {
        self.rank().is_none_or(|rank| rank == 0)
    }

    /// The host of every rank; empty where ranks are threads.
    pub fn hosts(&self) -> &[String] {
        match &self.link {
            Link::None => &[],
            Link::Mpi(joined) => joined.hosts(),
            Link::Nccl(met) => met.hosts(),
        }
    }

    /// What a person should know of the processes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Resolves the options of this rank; where that fails, the others know.
    ///
    /// # Errors
    /// As [`Config::resolve`].
    pub fn resolve(&self, options: Options) -> Result<Config> {
        let local = self.rank().map(|rank| {
            let hosts = self.hosts();
            hosts.iter().filter(|&host| *host == hosts[rank]).count()
        });
        self.tell(Config::resolve_among(options, local))
    }

    /// Hands on what was done on this rank; where that failed, the others know.
    ///
    /// # Errors
    /// The given one.
    pub fn tell<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            match &self.link {
                Link::None => {}
                Link::Mpi(joined) => joined.abort(&error.to_string()),
                Link::Nccl(met) => met.give_up(&error.to_string(), self.wait),
            }
        }
        done
    }

    /// Says in the options how many ranks and nodes there are.
    fn place(&mut self, options: &mut Options) -> Result<()> {
        if self.rank().is_none() {
            return Ok(());
        }
        let world = self.hosts().len();
        let here = u32::try_from(world).unwrap_or(u32::MAX);
        if let Some(asked) = options.world.filter(|&asked| asked != here) {
            return Err(Error::Config(format!(
                "--world is {asked}, but {world} processes were started: leave it out"
            )));
        }
        options.world = Some(here);
        // A plan or machines from a file say for themselves how many ranks a node has.
        let kinds = crate::config::PlacementKind::WORDS;
        let file =
            options.plan.as_deref().is_some_and(|plan| plan != "auto" && !kinds.contains(&plan));
        if options.nodes.is_some() || file || options.topology.is_some() {
            return Ok(());
        }
        let per_host = match &self.link {
            Link::None => None,
            Link::Mpi(joined) => joined.ranks_per_host(),
            Link::Nccl(met) => per_host(met.hosts()),
        };
        match per_host {
            Some(ranks) => options.nodes = Some(here / ranks as u32),
            None => self.notes.push(
                "hosts have different numbers of ranks, or ranks that are no neighbours: all are \
                 counted as one node, unless --nodes says otherwise"
                    .to_owned(),
            ),
        }
        Ok(())
    }
}

/// Whether there is MPI in this build.
///
/// # Errors
/// There is none.
pub(crate) fn find_mpi() -> Result<()> {
    if mpi::BUILT { Ok(()) } else { Err(Error::NotBuilt("mpi")) }
}

/// The name of this host.
#[cfg(feature = "nccl")]
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

/// Ranks of each host, where every host has equally many neighbouring ranks.
fn per_host(hosts: &[String]) -> Option<usize> {
    let first = hosts.iter().take_while(|&host| *host == hosts[0]).count();
    let even = || {
        hosts
            .chunks(first)
            .all(|node| node.len() == first && node.iter().all(|host| *host == node[0]))
    };
    let apart = || {
        let mut names: Vec<&String> = hosts.iter().step_by(first).collect();
        names.sort();
        names.windows(2).all(|pair| pair[0] != pair[1])
    };
    (first > 0 && even() && apart()).then_some(first)
}

/// Refuses a world of MPI that is not that of the launcher.
fn check_launcher(place: &Place, world: usize) -> Result<()> {
    if world == place.world {
        return Ok(());
    }
    Err(Error::Config(stranger(place, world, &mpi::library())))
}

/// What there is to say of a launcher that MPI does not know.
fn stranger(place: &Place, world: usize, library: &str) -> String {
    let (program, ranks) = (place.launcher.program(), place.world);
    let why = match place.launcher {
        Launcher::Torchrun => "torchrun starts ranks of --transport nccl",
        Launcher::Pmi => "this mpiexec is of another MPI, as MPICH's Hydra or Intel's",
        Launcher::Slurm => "srun has to be told --mpi=pmix",
        Launcher::OpenMpi => "this mpirun is of another version",
    };
    format!(
        "{program} started {ranks} processes, but in MPI this one is of a world of {world}: {why}; \
         this program is built with {library}, whose mpirun starts it: mpirun -n {ranks} emb ..., or \
         emb launch -n {ranks} -- ..."
    )
}

/// Processes of one launcher that would know nothing of each other.
fn apart(place: &Place, what: &str) -> Error {
    let Place { rank, world, launcher, .. } = place;
    let program = launcher.program();
    Error::Config(format!(
        "rank {rank} of {world} by {program}: {what} is of one process, and {world} would do the same \
         side by side: for training give --transport mpi (or nccl, one GPU a rank), else start it \
         without {program}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{per_host, stranger};
    use crate::launch::{Launcher, Place};

    #[test]
    fn a_launcher_that_mpi_does_not_know_is_named_with_the_one_it_does() {
        let said = |launcher| {
            let (local_rank, local_world) = (None, None);
            let place = Place { rank: 1, world: 2, local_rank, local_world, launcher };
            stranger(&place, 1, "Open MPI v4.1.4")
        };
        for (launcher, why) in [
            (Launcher::Pmi, "mpiexec started 2 processes"),
            (Launcher::Pmi, "MPICH's Hydra"),
            (Launcher::Torchrun, "--transport nccl"),
            (Launcher::Slurm, "--mpi=pmix"),
            (Launcher::OpenMpi, "another version"),
        ] {
            let text = said(launcher);
            let remedy = "Open MPI v4.1.4, whose mpirun starts it: mpirun -n 2";
            assert!(text.contains(why) && text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn hosts_are_nodes_where_they_have_equally_many_neighbours() {
        let ranks =
            |names: &str| per_host(&names.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(ranks("a a b b c c"), Some(2));
        assert_eq!(ranks("a a a"), Some(3));
        assert_eq!(ranks("a b"), Some(1));
        for uneven in ["a a b", "a b b", "a b a b", "a a b c", "a a b b a a"] {
            assert_eq!(ranks(uneven), None, "{uneven}");
        }
    }
}
