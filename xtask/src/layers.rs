//! The shape of the workspace: which crate may depend on which, and on what from outside.

use crate::Failure;
use crate::markdown::table_rows;
use crate::violation::Violation;
use crate::workspace::Workspace;
use serde_json::Value;
use std::collections::BTreeSet;

/// Every edge between crates of the workspace; any other is a violation.
const EDGES: [(&str, &str); 8] = [
    ("emb-comm", "emb-cuda"),
    ("emb-dlrm", "emb-comm"),
    ("emb-dlrm", "emb-cuda"),
    ("emb-dlrm", "emb-kernels"),
    ("emb-dlrm", "emb-optim"),
    ("emb-dlrm", "emb-shard"),
    ("emb-kernels", "emb-cuda"),
    ("emb-kernels", "emb-optim"),
];

/// Crates that open no files and start no threads, and all that they may build on.
const PURE: [&str; 2] = ["emb-optim", "emb-shard"];
const PURE_MAY_USE: [&str; 2] = ["serde", "thiserror"];

const LIST: &str = "docs/dependencies.md";

/// Reads the workspace and checks it.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>, Failure> {
    let packages = packages(&workspace.metadata()?)?;
    let mut violations = edges(&packages);
    violations.extend(purity(&packages));
    violations.extend(listing(&packages, &workspace.read(LIST)?));
    Ok(violations)
}

/// A crate of the workspace with what its manifest asks for.
#[derive(Debug)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    for_tests: bool,
}

impl Package {
    fn manifest(&self) -> String {
        let folder = if self.name == "xtask" { "" } else { "crates/" };
        format!("{folder}{}/Cargo.toml", self.name)
    }
}

fn packages(metadata: &Value) -> Result<Vec<Package>, Failure> {
    let text = |value: &Value, key: &str| {
        value[key].as_str().map(str::to_owned).ok_or(format!("cargo metadata without {key}"))
    };
    let list = |value: &Value, key: &str| {
        value[key].as_array().cloned().ok_or(format!("cargo metadata without {key}"))
    };
    let mut packages = Vec::new();
    for package in list(metadata, "packages")? {
        let mut dependencies = Vec::new();
        for dependency in list(&package, "dependencies")? {
            let for_tests = dependency["kind"].as_str() == Some("dev");
            dependencies.push(Dependency { name: text(&dependency, "name")?, for_tests });
        }
        packages.push(Package { name: text(&package, "name")?, dependencies });
    }
    Ok(packages)
}

/// Edges between crates of the workspace, those for tests included; a crate may have itself.
fn edges(packages: &[Package]) -> Vec<Violation> {
    let names: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut violations = Vec::new();
    for package in packages {
        for Dependency { name, .. } in &package.dependencies {
            let edge = (package.name.as_str(), name.as_str());
            if names.contains(edge.1) && edge.0 != edge.1 && !EDGES.contains(&edge) {
                let message = format!(
                    "{} must not depend on {}: what both need meets in emb-dlrm",
                    edge.0, edge.1
                );
                violations.push(Violation::new(&package.manifest(), 0, message));
            }
        }
    }
    violations
}

/// Dependencies of the pure crates.
fn purity(packages: &[Package]) -> Vec<Violation> {
    let pure = packages.iter().filter(|package| PURE.contains(&package.name.as_str()));
    let outside = pure.flat_map(|package| package.dependencies.iter().map(move |d| (package, d)));
    outside
        .filter(|(_, d)| !d.for_tests && !PURE_MAY_USE.contains(&d.name.as_str()))
        .map(|(package, d)| {
            let message = format!(
                "{} is pure and may use only {}, not {}",
                package.name,
                PURE_MAY_USE.join(" and "),
                d.name
            );
            Violation::new(&package.manifest(), 0, message)
        })
        .collect()
}

/// Direct dependencies from outside against the list in the docs, in both directions.
fn listing(packages: &[Package], list: &str) -> Vec<Violation> {
    let inside: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let listed = listed(list);
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut violations = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            let pair = (dependency.name.as_str(), package.name.as_str());
            if inside.contains(pair.0) {
                continue;
            }
            used.insert(pair);
            let known = listed.iter().any(|row| (row.name, row.user) == pair);
            if !known && !dependency.for_tests {
                let message = format!(
                    "dependency {} of {} has no row in {LIST}: say why, instead of what, \
                     how many crates",
                    pair.0, pair.1
                );
                violations.push(Violation::new(&package.manifest(), 0, message));
            }
        }
    }
    for Row { line, name, user } in listed {
        if !used.contains(&(name, user)) {
            let message = format!("{user} does not depend on {name}: remove it from the row");
            violations.push(Violation::new(LIST, line, message));
        }
    }
    violations
}

