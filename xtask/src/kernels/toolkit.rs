//! The compiler: given, found on the machine, or installed from wheels.

use super::wheels;
use crate::Failure;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Release whose compilers may be used: 13 is the first that knows `sm_100` and the last tried.
const MAJOR: &str = "13.";

/// Where installers of CUDA put the compiler, beside what `PATH` says.
const USUAL: &str = "/usr/local/cuda/bin";

/// A folder with `nvcc`, `ptxas` and `fatbinary`.
#[derive(Debug)]
pub(crate) struct Toolkit {
    bin: PathBuf,
    /// Such as `13.0.88`.
    pub(crate) version: String,
}

impl Toolkit {
    /// The compiler asked for by flag or `NVCC`; else the machine's; else the one from wheels.
    pub(crate) fn find(workspace: &Workspace, given: Option<&Path>) -> Result<Self, Failure> {
        let named = given.map(Path::to_owned).or_else(|| std::env::var_os("NVCC").map(Into::into));
        if let Some(nvcc) = named {
            return Self::at(&nvcc);
        }
        for nvcc in on_machine() {
            match Self::at(&nvcc) {
                Ok(toolkit) => return Ok(toolkit),
                Err(failure) => eprintln!("not used: {failure}"),
            }
        }
        Self::at(&wheels::installed(workspace)?)
    }

    fn at(nvcc: &Path) -> Result<Self, Failure> {
        let text = Command::new(nvcc)
            .arg("--version")
            .output()
            .map_err(|error| format!("{}: {error}", nvcc.display()))?;
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let version = version(&text)
            .ok_or_else(|| format!("{} --version names no version", nvcc.display()))?;
        if !version.starts_with(MAJOR) {
            let path = nvcc.display();
            return Err(format!("{path} is of CUDA {version}, {MAJOR}x is needed").into());
        }
        // The other programs stand beside the real file, not beside a link to it.
        let real = std::fs::canonicalize(which(nvcc))?;
        let bin = real.parent().ok_or("nvcc in no folder")?.to_owned();
        Ok(Self { bin, version: version.to_owned() })
    }

    pub(crate) fn nvcc(&self) -> PathBuf {
        self.bin.join("nvcc")
    }

    /// A command that runs one of the toolkit's programs.
    pub(crate) fn command(&self, program: &str) -> Command {
        Command::new(self.bin.join(program))
    }
}

/// Every `nvcc` that the machine shows.
fn on_machine() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain([USUAL.into()]).collect();
    folders.into_iter().map(|folder| folder.join("nvcc")).filter(|nvcc| nvcc.is_file())
}

/// A program named without a folder is the first in `PATH`.
fn which(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return program.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.into_iter().find(|file| file.is_file()).unwrap_or_else(|| program.to_owned())
}

/// The version in `Cuda compilation tools, release 13.0, V13.0.88`.
fn version(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.contains("release "))?;
    line.rsplit_once(", V").map(|(_, version)| version.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_nvcc_prints() {
        let text = "nvcc: NVIDIA (R) Cuda compiler driver\n\
            Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.1_0\n";
        assert_eq!(version(text), Some("13.0.88"));
        assert_eq!(version("something else"), None);
    }

    #[test]
    fn a_compiler_that_is_not_there_is_named() {
        let failure = Toolkit::at(Path::new("/nowhere/nvcc")).expect_err("no such file");
        assert!(failure.to_string().starts_with("/nowhere/nvcc: "), "{failure}");
    }
}
