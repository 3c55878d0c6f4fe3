//! Lists of paths and patterns to lists of files.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Error, Result};

/// Resolves paths and patterns to regular files, in the order given.
///
/// In a pattern `*` stands for any bytes and `?` for any one byte of a name, `/` and a leading
/// dot apart. The matches of one pattern are sorted with numbers by their value, so that `day_2`
/// comes before `day_10`. A path that exists is taken literally, whatever it contains.
///
/// # Errors
/// No path at all, a pattern without a match, a path that does not exist or is not a regular file.
pub fn expand<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let path = path.as_ref();
        if path.exists() || !is_pattern(path.as_os_str().as_bytes()) {
            files.push(path.to_owned());
            continue;
        }
        let matches = matches_of(path)?;
        if matches.is_empty() {
            return Err(Error::NoMatch { pattern: path.to_owned() });
        }
        files.extend(matches);
    }
    if files.is_empty() {
        return Err(Error::NoFiles);
    }
    files.iter().try_for_each(|path| check_regular(path))?;
    Ok(files)
}

fn check_regular(path: &Path) -> Result<()> {
    let kind = fs::metadata(path)
        .map_err(|source| Error::Io { path: path.to_owned(), source })?
        .file_type();
    let path = path.to_owned();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(Error::Directory { path })
    } else {
        Err(Error::NotRegular { path })
    }
}

/// Walks the components of a pattern, keeping the paths that match so far.
fn matches_of(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            for path in &mut found {
                path.push(component);
            }
            continue;
        };
        if !is_pattern(name.as_bytes()) {
            for path in &mut found {
                path.push(name);
            }
            found.retain(|path| path.exists());
            continue;
        }
        let mut next = Vec::new();
        for folder in found.iter().filter(|path| path.as_os_str().is_empty() || path.is_dir()) {
            let names = names_in(folder)?;
            let names = names.iter().filter(|entry| matches(name.as_bytes(), entry.as_bytes()));
            next.extend(names.map(|entry| folder.join(entry)));
        }
        found = next;
    }
    found.sort_by(|a, b| natural(a.as_os_str().as_bytes(), b.as_os_str().as_bytes()));
    Ok(found)
}

fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |source| Error::Io { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(failed)).collect()
}

fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|&byte| byte == b'*' || byte == b'?')
}

/// Whether a name matches a pattern, in `O(pattern * name)`: on a mismatch the last `*` takes one
/// more byte.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Orders bytes with runs of digits as numbers; equal numbers by length, then plainly.
fn natural(a: &[u8], b: &[u8]) -> Ordering {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].is_ascii_digit() && b[j].is_ascii_digit() {
            let (x, y) = (digits(&a[i..]), digits(&b[j..]));
            let order = significant(x).len().cmp(&significant(y).len());
            let order = order.then_with(|| significant(x).cmp(significant(y)));
            if order != Ordering::Equal {
                return order;
            }
            i += x.len();
            j += y.len();
        } else if a[i] == b[j] {
            i += 1;
            j += 1;
        } else {
            return a[i].cmp(&b[j]);
        }
    }
    (a.len() - i).cmp(&(b.len() - j)).then_with(|| a.cmp(b))
}

fn digits(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    &bytes[..end]
}

fn significant(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    &digits[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_does() {
        let check = |pattern: &str, name: &str, expect: bool| {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expect, "{pattern} {name}");
        };
        check("*", "day", true);
        check("*", ".hidden", false);
        check(".*", ".hidden", true);
        check("day_?", "day_1", true);
        check("day_?", "day_10", false);
        check("day_*.gz", "day_10.gz", true);
        check("day_*.gz", "day_10.gz.part", false);
        check("*a*b*c", "xxaybbzc", true);
        check("*a*b*c", "xxaybbz", false);
        check("a**", "a", true);
        check("?", "", false);
        // A name that makes a naive recursion exponential.
        check(&"*a".repeat(30), &"a".repeat(20_000), true);
        check(&("*a".repeat(30) + "b"), &"a".repeat(20_000), false);
    }

    #[test]
    fn numbers_sort_by_value() {
        let mut names = ["day_10", "day_2", "day_02", "day_1", "day_1.gz", "day_"];
        names.sort_by(|a, b| natural(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, ["day_", "day_1", "day_1.gz", "day_02", "day_2", "day_10"]);
    }
}