/// One crate of one row of the list.
struct Row<'a> {
    line: usize,
    name: &'a str,
    user: &'a str,
}

/// Rows whose first cell is a name in backticks, once for each crate of the second cell.
fn listed(list: &str) -> Vec<Row<'_>> {
    let mut listed = Vec::new();
    for (line, cells) in table_rows(list) {
        let name = cells[0].strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        if let (Some(name), Some(users)) = (name, cells.get(1)) {
            listed.extend(users.split(", ").map(|user| Row { line, name, user }));
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    /// Packages from `name: dependency dependency (test-dependency)`.
    fn workspace(text: &str) -> Vec<Package> {
        let packages = text.lines().map(|line| {
            let (name, dependencies) = line.trim().split_once(':').expect("name: dependencies");
            let dependencies = dependencies.split_whitespace().map(|word| Dependency {
                name: word.trim_matches(['(', ')']).to_owned(),
                for_tests: word.starts_with('('),
            });
            Package { name: name.to_owned(), dependencies: dependencies.collect() }
        });
        packages.collect()
    }

    #[test]
    fn metadata_becomes_packages() {
        let metadata = serde_json::json!({"packages": [{"name": "a", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]});
        let packages = packages(&metadata).expect("valid metadata");
        let dependencies = &packages[0].dependencies;
        assert_eq!((dependencies[0].name.as_str(), dependencies[0].for_tests), ("b", false));
        assert_eq!((dependencies[1].name.as_str(), dependencies[1].for_tests), ("c", true));
        assert!(super::packages(&serde_json::json!({})).is_err());
    }

    #[test]
    fn the_intended_shape_passes() {
        let packages = workspace(
            "emb-dlrm: emb-comm emb-kernels emb-optim emb-shard serde
             emb-kernels: emb-optim (emb-kernels)
             emb-optim: thiserror (proptest)
             emb-shard: thiserror
             emb-comm: half
             xtask: clap",
        );
        assert_eq!(edges(&packages), []);
        assert_eq!(purity(&packages), []);
    }

    #[test]
    fn any_other_edge_is_named() {
        let packages = workspace(
            "emb-shard: emb-optim
             emb-comm: (emb-kernels)
             emb-kernels: emb-optim
             emb-optim: emb-dlrm
             emb-dlrm: xtask
             xtask: emb-shard",
        );
        let expected = [
            "crates/emb-shard/Cargo.toml: emb-shard must not depend on emb-optim",
            "crates/emb-comm/Cargo.toml: emb-comm must not depend on emb-kernels",
            "crates/emb-optim/Cargo.toml: emb-optim must not depend on emb-dlrm",
            "crates/emb-dlrm/Cargo.toml: emb-dlrm must not depend on xtask",
            "xtask/Cargo.toml: xtask must not depend on emb-shard",
        ]
        .map(|line| format!("{line}: what both need meets in emb-dlrm"));
        assert_eq!(lines(&edges(&packages)), expected);
    }

    #[test]
    fn a_pure_crate_takes_nothing_that_touches_the_machine() {
        let packages = workspace("emb-shard: thiserror memmap2 (proptest)");
        assert_eq!(
            lines(&purity(&packages)),
            ["crates/emb-shard/Cargo.toml: emb-shard is pure and may use only serde and \
              thiserror, not memmap2"]
        );
    }

    #[test]
    fn dependencies_and_their_list_agree_in_both_directions() {
        let packages = workspace("emb-comm: half libc (proptest)\nemb-shard: half");
        let list = "| name | crates |\n|---|---|\n| `half` | emb-comm |\n| `rayon` | emb-comm |\n\n\
            | `proptest` | emb-comm |";
        assert_eq!(
            lines(&listing(&packages, list)),
            [
                "crates/emb-comm/Cargo.toml: dependency libc of emb-comm has no row in \
                 docs/dependencies.md: say why, instead of what, how many crates",
                "crates/emb-shard/Cargo.toml: dependency half of emb-shard has no row in \
                 docs/dependencies.md: say why, instead of what, how many crates",
                "docs/dependencies.md:4: emb-comm does not depend on rayon: remove it from the row",
            ]
        );
    }
}
