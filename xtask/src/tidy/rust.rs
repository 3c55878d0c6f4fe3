//! Rules for Rust files: length, docs, attributes.

use crate::masked::mask;
use crate::violation::Violation;

/// Longest file; files of tests may be longer, because cases are read one by one.
const LINES: usize = 400;
const TEST_LINES: usize = 600;

/// How a file begins: with its doc, or with the README as its doc.
const FIRST: [&str; 2] = ["//! ", "#![doc = include_str!("];

/// Crate roots that must forbid `unsafe`.
pub(crate) const FORBID_UNSAFE: [&str; 4] = [
    "crates/emb-dlrm/src/lib.rs",
    "crates/emb-optim/src/lib.rs",
    "crates/emb-shard/src/lib.rs",
    "xtask/src/main.rs",
];

/// Length, a first line that says what the file is, no `allow`.
pub(crate) fn check(file: &str, content: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let tests = is_tests(file);
    let (lines, limit) = (content.lines().count(), if tests { TEST_LINES } else { LINES });
    if lines > limit {
        let message = format!("{lines} lines, the limit is {limit}: one idea a file");
        violations.push(Violation::new(file, lines, message));
    }
    let documented = FIRST.iter().any(|first| content.starts_with(first));
    if !tests && !documented {
        violations.push(Violation::new(file, 1, "must begin with `//! ` and what the file is"));
    }
    for (index, line) in mask(content).lines().enumerate() {
        let compact: String = line.split_whitespace().collect();
        if compact.contains("#[allow") || compact.contains("#![allow") {
            let message = "`allow` is forbidden: use `#[expect(.., reason = \"..\")]`";
            violations.push(Violation::new(file, index + 1, message));
        }
    }
    violations
}

/// Whether the root of a crate keeps `unsafe` out for good.
pub(crate) fn forbids_unsafe(file: &str, content: &str) -> Option<Violation> {
    let forbids = mask(content).contains("#![forbid(unsafe_code)]");
    (!forbids).then(|| Violation::new(file, 1, "must say `#![forbid(unsafe_code)]`"))
}

/// Test modules beside their source, and folders of tests.
fn is_tests(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.ends_with("_tests.rs") || file.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    #[test]
    fn files_are_at_most_400_lines_and_test_files_600() {
        let long = |lines: usize| format!("//! Doc.\n{}", "x\n".repeat(lines - 1));
        assert_eq!(check("src/a.rs", &long(400)), []);
        assert_eq!(
            lines(&check("src/a.rs", &long(401))),
            ["src/a.rs:401: 401 lines, the limit is 400: one idea a file"]
        );
        assert_eq!(check("crates/a/tests/b.rs", &long(600)), []);
        assert_eq!(check("src/a/tests.rs", &long(600)), []);
        assert_eq!(check("src/a/tests.rs", &long(601)).len(), 1);
    }

    #[test]
    fn a_file_begins_with_its_doc() {
        let message = "src/a.rs:1: must begin with `//! ` and what the file is";
        for bad in ["use x;\n", "\n//! Doc.\n", "// Doc.\n", ""] {
            assert_eq!(lines(&check("src/a.rs", bad)), [message]);
        }
        assert_eq!(check("src/a.rs", "//! Doc.\n"), []);
        assert_eq!(check("src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n"), []);
        assert_eq!(check("src/a/tests.rs", "use super::*;\n"), []);
    }

    #[test]
    fn allow_is_forbidden_in_code_and_not_in_words() {
        let bad = "//! Doc.\n#[allow(dead_code)]\n#![ allow(x) ]\n// #[allow(x)]\n";
        let message = "`allow` is forbidden: use `#[expect(.., reason = \"..\")]`";
        let expected = [format!("src/a.rs:2: {message}"), format!("src/a.rs:3: {message}")];
        assert_eq!(lines(&check("src/a.rs", bad)), expected);
        assert_eq!(check("src/a.rs", "//! Doc.\n#[expect(dead_code, reason = \"x\")]\n"), []);
    }

    #[test]
    fn pure_crates_forbid_unsafe_outside_comments() {
        let missing = forbids_unsafe("lib.rs", "//! Doc.\n// #![forbid(unsafe_code)]\n");
        assert!(missing.is_some());
        assert_eq!(forbids_unsafe("lib.rs", "//! Doc.\n#![forbid(unsafe_code)]\n"), None);
    }
}
