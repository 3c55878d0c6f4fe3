//! Where an MPI library is looked for, in the order in which the crate `mpi` does; and what is said
//! where there is none.

/// Whether there is one; else what was tried, with what came of it. `variable` looks into the
/// environment, `runs` says whether a program starts and succeeds.
pub(crate) fn find(
    variable: impl Fn(&str) -> Option<String>,
    runs: impl Fn(&str, &[&str]) -> bool,
) -> Result<(), Vec<String>> {
    let package = |name: &str| runs("pkg-config", &["--exists", name]);
    let mut tried = Vec::new();
    if let Some(file) = variable("MPI_PKG_CONFIG") {
        if package(&file) {
            return Ok(());
        }
        // Whoever names a library means that one: nothing else is tried.
        return Err(vec![format!("MPI_PKG_CONFIG={file}: pkg-config does not find it")]);
    }
    tried.push("MPI_PKG_CONFIG: not set".to_owned());
    match variable("CRAY_MPICH_DIR") {
        Some(folder) => {
            let file = format!("{folder}/lib/pkgconfig/mpich.pc");
            if package(&file) {
                return Ok(());
            }
            tried.push(format!("CRAY_MPICH_DIR={folder}: pkg-config does not find {file}"));
        }
        None => tried.push("CRAY_MPICH_DIR: not set".to_owned()),
    }
    let compiler = variable("MPICC");
    let name = compiler.as_deref().unwrap_or("mpicc");
    if runs(name, &["-show"]) {
        return Ok(());
    }
    tried.push(match &compiler {
        Some(name) => format!("MPICC={name}: does not run"),
        None => "MPICC: not set; mpicc: does not run, or is not in PATH".to_owned(),
    });
    for name in ["mpich", "ompi"] {
        if package(name) {
            return Ok(());
        }
        tried.push(format!("pkg-config {name}: not found"));
    }
    Err(tried)
}

/// What a person reads, in one line, as build scripts report it.
pub(crate) fn message(tried: &[String]) -> String {
    format!(
        "the feature `mpi` needs an MPI library and its compiler wrapper, and none was found. \
         Tried: {}. Install one: Debian, Ubuntu: apt install libopenmpi-dev openmpi-bin \
         libclang-dev; Fedora: dnf install openmpi-devel clang-devel, then `module load mpi`; \
         conda: conda install -c conda-forge openmpi clangdev; macOS: brew install open-mpi llvm. \
         Or name one: MPICC=/path/to/mpicc. The default build, without the feature, needs none.",
        tried.join("; ")
    )
}
