//! Something done by all ranks, whatever joins them: [`over`].

use super::Places;
use crate::launch::Place;
use crate::{Error, Result};
use emb_comm::{Collective, Options};

/// What joins the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Threads of this process.
    Threads(usize),
    /// The processes that an MPI launcher has started.
    Mpi,
}

/// Something that every rank does.
pub trait Job: Sync {
    /// What comes of it.
    type Output: Send;

    /// Does it, as one of `ranks`.
    ///
    /// # Errors
    /// What it meets.
    fn on<C: Collective>(&self, ranks: &mut C, places: &Places) -> Result<Self::Output>;
}

impl Over {
    /// MPI where a launcher has started several processes, else `world` threads.
    ///
    /// # Errors
    /// Several processes and a world of threads asked for; variables that contradict themselves.
    pub fn found(world: Option<usize>, threads: usize) -> Result<Self> {
        let place = Place::from_environment()?;
        match (place.filter(|place| place.world > 1), world) {
            (None, world) => Ok(Self::Threads(world.unwrap_or(threads))),
            (Some(_), None) => Ok(Self::Mpi),
            (Some(place), Some(world)) => Err(Error::Config(format!(
                "--world {world} asks for threads, and {} has started {} processes: leave one of them \
                 away",
                place.launcher.program(),
                place.world
            ))),
        }
    }
}

/// Does `job` on all ranks and returns what comes of it on rank 0; `None` in the processes of other
/// ranks.
///
/// # Errors
/// A transport that can't be had; what the first rank to fail says.
pub fn over<J: Job>(over: Over, job: &J) -> Result<Option<J::Output>> {
    match over {
        Over::Threads(world) => {
            let places = Places::one_host(world)?;
            let outputs =
                emb_comm::run(world, &Options::default(), |ranks| job.on(ranks, &places))?;
            Ok(outputs.into_iter().next())
        }
        Over::Mpi => over_mpi(job),
    }
}

#[cfg(feature = "mpi")]
fn over_mpi<J: Job>(job: &J) -> Result<Option<J::Output>> {
    let mut ranks = emb_comm::Mpi::start(&emb_comm::MpiOptions::default())?;
    let places = Places::new(ranks.hosts().to_vec())?;
    let output = job.on(&mut ranks, &places)?;
    let first = ranks.rank() == 0;
    ranks.close()?;
    Ok(first.then_some(output))
}

#[cfg(not(feature = "mpi"))]
fn over_mpi<J: Job>(_job: &J) -> Result<Option<J::Output>> {
    Err(Error::NotBuilt("mpi"))
}
