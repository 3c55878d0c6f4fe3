//! What the compiler and clippy do not check.
//!
//! Each rule is a function from text to [`Violation`]s; [`check`] feeds them the files.

mod links;
mod manifest;
mod rust;
mod text;
mod unsafe_list;

use crate::Failure;
use crate::violation::Violation;
use crate::workspace::Workspace;

/// Runs every rule over every file.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>, Failure> {
    let files = workspace.files()?;
    let mut violations = Vec::new();
    let mut with_unsafe = Vec::new();
    for file in files.iter().filter(|file| text::is_text(file)) {
        let content = workspace.read(file)?;
        violations.extend(text::check(file, &content));
        if has_extension(file, "rs") {
            violations.extend(rust::check(file, &content));
            with_unsafe.extend(unsafe_list::first_use(file, &content));
        }
        if has_extension(file, "md") {
            let exists = |path: &str| workspace.exists(path);
            let read = |path: &str| workspace.read(path).ok();
            violations.extend(links::check(file, &content, exists, read));
        }
        if manifest::is_of_a_crate(file) {
            let readme = workspace.exists(&file.replace("Cargo.toml", "README.md"));
            violations.extend(manifest::check(file, &content, readme));
        }
    }
    for root in rust::FORBID_UNSAFE {
        violations.extend(rust::forbids_unsafe(root, &workspace.read(root)?));
    }
    let list = workspace.read(unsafe_list::LIST)?;
    violations.extend(unsafe_list::check(&with_unsafe, &list));
    violations.sort();
    Ok(violations)
}

fn has_extension(file: &str, extension: &str) -> bool {
    std::path::Path::new(file).extension().is_some_and(|found| found == extension)
}
