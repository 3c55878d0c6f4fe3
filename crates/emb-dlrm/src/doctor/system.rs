//! Where checks look: [`System`].

use std::path::{Path, PathBuf};

/// Bytes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// All of them.
    pub total: u64,
    /// What an ordinary user may still write.
    pub free: u64,
}

/// A machine as checks see it; tests make one up.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// What stands for `/`: `proc` and `sys` are below it.
    pub root: &'a Path,
    /// The environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What a program prints, by its name and one argument.
    pub program: &'a dyn Fn(&str, &str) -> Result<String, String>,
    /// The file system of a folder.
    pub disk: &'a dyn Fn(&Path) -> Result<Disk, String>,
}

impl std::fmt::Debug for System<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("root", &self.root).finish_non_exhaustive()
    }
}

impl System<'_> {
    /// This machine.
    pub fn this() -> System<'static> {
        System {
            root: Path::new("/"),
            variable: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
            program: &run,
            disk: &file_system,
        }
    }

    /// A path below the root; `path` has no slash in front.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file, without white space around it, or why there is none.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let text = std::fs::read_to_string(self.path(path));
        text.map(|text| text.trim().to_owned()).map_err(|error| format!("/{path}: {error}"))
    }

    /// The value of `name` in a file of `name: value` lines.
    pub(super) fn entry(&self, path: &str, name: &str) -> Result<String, String> {
        let text = self.read(path)?;
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        });
        value.ok_or_else(|| format!("/{path} has no {name:?}"))
    }

    /// Names of what is in a folder, in order; none where there is no such folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The first value that `file` has in the process's control group or one around it, from the
    /// inside out, for which `read` finds something; version 2 and then 1, whose controller is
    /// `controller`.
    pub(super) fn control_group<T>(
        &self,
        files: (&str, (&str, &str)),
        read: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let (file, (controller, old_file)) = files;
        let groups = self.read("proc/self/cgroup").unwrap_or_default();
        let mut found = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let (mount, file) = if controllers.is_empty() {
                ("sys/fs/cgroup".to_owned(), file)
            } else if controllers.split(',').any(|name| name == controller) {
                (format!("sys/fs/cgroup/{controller}"), old_file)
            } else {
                continue;
            };
            // In a container the path is often one that is not there: then its root counts.
            let mut path = path.trim_matches('/');
            loop {
                let folder =
                    if path.is_empty() { mount.clone() } else { format!("{mount}/{path}") };
                found.extend(
                    self.read(&format!("{folder}/{file}")).ok().and_then(|text| read(&text)),
                );
                if path.is_empty() {
                    break;
                }
                path = path.rsplit_once('/').map_or("", |(outer, _)| outer);
            }
        }
        found
    }
}

fn run(name: &str, argument: &str) -> Result<String, String> {
    let output = std::process::Command::new(name).arg(argument).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("no {name} in PATH"),
        _ => format!("{name}: {error}"),
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn file_system(folder: &Path) -> Result<Disk, String> {
    let found = rustix::fs::statvfs(folder);
    let found = found.map_err(|error| format!("{}: {error}", folder.display()))?;
    // Some network file systems say "without end" as the largest number of blocks.
    let size = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Disk { total: size(found.f_blocks), free: size(found.f_bavail) })
}

/// `0-3,8` as `[0, 1, 2, 3, 8]`.
pub(super) fn list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => numbers.extend(first.parse().ok()?..=last.parse::<u32>().ok()?),
            None => numbers.push(part.parse().ok()?),
        }
    }
    Some(numbers)
}

/// Bytes with a binary unit.
pub(super) fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut scaled, mut unit) = (value as f64, 0);
    while scaled >= 1024.0 && unit + 1 < units.len() {
        (scaled, unit) = (scaled / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{value} B") } else { format!("{scaled:.1} {}", units[unit]) }
}
