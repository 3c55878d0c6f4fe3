//! Where the kernels' sources are, and that none is left out.

use crate::Failure;
use std::path::{Path, PathBuf};

/// The one file that is compiled; it includes all others.
const MAIN: &str = "crates/emb-kernels/cuda/emb.cu";

/// Folders of kernels and headers, in the order of the search for includes.
const FOLDERS: [&str; 3] =
    ["crates/emb-kernels/cuda", "crates/emb-optim/cuda", "crates/emb-comm/cuda"];

/// The sources under a root: the workspace, or a copy.
#[derive(Debug)]
pub(crate) struct Sources {
    root: PathBuf,
}

impl Sources {
    pub(crate) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The file to compile.
    pub(crate) fn main(&self) -> PathBuf {
        self.root.join(MAIN)
    }

    /// Folders to search for includes.
    pub(crate) fn includes(&self) -> impl Iterator<Item = PathBuf> {
        FOLDERS.iter().map(|folder| self.root.join(folder))
    }

    /// Fails if a kernel file is not part of what is compiled.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let main = std::fs::read_to_string(self.main())
            .map_err(|error| format!("{}: {error}", self.main().display()))?;
        for folder in self.includes().filter(|folder| folder.exists()) {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
                if Path::new(name).extension().is_some_and(|e| e == "cu") && !includes(&main, name)
                {
                    return Err(format!("{MAIN} does not include {}", path.display()).into());
                }
            }
        }
        Ok(())
    }

    /// The same sources under another root.
    pub(crate) fn copy_to(&self, root: &Path) -> Result<Self, Failure> {
        for (from, to) in FOLDERS.iter().map(|f| (self.root.join(f), root.join(f))) {
            if from.exists() {
                std::fs::create_dir_all(&to)?;
                for entry in std::fs::read_dir(&from)? {
                    let entry = entry?;
                    if entry.file_type()?.is_file() {
                        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
                    }
                }
            }
        }
        Ok(Self::of(root))
    }
}

/// Whether `main` is the file `name`, or has a line that includes it.
fn includes(main: &str, name: &str) -> bool {
    let of_line = |line: &str| {
        let path = line.trim().strip_prefix("#include \"")?.strip_suffix('"')?.to_owned();
        Some(path.rsplit('/').next()? == name)
    };
    MAIN.ends_with(&format!("/{name}")) || main.lines().any(|line| of_line(line) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_file_left_out_is_noticed() {
        let main =
            "// All.\n#include \"a.cu\"\n  #include \"../../x/cuda/b.cu\"\n// #include \"c.cu\"\n";
        assert!(includes(main, "a.cu") && includes(main, "b.cu") && includes(main, "emb.cu"));
        assert!(!includes(main, "c.cu") && !includes(main, "aa.cu"));
    }
}
