//! Places, from variables as the launchers set them.

use super::{Error, Launcher, Place};

fn find(variables: &[(&str, &str)]) -> Result<Option<Place>, Error> {
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
    Place::find(&|name| value(name).map(|(_, value)| (*value).to_owned()))
}

fn check(variables: &[(&str, &str)], launcher: Launcher, place: [usize; 4]) {
    let [rank, world, local_rank, local_world] = place;
    let (local_rank, local_world) = (Some(local_rank), Some(local_world));
    let expected = Place { rank, world, local_rank, local_world, launcher };
    assert_eq!(find(variables).expect("a place"), Some(expected), "{variables:?}");
}

fn refused(variables: &[(&str, &str)], says: &[&str]) {
    let error = find(variables).expect_err("no place").to_string();
    for word in says {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
}

const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_RANK", "3"),
    ("OMPI_COMM_WORLD_SIZE", "4"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
];
const STEP: &[(&str, &str)] = &[
    ("SLURM_JOB_ID", "17"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_PROCID", "6"),
    ("SLURM_NTASKS", "7"),
    ("SLURM_LOCALID", "2"),
    ("SLURM_NODEID", "1"),
    ("SLURM_STEP_TASKS_PER_NODE", "4,3"),
];
const TORCHRUN: &[(&str, &str)] =
    &[("RANK", "5"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "4")];

#[test]
fn a_program_started_by_hand_has_no_place() {
    assert_eq!(find(&[]).expect("none"), None);
    assert_eq!(find(&[("RANK", ""), ("WORLD_SIZE", " ")]).expect("empty is unset"), None);
}

#[test]
fn every_launcher_is_understood() {
    check(OPEN_MPI, Launcher::OpenMpi, [3, 4, 1, 2]);
    check(STEP, Launcher::Slurm, [6, 7, 2, 3]);
    check(TORCHRUN, Launcher::Torchrun, [5, 8, 1, 4]);
    let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
    let place = find(&pmi).expect("a place").expect("started by mpiexec");
    assert_eq!((place.rank, place.world, place.launcher), (1, 2, Launcher::Pmi));
    assert_eq!((place.local_rank, place.local_world), (None, None));
}

#[test]
fn an_allocation_of_slurm_is_one_process_and_not_a_rank() {
    // A batch script: no step, though tasks are named; and the shell of salloc, a special step.
    let script = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_TASKS_PER_NODE", "4(x2)")];
    assert_eq!(find(&script).expect("none"), None);
    for special in ["4294967290", "4294967291"] {
        let shell = [&script[..], &[("SLURM_STEP_ID", special)]].concat();
        assert_eq!(find(&shell).expect("none"), None);
    }
}

#[test]
fn a_step_smaller_than_its_allocation_counts_its_own_tasks() {
    let step = [
        ("SLURM_STEP_ID", "3"),
        ("SLURM_PROCID", "1"),
        ("SLURM_NTASKS", "8"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_LOCALID", "1"),
        ("SLURM_TASKS_PER_NODE", "4(x2)"),
        ("SLURM_STEP_TASKS_PER_NODE", "2"),
    ];
    check(&step, Launcher::Slurm, [1, 2, 1, 2]);
}

#[test]
fn tasks_that_slurm_does_not_tell_for_a_node_are_refused() {
    let short = [STEP, &[("SLURM_STEP_TASKS_PER_NODE", "4")]].concat();
    let short: Vec<_> = short.into_iter().rev().collect();
    refused(&short, &["SLURM_STEP_TASKS_PER_NODE=4", "node 1"]);
    let wrong = [STEP, &[("SLURM_STEP_TASKS_PER_NODE", "four")]].concat();
    let wrong: Vec<_> = wrong.into_iter().rev().collect();
    refused(&wrong, &["SLURM_STEP_TASKS_PER_NODE=four", "node 1", "4(x2),3"]);
}

#[test]
fn the_innermost_launcher_wins() {
    // mpirun inside an allocation starts its helpers by srun.
    check(&[OPEN_MPI, STEP].concat(), Launcher::OpenMpi, [3, 4, 1, 2]);
    // A script that exports torchrun's variables, in a step.
    check(&[TORCHRUN, STEP].concat(), Launcher::Torchrun, [5, 8, 1, 4]);
    // torchrun, once a host, started by srun or mpirun.
    let torchrun = [TORCHRUN, &[("TORCHELASTIC_RUN_ID", "none")]].concat();
    check(&[&torchrun, STEP].concat(), Launcher::Torchrun, [5, 8, 1, 4]);
    check(&[&torchrun, OPEN_MPI].concat(), Launcher::Torchrun, [5, 8, 1, 4]);
    // srun --mpi=pmi2 says the same twice; mpiexec inside a step does not.
    let pmi2 = [("PMI_RANK", "6"), ("PMI_SIZE", "7")];
    check(&[&pmi2, STEP].concat(), Launcher::Slurm, [6, 7, 2, 3]);
    let mpiexec = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    let place = find(&[&mpiexec, STEP].concat()).expect("a place").expect("started");
    assert_eq!((place.rank, place.world, place.launcher), (0, 2, Launcher::Pmi));
}

#[test]
fn launchers_that_contradict_each_other_are_both_named() {
    refused(
        &[OPEN_MPI, TORCHRUN].concat(),
        &["rank 3 of 4 by Open MPI", "rank 5 of 8 by torchrun", "unset"],
    );
    // A lone RANK is no one's word against mpirun or srun.
    check(&[OPEN_MPI, &[("RANK", "9")]].concat(), Launcher::OpenMpi, [3, 4, 1, 2]);
    check(&[STEP, &[("RANK", "9")]].concat(), Launcher::Slurm, [6, 7, 2, 3]);
}

#[test]
fn what_makes_no_sense_is_refused_by_variable_and_value() {
    let ompi = |rank, size| [("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", size)];
    refused(&ompi("4", "4"), &["OMPI_COMM_WORLD_RANK=4", "below OMPI_COMM_WORLD_SIZE=4"]);
    refused(&ompi("0", "0"), &["OMPI_COMM_WORLD_RANK=0", "below OMPI_COMM_WORLD_SIZE=0"]);
    refused(&ompi("-1", "4"), &["Open MPI", "OMPI_COMM_WORLD_RANK=-1", "not a whole number"]);
    refused(&ompi("1", "four"), &["OMPI_COMM_WORLD_SIZE=four", "not a whole number"]);
    refused(&[("WORLD_SIZE", "4")], &["torchrun", "WORLD_SIZE=4", "not RANK"]);
    refused(&[("PMI_RANK", "1")], &["PMI_RANK=1", "not PMI_SIZE"]);
    refused(&STEP[..4][1..3], &["SLURM_PROCID=6", "not SLURM_NTASKS"]);
    let local =
        [("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "3"), ("LOCAL_WORLD_SIZE", "2")];
    refused(&local, &["LOCAL_RANK=3", "below LOCAL_WORLD_SIZE=2"]);
    let host = [("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "3")];
    refused(&host, &["LOCAL_WORLD_SIZE=3", "more than WORLD_SIZE=2"]);
}
