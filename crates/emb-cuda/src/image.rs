//! Where the image of the project's kernels is found.
//!
//! In this order: the file that `EMB_KERNELS` names, what was built in, `emb.fatbin` beside the
//! program.

use crate::{Error, Result};
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/image.rs"));

/// Names the image's file at run time.
const VARIABLE: &str = "EMB_KERNELS";

/// Name of the image beside a program.
const FILE: &str = "emb.fatbin";

/// The image.
///
/// # Errors
/// [`Error::NoImage`], which names every place tried.
pub(crate) fn image() -> Result<Cow<'static, [u8]>> {
    let folder = std::env::current_exe().ok().and_then(|file| file.parent().map(Path::to_owned));
    find(std::env::var_os(VARIABLE), BUILT_IN, folder)
}

/// Bytes of the image of the project's kernels, without loading it.
///
/// # Errors
/// [`Error::NoImage`], which names every place tried.
pub fn image_bytes() -> Result<u64> {
    image().map(|image| image.len() as u64)
}

/// The first that is there; a file that was named must be.
fn find(
    named: Option<OsString>,
    built_in: Option<&'static [u8]>,
    folder: Option<PathBuf>,
) -> Result<Cow<'static, [u8]>> {
    if let Some(file) = named {
        let failed = |error| Error::NoImage(format!("{VARIABLE}={}: {error}", file.display()));
        return std::fs::read(&file).map(Cow::Owned).map_err(failed);
    }
    if let Some(image) = built_in {
        return Ok(Cow::Borrowed(image));
    }
    let beside = folder.unwrap_or_default().join(FILE);
    std::fs::read(&beside).map(Cow::Owned).map_err(|error| {
        Error::NoImage(format!(
            "{VARIABLE} names no file, none was built in (by EMB_FATBIN or from target/kernels), {}: {error}",
            beside.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_comes_before_what_was_built_in() {
        let file = std::env::temp_dir().join(format!("emb-image-{}", std::process::id()));
        std::fs::write(&file, b"named").expect("a temporary file");
        let found = find(Some(file.clone().into()), Some(b"built in"), None);
        std::fs::remove_file(&file).expect("it is ours");
        assert_eq!(&*found.expect("it is there"), b"named");
        assert_eq!(&*find(None, Some(b"built in"), None).expect("it is there"), b"built in");
    }

    #[test]
    fn a_file_beside_the_program_is_found_last() {
        let folder = std::env::temp_dir().join(format!("emb-images-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        std::fs::write(folder.join(FILE), b"beside").expect("a temporary file");
        let found = find(None, None, Some(folder.clone()));
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(&*found.expect("it is there"), b"beside");
    }

    #[test]
    fn every_place_tried_is_named() {
        let missing = find(None, None, Some("/nowhere".into())).expect_err("nothing there");
        let text = missing.to_string();
        for place in ["EMB_KERNELS", "EMB_FATBIN", "/nowhere/emb.fatbin", "cargo xtask kernels"] {
            assert!(text.contains(place), "{place} is not in: {text}");
        }
        let named = find(Some("/nowhere/x".into()), Some(b"built in"), None);
        let text = named.expect_err("nothing there").to_string();
        assert!(text.contains("EMB_KERNELS=/nowhere/x: "), "{text}");
    }
}
