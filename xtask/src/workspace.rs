//! The workspace on disk: its root, its files, its cargo.

use crate::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace that this program was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The parent of this crate's folder.
    pub(crate) fn find() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent")?;
        Ok(Self { root: root.to_owned() })
    }

    /// The root, as an absolute path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A command that runs in the root.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The text of a file, by its path from the root.
    pub(crate) fn read(&self, path: &str) -> Result<String, Failure> {
        std::fs::read_to_string(self.root.join(path))
            .map_err(|error| format!("{path}: {error}").into())
    }

    /// Whether a file or folder exists, by its path from the root.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Paths of all files from the root, sorted: those git tracks and new ones it does not ignore.
    pub(crate) fn files(&self) -> Result<Vec<String>, Failure> {
        let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listing = output(self.command("git").args(arguments))?;
        let mut files: Vec<String> =
            listing.split_terminator('\0').filter(|p| self.exists(p)).map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// `cargo metadata` of the workspace's own crates, from which everything else follows.
    pub(crate) fn metadata(&self) -> Result<Value, Failure> {
        let arguments = ["metadata", "--format-version", "1", "--no-deps"];
        Ok(serde_json::from_str(&output(self.command("cargo").args(arguments))?)?)
    }
}

/// Runs a command and returns what it prints; its errors go to the terminal.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
