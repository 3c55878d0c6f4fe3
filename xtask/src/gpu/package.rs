//! The folder: what is in it, and how large it is.

use crate::Failure;
use crate::columns::{Align::Left, Align::Right, lines};
use crate::kernels;
use crate::simt::targets::Executable;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder, from the workspace's root.
const FOLDER: &str = "target/gpu/emb-gpu";

/// Bytes of all test programs and benches together, stripped.
const LIMIT: u64 = 60 << 20;

/// Parts of the click log that training tests read; without them they say so.
const DATA: [&str; 3] = ["criteo8k_train.tsv", "criteo8k_dev.tsv", "criteo8k_test.tsv"];

const SCRIPT: &str = include_str!("run.sh");
const TORCH: &str = include_str!("torch_bag.py");

/// A prepared folder.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) folder: PathBuf,
    /// Name and bytes of every file.
    files: Vec<(String, u64)>,
}

/// Puts everything into the folder anew.
pub(crate) fn prepare(workspace: &Workspace, programs: &[Executable]) -> Result<Package, Failure> {
    let folder = workspace.root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("tests"))?;
    let mut names = Vec::new();
    for program in programs {
        let name = name(program);
        strip(&program.file, &folder.join(&name))?;
        names.push(name);
    }
    small_enough(&sizes(&folder, &names)?)?;
    fs::copy(workspace.root().join(kernels::IMAGE), folder.join("emb.fatbin"))?;
    fs::write(folder.join("torch_bag.py"), TORCH)?;
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT)?;
    executable(&script)?;
    names.extend(["emb.fatbin", "torch_bag.py", "run.sh"].map(str::to_owned));
    names.extend(data(&folder)?);
    let files = sizes(&folder, &names)?;
    Ok(Package { folder, files })
}

/// Copies the files that training tests read from where `EMB_DATA` says, if it does.
fn data(folder: &Path) -> Result<Vec<String>, Failure> {
    let Some(from) = std::env::var_os("EMB_DATA").map(PathBuf::from) else { return Ok(Vec::new()) };
    fs::create_dir_all(folder.join("data"))?;
    let mut names = Vec::new();
    for file in DATA {
        let name = format!("data/{file}");
        fs::copy(from.join(file), folder.join(&name))
            .map_err(|error| format!("EMB_DATA: {}: {error}", from.join(file).display()))?;
        names.push(name);
    }
    Ok(names)
}

/// `bench`, or `tests/<crate>-<test>`.
fn name(program: &Executable) -> String {
    let target = &program.target;
    if target.kind == "bench" {
        return "bench".to_owned();
    }
    format!("tests/{}-{}", target.package, target.name)
}

/// Copies a program without its symbols.
fn strip(from: &Path, to: &Path) -> Result<(), Failure> {
    let status = Command::new("strip").arg("-o").arg(to).arg(from).status();
    let status = status.map_err(|error| format!("strip: {error}: install binutils"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("strip of {}: {status}", from.display()).into())
}

#[cfg(unix)]
fn executable(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn executable(_file: &Path) -> Result<(), Failure> {
    Err("the script is for a machine with a shell: prepare it on one".into())
}

fn sizes(folder: &Path, names: &[String]) -> Result<Vec<(String, u64)>, Failure> {
    let size = |name: &String| Ok((name.clone(), fs::metadata(folder.join(name))?.len()));
    names.iter().map(size).collect()
}

fn small_enough(programs: &[(String, u64)]) -> Result<(), Failure> {
    let bytes: u64 = programs.iter().map(|(_, bytes)| bytes).sum();
    if bytes <= LIMIT {
        return Ok(());
    }
    let (mib, limit) = (bytes >> 20, LIMIT >> 20);
    Err(format!("the programs are {mib} MiB, the limit is {limit}: leave a test out").into())
}

impl Package {
    /// A line a file.
    pub(crate) fn describe(&self) -> String {
        let mut rows: Vec<Vec<String>> =
            self.files.iter().map(|(name, bytes)| vec![name.clone(), bytes.to_string()]).collect();
        let all: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        rows.insert(0, vec!["file".to_owned(), "bytes".to_owned()]);
        rows.push(vec!["all".to_owned(), all.to_string()]);
        lines(&[Left, Right], &rows)
    }

    /// One file beside the folder.
    pub(crate) fn archive(&self) -> Result<PathBuf, Failure> {
        let archive = self.folder.with_extension("tar.gz");
        let parent = self.folder.parent().ok_or("a folder in no folder")?;
        let mut tar = Command::new("tar");
        tar.arg("czf").arg(&archive).arg("-C").arg(parent).arg("emb-gpu");
        let status = tar.status().map_err(|error| format!("tar: {error}"))?;
        if status.success() {
            return Ok(archive);
        }
        Err(format!("{tar:?}: {status}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_a_package_is_refused() {
        let of = |bytes| small_enough(&[("a".to_owned(), bytes), ("b".to_owned(), 1)]);
        assert!(of(LIMIT - 1).is_ok());
        let refused = of(LIMIT + (1 << 20)).expect_err("too large").to_string();
        assert_eq!(refused, "the programs are 61 MiB, the limit is 60: leave a test out");
    }
}
