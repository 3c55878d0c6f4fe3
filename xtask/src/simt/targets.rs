//! Test programs and benches, and the features they require: found, then built in one go.

use crate::Failure;
use crate::workspace::{Workspace, output};
use serde_json::Value;
use std::path::PathBuf;

/// Features that mean a device.
const DEVICE: [&str; 2] = ["cuda", "nccl"];

/// A test or bench of a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) package: String,
    pub(crate) name: String,
    /// `test` or `bench`.
    pub(crate) kind: String,
    features: Vec<String>,
}

/// A built target.
#[derive(Clone, Debug)]
pub(crate) struct Executable {
    pub(crate) target: Target,
    pub(crate) file: PathBuf,
    /// Folder that tests run in: that of their crate.
    pub(crate) folder: PathBuf,
}

impl Target {
    /// Whether it needs one of these features.
    pub(crate) fn requires(&self, features: &[&str]) -> bool {
        self.features.iter().any(|feature| features.contains(&feature.as_str()))
    }

    /// Whether it needs a device, and no more than that.
    fn is_of_a_device(&self) -> bool {
        self.requires(&DEVICE) && !self.requires(&["mpi"])
    }
}

/// Every test and bench that requires a feature that means a device, and not MPI as well.
pub(crate) fn find(workspace: &Workspace) -> Result<Vec<Target>, Failure> {
    Ok(all(workspace)?.into_iter().filter(Target::is_of_a_device).collect())
}

/// Every test and bench.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<Target>, Failure> {
    Ok(of(&workspace.metadata()?))
}

fn of(metadata: &Value) -> Vec<Target> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]) {
            let kind = text(&target["kind"][0]);
            let features: Vec<String> =
                list(&target["required-features"]).iter().map(text).collect();
            if ["test", "bench"].contains(&kind.as_str()) {
                let (package, name) = (text(&package["name"]), text(&target["name"]));
                found.push(Target { package, name, kind, features });
            }
        }
    }
    found
}

/// Builds all targets in one go; `profile` is cargo's, and so are the arguments for `features`: what
/// the targets require is among them.
pub(crate) fn build(
    workspace: &Workspace,
    targets: &[Target],
    profile: &str,
    features: &[String],
) -> Result<Vec<Executable>, Failure> {
    let mut command = workspace.command("cargo");
    command.args(["test", "--no-run", "--profile", profile]);
    command.arg("--message-format=json-render-diagnostics").args(features);
    for target in targets {
        command.args([&format!("--{}", target.kind), &target.name]);
    }
    let messages = output(&mut command)?;
    let found: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    targets.iter().map(|target| executable(target, &found)).collect()
}

/// The program that cargo says it built for a target.
fn executable(target: &Target, messages: &[Value]) -> Result<Executable, Failure> {
    let is = |message: &&Value| {
        let built = &message["target"];
        let manifest = message["manifest_path"].as_str().unwrap_or_default();
        built["name"] == target.name.as_str()
            && built["kind"][0] == target.kind.as_str()
            && manifest.ends_with(&format!("/{}/Cargo.toml", target.package))
            && message["executable"].is_string()
    };
    let message = messages.iter().find(is);
    let message = message.ok_or_else(|| format!("cargo built no {target:?}"))?;
    let path = |key: &str| PathBuf::from(message[key].as_str().unwrap_or_default());
    let folder = path("manifest_path").parent().map(ToOwned::to_owned).unwrap_or_default();
    Ok(Executable { target: target.clone(), file: path("executable"), folder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(kind: &str, name: &str, feature: &str) -> Target {
        let [package, kind, name] = ["k", kind, name].map(str::to_owned);
        Target { package, name, kind, features: vec![feature.to_owned()] }
    }

    #[test]
    fn what_requires_a_device_is_found() {
        let metadata = json!({"packages": [{"name": "k", "targets": [
            {"name": "k", "kind": ["lib"]},
            {"name": "host", "kind": ["test"]},
            {"name": "suite", "kind": ["test"], "required-features": ["conformance"]},
            {"name": "gpu", "kind": ["test"], "required-features": ["cuda"]},
            {"name": "wire", "kind": ["test"], "required-features": ["nccl"]},
            {"name": "many", "kind": ["test"], "required-features": ["nccl", "mpi"]},
            {"name": "tour", "kind": ["example"], "required-features": ["cuda"]},
            {"name": "gpu", "kind": ["bench"], "required-features": ["cuda"]}]}]});
        let expected = [
            target("test", "gpu", "cuda"),
            target("test", "wire", "nccl"),
            target("bench", "gpu", "cuda"),
        ];
        let found = of(&metadata);
        assert_eq!(found.iter().filter(|target| target.requires(&["mpi"])).count(), 1);
        let found: Vec<Target> = found.into_iter().filter(Target::is_of_a_device).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_bench_is_not_taken_for_the_test_of_its_name() {
        let message = |kind: &str, file: &str| {
            json!({"target": {"name": "gpu", "kind": [kind]}, "executable": file,
                "manifest_path": "/w/crates/k/Cargo.toml"})
        };
        let messages =
            [message("bench", "/t/bench"), message("test", "/t/test"), json!({"reason": "x"})];
        let found = executable(&target("test", "gpu", "cuda"), &messages).expect("it was built");
        assert_eq!((found.file, found.folder), ("/t/test".into(), "/w/crates/k".into()));
        assert!(executable(&target("test", "other", "cuda"), &messages).is_err());
    }
}
