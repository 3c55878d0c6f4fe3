//! Rules for every text file: whitespace, and words of unfinished work.

use crate::masked::has_word;
use crate::tidy::has_extension;
use crate::violation::Violation;

const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "sh", "txt", "cu", "cuh", "yml", "yaml"];

/// Words that say something is left undone, put together so that this file does not hold them.
const WORDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Whether the rules apply to a file.
pub(crate) fn is_text(file: &str) -> bool {
    file == ".ci/run" || EXTENSIONS.iter().any(|extension| has_extension(file, extension))
}

/// Trailing whitespace, tabs in Rust, a missing last newline, words of unfinished work.
pub(crate) fn check(file: &str, content: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in content.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            violations.push(Violation::new(file, index + 1, "trailing whitespace"));
        }
        for word in WORDS.iter().filter(|word| has_word(line, word)) {
            let message = format!("`{word}`: finish it, or say what is missing in STATUS.md");
            violations.push(Violation::new(file, index + 1, message));
        }
    }
    if !content.is_empty() && !content.ends_with('\n') {
        let line = content.lines().count();
        violations.push(Violation::new(file, line, "no newline at the end"));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    #[test]
    fn whitespace_at_line_ends_is_found() {
        assert_eq!(
            lines(&check("a.md", "ok\nbad \nbad\t\nbad\r\n")),
            [
                "a.md:2: trailing whitespace",
                "a.md:3: trailing whitespace",
                "a.md:4: trailing whitespace"
            ]
        );
        assert_eq!(lines(&check("a.md", "ok\nlast")), ["a.md:2: no newline at the end"]);
        assert_eq!(check("a.md", "ok\n\n"), []);
    }

    #[test]
    fn words_of_unfinished_work_are_found_alone_only() {
        for word in WORDS {
            let found = check("a.rs", &format!("fine\n// {word}: later\n{word}_LIST\n"));
            let message =
                format!("a.rs:2: `{word}`: finish it, or say what is missing in STATUS.md");
            assert_eq!(lines(&found), [message]);
        }
    }

    #[test]
    fn sources_docs_and_scripts_are_text() {
        for file in ["a/b.rs", "README.md", "Cargo.toml", "ci/x.sh", ".ci/run"] {
            assert!(is_text(file), "{file}");
        }
        for file in ["LICENSE-MIT", "Cargo.lock", "a.png", "rs"] {
            assert!(!is_text(file), "{file}");
        }
    }
}
