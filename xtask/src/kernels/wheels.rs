//! The compiler from Python's package index: no root, no GPU, nothing outside one folder.

use crate::Failure;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each proved necessary by leaving it out. 13.0, because its PTX is what a driver of CUDA 13.0
/// still accepts; `cccl` because `cuda_fp16.h` includes a header of it.
const PINS: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
];

/// The private folder, from the workspace's root.
const FOLDER: &str = "target/cuda-13.0.88";

/// The `nvcc` in the private folder; installed there if it is not yet.
pub(crate) fn installed(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let folder = workspace.root().join(FOLDER);
    if !folder.exists() {
        eprintln!("no nvcc of CUDA 13 here; installing one into {FOLDER} (102 MB to download)");
        install(&folder)?;
    }
    nvcc(&folder)
}

/// Installs into a folder beside, which takes its name only when whole: an interrupted install
/// leaves nothing that looks like a compiler.
fn install(folder: &Path) -> Result<(), Failure> {
    let mut beside = folder.as_os_str().to_owned();
    beside.push(".installing");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        std::fs::remove_dir_all(&beside)?;
    }
    std::fs::create_dir_all(&beside)?;
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let mut venv = Command::new(python);
    run(venv.args(["-m", "venv"]).arg(&beside), "install python3 and python3-venv")?;
    let mut pip = Command::new(beside.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"]).args(PINS);
    run(pip.env("TMPDIR", &beside), "the package index must be reachable, or give --nvcc")?;
    nvcc(&beside)?;
    Ok(std::fs::rename(&beside, folder)?)
}

fn run(command: &mut Command, remedy: &str) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}: {remedy}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {status}: {remedy}").into())
}

/// Below a folder whose name holds Python's version.
fn nvcc(folder: &Path) -> Result<PathBuf, Failure> {
    for entry in std::fs::read_dir(folder.join("lib"))? {
        let nvcc = entry?.path().join("site-packages/nvidia/cu13/bin/nvcc");
        if nvcc.is_file() {
            return Ok(nvcc);
        }
    }
    let path = folder.display();
    Err(format!("{path} holds no nvcc: remove it, and it is installed again").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_compiler_says_what_to_do() {
        let folder = std::env::temp_dir().join(format!("emb-wheels-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib/python3.99")).expect("a temporary folder");
        let failure = nvcc(&folder).expect_err("nothing there").to_string();
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert!(failure.contains("remove it"), "{failure}");
    }

    #[test]
    fn a_missing_python_is_named_with_what_to_install() {
        let failure = run(&mut Command::new("/nowhere/python3"), "install python3");
        let failure = failure.expect_err("no such program").to_string();
        assert!(failure.starts_with("/nowhere/python3: ") && failure.ends_with("install python3"));
    }
}
