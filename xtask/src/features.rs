//! The features that chores build with: one set for all of them, so that each crate is compiled once.

use crate::workspace::Workspace;
use crate::{Failure, mpi};
use serde_json::Value;

/// The feature of every crate that needs a library to build.
pub(crate) const MPI: &str = "mpi";

/// Arguments of cargo for every feature of the workspace, without [`MPI`] where this machine has none.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    if mpi::toolchain::find().is_err() {
        return without_mpi(workspace);
    }
    Ok(vec!["--workspace".to_owned(), "--all-features".to_owned()])
}

/// Arguments of cargo for every feature but [`MPI`]: what is built runs where no MPI is.
pub(crate) fn without_mpi(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let names = but_mpi(&workspace.metadata()?).join(",");
    Ok(["--workspace", "--features", &names].map(str::to_owned).to_vec())
}

/// Every feature of every crate but [`MPI`], as cargo takes them.
fn but_mpi(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |package: &Value| -> Vec<String> {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object().into_iter().flatten();
        let names = features.map(|(feature, _)| feature).filter(|feature| *feature != MPI);
        names.map(|feature| format!("{name}/{feature}")).collect()
    };
    packages.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mpi_every_other_feature_is_named() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "features": {"cuda": [], "mpi": ["dep:mpi"]}},
            {"name": "b", "features": {"default": ["cli"], "cli": []}}]});
        assert_eq!(but_mpi(&metadata), ["a/cuda", "b/cli", "b/default"]);
    }
}
