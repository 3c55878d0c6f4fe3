//! What is said where the feature `mpi` finds no library.

#[path = "../build/search.rs"]
mod search;

use search::{find, message};

fn none(_: &str) -> Option<String> {
    None
}

fn nothing_runs(_: &str, _: &[&str]) -> bool {
    false
}

#[test]
fn u42_without_a_library_all_that_was_tried_is_said_in_one_message() {
    let tried = find(none, nothing_runs).expect_err("nothing is there");
    let text = message(&tried);
    let wanted = [
        "MPI_PKG_CONFIG: not set",
        "CRAY_MPICH_DIR: not set",
        "MPICC: not set",
        "mpicc: does not run",
        "pkg-config mpich: not found",
        "pkg-config ompi: not found",
        "libopenmpi-dev",
        "openmpi-devel",
        "conda-forge openmpi",
        "brew install open-mpi",
        "without the feature, needs none",
    ];
    for wanted in wanted {
        assert!(text.contains(wanted), "{text:?} does not say {wanted:?}");
    }
    assert!(!text.contains('\n'), "one line: {text:?}");
}

#[test]
fn what_a_variable_names_is_what_is_tried() {
    let compiler = |name: &str| (name == "MPICC").then(|| "/opt/mpi/bin/mpicc".to_owned());
    let tried = find(compiler, nothing_runs).expect_err("it does not run");
    assert!(tried.contains(&"MPICC=/opt/mpi/bin/mpicc: does not run".to_owned()), "{tried:?}");
    let only = |program: &str, _: &[&str]| program == "/opt/mpi/bin/mpicc";
    assert_eq!(find(compiler, only), Ok(()));
    let file = |name: &str| (name == "MPI_PKG_CONFIG").then(|| "/opt/ompi.pc".to_owned());
    let wrapper = |program: &str, _: &[&str]| program == "mpicc";
    let tried = find(file, wrapper).expect_err("another library is not meant");
    assert_eq!(tried, ["MPI_PKG_CONFIG=/opt/ompi.pc: pkg-config does not find it"]);
}

#[test]
fn any_of_the_ways_is_enough() {
    assert_eq!(find(none, |program, _| program == "mpicc"), Ok(()));
    assert_eq!(find(none, |_, arguments| arguments == ["--exists", "ompi"]), Ok(()));
    let cray = |name: &str| (name == "CRAY_MPICH_DIR").then(|| "/cray".to_owned());
    let file = |_: &str, arguments: &[&str]| arguments[1] == "/cray/lib/pkgconfig/mpich.pc";
    assert_eq!(find(cray, file), Ok(()));
}
