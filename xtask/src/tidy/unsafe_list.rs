//! `unsafe` stands only in three crates, and there only in files that a list names.

use crate::masked::{has_word, mask};
use crate::violation::Violation;

/// The list: one path a line, `#` begins a comment.
pub(crate) const LIST: &str = "xtask/unsafe-files.txt";

const FOLDERS: [&str; 3] = ["crates/emb-comm/", "crates/emb-cuda/", "crates/emb-kernels/"];

/// A file and its first line with `unsafe`, if it has one.
pub(crate) fn first_use(file: &str, content: &str) -> Option<(String, usize)> {
    let line = mask(content).lines().position(|line| has_word(line, "unsafe"))?;
    Some((file.to_owned(), line + 1))
}

/// Files with `unsafe` against the folders where it may stand and against the list.
pub(crate) fn check(found: &[(String, usize)], list: &str) -> Vec<Violation> {
    let entries: Vec<(usize, &str)> = list
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, path)| !path.is_empty())
        .collect();
    let mut violations = Vec::new();
    for (file, line) in found {
        if !FOLDERS.iter().any(|folder| file.starts_with(folder)) {
            let message = format!("`unsafe` may stand only under {}", FOLDERS.join(", "));
            violations.push(Violation::new(file, *line, message));
        } else if !entries.iter().any(|(_, path)| path == file) {
            let message = format!("`unsafe` in a file that {LIST} does not name");
            violations.push(Violation::new(file, *line, message));
        }
    }
    for (line, path) in entries {
        if !found.iter().any(|(file, _)| file == path) {
            let message = format!("{path} does not exist or has no `unsafe`: remove it");
            violations.push(Violation::new(LIST, line, message));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    #[test]
    fn the_first_use_is_found_in_code_only() {
        let source = "//! unsafe\n// unsafe\nfn f() { unsafe { g() } }\n";
        assert_eq!(first_use("a.rs", source), Some(("a.rs".to_owned(), 3)));
        assert_eq!(first_use("a.rs", "#![forbid(unsafe_code)]\n"), None);
    }

    #[test]
    fn files_and_list_agree_in_both_directions() {
        let found = [
            ("crates/emb-shard/src/a.rs".to_owned(), 3),
            ("crates/emb-comm/src/b.rs".to_owned(), 4),
            ("crates/emb-dlrm/tests/c.rs".to_owned(), 5),
            ("crates/emb-kernels/src/d.rs".to_owned(), 6),
        ];
        let list = "# files\ncrates/emb-kernels/src/d.rs # why\ncrates/emb-comm/src/gone.rs\n";
        assert_eq!(
            lines(&check(&found, list)),
            [
                "crates/emb-shard/src/a.rs:3: `unsafe` may stand only under \
                 crates/emb-comm/, crates/emb-cuda/, crates/emb-kernels/",
                "crates/emb-comm/src/b.rs:4: `unsafe` in a file that xtask/unsafe-files.txt \
                 does not name",
                "crates/emb-dlrm/tests/c.rs:5: `unsafe` may stand only under \
                 crates/emb-comm/, crates/emb-cuda/, crates/emb-kernels/",
                "xtask/unsafe-files.txt:3: crates/emb-comm/src/gone.rs does not exist or has no \
                 `unsafe`: remove it",
            ]
        );
    }
}
