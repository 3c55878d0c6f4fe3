//! Rules for the manifests of crates.

use crate::violation::Violation;

/// Whether a file is the manifest of a published crate.
pub(crate) fn is_of_a_crate(file: &str) -> bool {
    let parts: Vec<&str> = file.split('/').collect();
    matches!(parts[..], ["crates", _, "Cargo.toml"])
}

/// A README, a description that describes, the workspace's licence, lints and edition.
pub(crate) fn check(file: &str, content: &str, readme: bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !readme {
        violations.push(Violation::new(file, 0, "the crate has no README.md"));
    }
    match value(content, "description") {
        None => violations.push(Violation::new(file, 0, "no description")),
        // A sentence, not a word that holds its place.
        Some((line, text)) if text.split_whitespace().count() < 4 => {
            let message = format!("description {text}: say what the crate is for");
            violations.push(Violation::new(file, line, message));
        }
        Some(_) => {}
    }
    for key in ["license.workspace", "edition.workspace", "rust-version.workspace"] {
        if value(content, key).is_none_or(|(_, value)| value != "true") {
            violations.push(Violation::new(file, 0, format!("must say `{key} = true`")));
        }
    }
    let lints = content.split("[lints]").nth(1).and_then(|rest| value(rest, "workspace"));
    if lints.is_none_or(|(_, value)| value != "true") {
        violations.push(Violation::new(file, 0, "must say `[lints]` with `workspace = true`"));
    }
    violations
}

/// The line and the value of `key = value`.
fn value<'a>(content: &'a str, key: &str) -> Option<(usize, &'a str)> {
    content.lines().enumerate().find_map(|(index, line)| {
        let (found, value) = line.split_once('=')?;
        (found.trim() == key).then(|| (index + 1, value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    const GOOD: &str = "[package]\nname = \"a\"\ndescription = \"What this crate is for\"\n\
        license.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
        [lints]\nworkspace = true\n";

    #[test]
    fn a_whole_manifest_passes() {
        assert_eq!(check("crates/a/Cargo.toml", GOOD, true), []);
    }

    #[test]
    fn each_missing_part_is_named() {
        let missing = |line: &str, readme| {
            let content: String =
                GOOD.lines().filter(|l| *l != line).flat_map(|l| [l, "\n"]).collect();
            lines(&check("f", &content, readme))
        };
        assert_eq!(missing("", false), ["f: the crate has no README.md"]);
        assert_eq!(
            missing("description = \"What this crate is for\"", true),
            ["f: no description"]
        );
        assert_eq!(
            missing("license.workspace = true", true),
            ["f: must say `license.workspace = true`"]
        );
        assert_eq!(
            missing("workspace = true", true),
            ["f: must say `[lints]` with `workspace = true`"]
        );
        let placeholder = GOOD.replace("What this crate is for", "placeholder");
        assert_eq!(
            lines(&check("f", &placeholder, true)),
            ["f:3: description \"placeholder\": say what the crate is for"]
        );
    }

    #[test]
    fn only_crates_are_published() {
        assert!(is_of_a_crate("crates/a/Cargo.toml"));
        assert!(!is_of_a_crate("Cargo.toml"));
        assert!(!is_of_a_crate("xtask/Cargo.toml"));
    }
}
