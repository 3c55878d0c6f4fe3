//! Which rank this process is, by the variables of whoever started it: [`Place`].

use super::nodes::tasks;
use super::{Error, Lookup, environment};
use std::fmt;

/// Steps of Slurm from this number on are no steps of `srun`: batch scripts, interactive shells
/// and the like (`SLURM_MAX_NORMAL_STEP_ID` in slurm.h).
const FIRST_SPECIAL_STEP: u64 = 0xffff_fff0;

/// Who started this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Launcher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// A launcher that speaks PMI: `mpiexec` of Hydra, or `srun --mpi=pmi2`.
    Pmi,
    /// `srun`.
    Slurm,
    /// `torchrun`, or whoever sets its variables.
    Torchrun,
}

impl Launcher {
    /// Its program, for messages.
    pub fn program(self) -> &'static str {
        match self {
            Self::OpenMpi => "mpirun",
            Self::Pmi => "mpiexec",
            Self::Slurm => "srun",
            Self::Torchrun => "torchrun",
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Pmi => "PMI",
            Self::Slurm => "Slurm",
            Self::Torchrun => "torchrun",
        })
    }
}

/// Where this process stands among those that were started with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub rank: usize,
    /// Processes in all.
    pub world: usize,
    /// Its number among those of its host, where the launcher says so.
    pub local_rank: Option<usize>,
    /// Processes of its host, where the launcher says so.
    pub local_world: Option<usize>,
    /// Who says so.
    pub launcher: Launcher,
}

impl Place {
    /// The place of this process; `None` where a person started it by hand.
    ///
    /// # Errors
    /// Variables that contradict themselves or each other, by name and value.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        Self::find(&environment)
    }

    /// As [`Place::from_environment`], from other variables: a pure function.
    ///
    /// Several launchers may have left their variables, as `mpirun` inside an allocation of Slurm.
    /// The innermost counts: `torchrun` itself (it sets `TORCHELASTIC_RUN_ID`), then `mpirun`,
    /// then PMI, then torchrun's variables set by a script, then `srun`. A script's must say what
    /// `mpirun` says.
    ///
    /// # Errors
    /// As [`Place::from_environment`].
    pub fn find(lookup: Lookup<'_>) -> Result<Option<Self>, Error> {
        let torchrun = || read(lookup, Launcher::Torchrun, &TORCHRUN);
        if set(lookup, "TORCHELASTIC_RUN_ID").is_some()
            && let Some(place) = torchrun()?
        {
            return Ok(Some(place));
        }
        let mpi = match read(lookup, Launcher::OpenMpi, &OPEN_MPI)? {
            None => read(lookup, Launcher::Pmi, &PMI)?,
            found => found,
        };
        let slurm = || if is_step(lookup)? { slurm(lookup) } else { Ok(None) };
        let script = match torchrun() {
            // Half of a pair with so common a name as RANK is no one's word against a launcher's.
            Err(Error::Half { .. }) if mpi.is_some() || is_step(lookup)? => None,
            said => said?,
        };
        match (mpi, script) {
            (Some(first), Some(second))
                if (first.rank, first.world) != (second.rank, second.world) =>
            {
                Err(Error::Contradiction { first, second })
            }
            // What srun says of PMI it says of Slurm too, with the ranks of the host.
            (Some(pmi), _) if pmi.launcher == Launcher::Pmi => {
                let same = |step: &Self| (step.rank, step.world) == (pmi.rank, pmi.world);
                Ok(Some(slurm()?.filter(same).unwrap_or(pmi)))
            }
            (Some(place), _) | (None, Some(place)) => Ok(Some(place)),
            (None, None) => slurm(),
        }
    }
}

/// The variables of a launcher.
struct Names {
    rank: &'static str,
    world: &'static str,
    local_rank: &'static str,
    local_world: &'static str,
}

const OPEN_MPI: Names = Names {
    rank: "OMPI_COMM_WORLD_RANK",
    world: "OMPI_COMM_WORLD_SIZE",
    local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
    local_world: "OMPI_COMM_WORLD_LOCAL_SIZE",
};

const PMI: Names = Names {
    rank: "PMI_RANK",
    world: "PMI_SIZE",
    local_rank: "MPI_LOCALRANKID",
    local_world: "MPI_LOCALNRANKS",
};

const TORCHRUN: Names = Names {
    rank: "RANK",
    world: "WORLD_SIZE",
    local_rank: "LOCAL_RANK",
    local_world: "LOCAL_WORLD_SIZE",
};

