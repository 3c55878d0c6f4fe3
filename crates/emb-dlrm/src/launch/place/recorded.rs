//! Places, from variables as real launchers set them: recorded on three hosts from tasks of Slurm
//! 22.05.8, torchrun of PyTorch 2.15.0 and mpiexec of MPICH 4.0.2 (Hydra), without what is of the
//! machine.

use super::{Launcher, Place};
use crate::launch::{Point, meeting_name};

/// `srun -N3 -n6 --mpi=pmix`: the second host's only task.
const PMIX: &str = "PMIX_NAMESPACE=slurm.pmix.10.0 PMIX_RANK=4 PMIX_VERSION=4.2.2rc2 \
    SLURMD_NODENAME=node2 SLURM_CPUS_ON_NODE=1 SLURM_GTIDS=4 SLURM_JOBID=10 SLURM_JOB_ID=10 \
    SLURM_JOB_CPUS_PER_NODE=4,1(x2) SLURM_JOB_NODELIST=node[1-3] SLURM_JOB_NUM_NODES=3 \
    SLURM_LOCALID=0 SLURM_MPI_TYPE=pmix SLURM_NNODES=3 SLURM_NODEID=1 SLURM_NODELIST=node[1-3] \
    SLURM_NPROCS=6 SLURM_NTASKS=6 SLURM_PMIX_MAPPING_SERV=(vector,(0,1,4),(1,2,1)) SLURM_PROCID=4 \
    SLURM_STEPID=0 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=node[1-3] SLURM_STEP_NUM_NODES=3 \
    SLURM_STEP_NUM_TASKS=6 SLURM_STEP_TASKS_PER_NODE=4,1(x2) SLURM_TASKS_PER_NODE=4,1(x2)";
/// `srun -N3 -n6 --mpi=pmi2`: the third host's.
const PMI2: &str = "PMI_FD=11 PMI_JOBID=5.0 PMI_RANK=5 PMI_SIZE=6 SLURM_GTIDS=5 SLURM_JOB_ID=5 \
    SLURM_JOB_NODELIST=node[1-3] SLURM_LOCALID=0 SLURM_MPI_TYPE=pmi2 SLURM_NODEID=2 \
    SLURM_NODELIST=node[1-3] SLURM_NTASKS=6 SLURM_PROCID=5 SLURM_STEP_ID=0 \
    SLURM_STEP_NODELIST=node[1-3] SLURM_STEP_NUM_TASKS=6 SLURM_STEP_TASKS_PER_NODE=4,1(x2) \
    SLURM_TASKS_PER_NODE=4,1(x2)";
/// `srun -n2 -N1 : -n2 -N1`, a job of two parts: the last task of the second.
const PARTS: &str = "SLURM_HET_SIZE=2 SLURM_JOB_NODELIST=node[1-2] \
    SLURM_JOB_NODELIST_PACK_GROUP_0=node1 SLURM_JOB_NODELIST_PACK_GROUP_1=node2 SLURM_LOCALID=1 \
    SLURM_NODEID=1 SLURM_NODELIST=node[1-2] SLURM_NTASKS=4 SLURM_PROCID=3 SLURM_STEP_ID=0 \
    SLURM_STEP_NODELIST=node[1-2] SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=2(x2) \
    SLURM_TASKS_PER_NODE=2(x2)";
/// `sbatch --nodes=2 --ntasks=3`: the script.
const SCRIPT: &str = "SLURMD_NODENAME=node1 SLURM_CPUS_ON_NODE=2 SLURM_GTIDS=0 SLURM_JOBID=17 \
    SLURM_JOB_CPUS_PER_NODE=2,1 SLURM_JOB_ID=17 SLURM_JOB_NODELIST=node[1-2] \
    SLURM_JOB_NUM_NODES=2 SLURM_LOCALID=0 SLURM_NNODES=2 SLURM_NODEID=0 SLURM_NODELIST=node[1-2] \
    SLURM_NPROCS=3 SLURM_NTASKS=3 SLURM_PROCID=0 SLURM_TASKS_PER_NODE=2,1";
/// `torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d`: the last rank.
const TORCHRUN: &str = "GROUP_RANK=1 GROUP_WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 \
    MASTER_ADDR=node1 MASTER_PORT=45319 RANK=3 TORCHELASTIC_MAX_RESTARTS=0 \
    TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True \
    WORLD_SIZE=4";
/// `mpiexec.hydra -n 2`: the second of one host.
const HYDRA: &str = "HYDI_CONTROL_FD=7 MPIR_CVAR_CH3_INTERFACE_HOSTNAME=node1 MPI_LOCALNRANKS=2 \
    MPI_LOCALRANKID=1 PMI_FD=8 PMI_RANK=1 PMI_SIZE=2";

fn value(recorded: &str, name: &str) -> Option<String> {
    let pairs = recorded.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

fn place(recorded: &str) -> Option<Place> {
    Place::find(&|name| value(recorded, name)).expect("variables that make sense")
}

#[test]
fn tasks_of_real_launchers_find_their_place() {
    for (recorded, launcher, [rank, world, local_rank, local_world]) in [
        (PMIX, Launcher::Slurm, [4, 6, 0, 1]),
        (PMI2, Launcher::Slurm, [5, 6, 0, 1]),
        (PARTS, Launcher::Slurm, [3, 4, 1, 2]),
        (TORCHRUN, Launcher::Torchrun, [3, 4, 1, 2]),
        (HYDRA, Launcher::Pmi, [1, 2, 1, 2]),
    ] {
        let (local_rank, local_world) = (Some(local_rank), Some(local_world));
        let expected = Place { rank, world, local_rank, local_world, launcher };
        assert_eq!(place(recorded), Some(expected), "{recorded}");
    }
    assert_eq!(place(SCRIPT), None);
}

#[test]
fn real_jobs_on_several_hosts_meet_at_their_first() {
    let point = |recorded| {
        let place = place(recorded).expect("a rank");
        Point::find(&place, &|name| value(recorded, name)).expect("a point")
    };
    assert_eq!([point(PMIX).host, point(PMI2).host, point(PARTS).host], ["node1"; 3]);
    assert_eq!(point(TORCHRUN).to_string(), "node1:45320");
    let again = TORCHRUN.replace("RESTART_COUNT=0", "RESTART_COUNT=1");
    let name = |recorded: &str| meeting_name(Launcher::Torchrun, &|name| value(recorded, name));
    assert_ne!(name(TORCHRUN), name(&again), "ranks of two starts would meet");
}
