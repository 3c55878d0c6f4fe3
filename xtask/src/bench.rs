//! Runs the workspace's benches.

use crate::Failure;
use crate::workspace::Workspace;
use serde_json::Value;

/// Runs the benches named, or all, one after the other; what they print goes to the terminal.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<(), Failure> {
    let benches = benches(&workspace.metadata()?);
    if benches.is_empty() {
        return Err("the workspace has no benches".into());
    }
    for (package, bench) in chosen(&benches, names)? {
        eprintln!("{package}: {bench}");
        let arguments = ["bench", "-p", package, "--all-features", "--bench", bench];
        let status = workspace.command("cargo").args(arguments).status()?;
        if !status.success() {
            return Err(format!("bench {bench} of {package} failed: {status}").into());
        }
    }
    Ok(())
}

/// All (crate, bench) pairs.
fn benches(metadata: &Value) -> Vec<(String, String)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut benches = Vec::new();
    for package in packages {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_bench = target["kind"][0] == "bench";
            if let (true, Some(package), Some(name)) =
                (is_bench, package["name"].as_str(), target["name"].as_str())
            {
                benches.push((package.to_owned(), name.to_owned()));
            }
        }
    }
    benches
}

fn chosen<'a>(
    benches: &'a [(String, String)],
    names: &[String],
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let known: Vec<&str> = benches.iter().map(|(_, bench)| bench.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("no bench {unknown}; there are: {}", known.join(", ")).into());
    }
    let wanted = |bench: &str| names.is_empty() || names.iter().any(|name| name == bench);
    let pairs = benches.iter().filter(|(_, bench)| wanted(bench));
    Ok(pairs.map(|(package, bench)| (package.as_str(), bench.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_and_chosen_by_name() {
        let metadata = serde_json::json!({"packages": [{"name": "k", "targets": [
            {"name": "k", "kind": ["lib"]},
            {"name": "gemm", "kind": ["bench"]},
            {"name": "pool", "kind": ["bench"]}]}]});
        let benches = benches(&metadata);
        let all = chosen(&benches, &[]).expect("no names");
        assert_eq!(all, [("k", "gemm"), ("k", "pool")]);
        let one = chosen(&benches, &["pool".to_owned()]).expect("exists");
        assert_eq!(one, [("k", "pool")]);
        let error = chosen(&benches, &["pol".to_owned()]).expect_err("does not exist");
        assert_eq!(error.to_string(), "no bench pol; there are: gemm, pool");
    }
}