fn read(lookup: Lookup<'_>, launcher: Launcher, names: &Names) -> Result<Option<Place>, Error> {
    let Some((rank, world)) = pair(lookup, launcher, names.rank, names.world)? else {
        return Ok(None);
    };
    let local_rank = number(lookup, launcher, names.local_rank)?;
    let local_world = number(lookup, launcher, names.local_world)?;
    if let (Some(local), Some(of)) = (local_rank, local_world) {
        below(launcher, names.local_rank, local, names.local_world, of)?;
        if of > world {
            let problem = format!("more than {}={world}", names.world);
            let (variable, value) = (names.local_world, of.to_string());
            return Err(Error::Variable { launcher, variable, value, problem });
        }
    }
    Ok(Some(Place { rank, world, local_rank, local_world, launcher }))
}

/// Whether `srun` started this process. An allocation has most variables too, in its batch script
/// or shell, which is one process.
fn is_step(lookup: Lookup<'_>) -> Result<bool, Error> {
    let step = number(lookup, Launcher::Slurm, "SLURM_STEP_ID")?;
    Ok(step.is_some_and(|step| (step as u64) < FIRST_SPECIAL_STEP))
}

fn slurm(lookup: Lookup<'_>) -> Result<Option<Place>, Error> {
    let launcher = Launcher::Slurm;
    // The tasks of the step; those of the allocation may be more.
    let of_step = set(lookup, "SLURM_STEP_NUM_TASKS").is_some();
    let world = if of_step { "SLURM_STEP_NUM_TASKS" } else { "SLURM_NTASKS" };
    let Some((rank, world)) = pair(lookup, launcher, "SLURM_PROCID", world)? else {
        return Ok(None);
    };
    let local_rank = number(lookup, launcher, "SLURM_LOCALID")?;
    let node = number(lookup, launcher, "SLURM_NODEID")?.unwrap_or(0);
    let lists = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"];
    let of_list = lists.iter().find_map(|&name| set(lookup, name).map(|list| (name, list)));
    let local_world = match of_list {
        Some((name, list)) => {
            Some(tasks(&list).and_then(|of| of.get(node).copied()).ok_or_else(|| {
                Error::Variable {
                    launcher,
                    variable: name,
                    value: list.clone(),
                    problem: format!("no number of tasks for node {node}, as 4(x2),3 would be"),
                }
            })?)
        }
        None => number(lookup, launcher, "SLURM_NTASKS_PER_NODE")?,
    };
    if let (Some(local), Some(of)) = (local_rank, local_world) {
        let name = of_list_name(lookup, &lists);
        below(launcher, "SLURM_LOCALID", local, name, of)?;
    }
    Ok(Some(Place { rank, world, local_rank, local_world, launcher }))
}

fn of_list_name(lookup: Lookup<'_>, lists: &[&'static str]) -> &'static str {
    lists
        .iter()
        .find(|name| set(lookup, name).is_some())
        .copied()
        .unwrap_or("SLURM_NTASKS_PER_NODE")
}

/// Rank and world: both or neither.
fn pair(
    lookup: Lookup<'_>,
    launcher: Launcher,
    rank_name: &'static str,
    world_name: &'static str,
) -> Result<Option<(usize, usize)>, Error> {
    let half = |given, missing| Error::Half {
        launcher,
        given,
        value: set(lookup, given).unwrap_or_default(),
        missing,
    };
    let rank = number(lookup, launcher, rank_name)?;
    let world = number(lookup, launcher, world_name)?;
    match (rank, world) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(half(rank_name, world_name)),
        (None, Some(_)) => Err(half(world_name, rank_name)),
        (Some(rank), Some(world)) => {
            below(launcher, rank_name, rank, world_name, world)?;
            Ok(Some((rank, world)))
        }
    }
}

fn below(
    launcher: Launcher,
    name: &'static str,
    value: usize,
    limit_name: &str,
    limit: usize,
) -> Result<(), Error> {
    if value < limit {
        return Ok(());
    }
    let problem = format!("must be below {limit_name}={limit}");
    Err(Error::Variable { launcher, variable: name, value: value.to_string(), problem })
}

pub(super) fn number(
    lookup: Lookup<'_>,
    launcher: Launcher,
    name: &'static str,
) -> Result<Option<usize>, Error> {
    let Some(value) = set(lookup, name) else { return Ok(None) };
    if let Ok(number) = value.trim().parse() {
        return Ok(Some(number));
    }
    let problem = "not a whole number".to_owned();
    Err(Error::Variable { launcher, variable: name, value, problem })
}

/// A variable that is set to something.
pub(super) fn set(lookup: Lookup<'_>, name: &str) -> Option<String> {
    lookup(name).filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
