//! The C++ compiler that the shim needs.

use std::process::Command;

/// Names tried, after what `CXX` says.
const NAMES: [&str; 3] = ["g++", "clang++", "c++"];

/// The first compiler that runs, or why there is none.
pub(crate) fn find() -> Result<String, String> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let names: Vec<String> = match named {
        Some(name) => vec![name],
        None => NAMES.map(str::to_owned).to_vec(),
    };
    first_that_runs(&names)
}

fn first_that_runs(names: &[String]) -> Result<String, String> {
    let runs = |name: &&String| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    names.iter().find(runs).cloned().ok_or_else(|| {
        format!("no C++ compiler: tried {}; install g++, or name one by CXX", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_named_where_no_compiler_is_found() {
        let names = ["/nowhere/one".to_owned(), "/nowhere/two".to_owned()];
        let reason = first_that_runs(&names).expect_err("neither is there");
        assert!(reason.contains("tried /nowhere/one, /nowhere/two"), "{reason}");
    }
}
