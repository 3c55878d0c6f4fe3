//! Whether a build depends on where it was made.

use super::compile::Build;
use super::sources::Sources;
use super::toolkit::Toolkit;
use crate::Failure;
use crate::workspace::Workspace;

/// Where the second build has its sources and its working directory, from the workspace's root.
const ELSEWHERE: &str = "target/kernel-parts/elsewhere";

/// Builds once more from a copy of the sources in another folder, and compares the bytes.
pub(crate) fn check(
    workspace: &Workspace,
    toolkit: &Toolkit,
    sources: &Sources,
    first: &Build,
) -> Result<(), Failure> {
    let root = workspace.root().join(ELSEWHERE);
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    let copy = sources.copy_to(&root)?;
    let second = Build::run(toolkit, &copy, &root.join("build"))?;
    std::fs::remove_dir_all(&root)?;
    match first_difference(&first.image, &second.image) {
        None => Ok(()),
        Some(at) => Err(format!(
            "a second build from {ELSEWHERE} differs from byte {at} on: does a kernel use \
            __FILE__, __DATE__, or an unnamed namespace, whose name holds the path?"
        )
        .into()),
    }
}

/// Where two images differ, their lengths included.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    differs.or((a.len() != b.len()).then(|| a.len().min(b.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_byte_is_found() {
        assert_eq!(first_difference(b"same", b"same"), None);
        assert_eq!(first_difference(b"same", b"sane"), Some(2));
        assert_eq!(first_difference(b"same", b"same and more"), Some(4));
    }
}
