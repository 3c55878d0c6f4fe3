//! Data of Criteo form made up for tests.

use std::fmt::Write as _;

/// Rows of Criteo form whose label follows the first id.
pub(crate) fn rows(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        let bit = (i * 7 + i / 3) % 2;
        write!(text, "{bit}").expect("text");
        for c in 0..13 {
            write!(text, "\t{}", (i * (c + 3)) % 50).expect("text");
        }
        write!(text, "\t{bit:x}").expect("text");
        for c in 1..26 {
            write!(text, "\t{:x}", (i * (c + 11)) % 97).expect("text");
        }
        text.push('\n');
    }
    text
}
