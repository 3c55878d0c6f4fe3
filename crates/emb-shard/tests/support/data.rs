//! Published files, where they are at hand.

use std::path::{Path, PathBuf};

/// The text of a file of published data; `None`, said aloud, where it is absent.
pub(crate) fn text(file: &str) -> Option<String> {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("skipped: {} is absent; set EMB_DATA to its folder", path.display());
    }
    text
}
