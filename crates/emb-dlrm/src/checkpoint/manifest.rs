//! `manifest.json`: which file is the checkpoint, and what must be in it.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

const FORMAT: &str = "emb-checkpoint";
const VERSION: u32 = 1;

/// One tensor as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRecord {
    /// Name in the file.
    pub name: String,
    /// Shape, rows first.
    pub shape: Vec<usize>,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
}

/// The head of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    version: u32,
    /// Training steps done.
    pub step: u64,
    /// Training samples seen.
    pub samples: u64,
    /// Name of the safetensors file in the same folder.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// The options of the run that saved it.
    pub options: crate::config::Options,
    /// What the file holds.
    pub tensors: Vec<TensorRecord>,
}

impl Manifest {
    pub(super) fn new(
        step: u64,
        samples: u64,
        options: crate::config::Options,
        file: String,
        bytes: u64,
        tensors: Vec<TensorRecord>,
    ) -> Self {
        let format = FORMAT.to_owned();
        Self { format, version: VERSION, step, samples, file, bytes, options, tensors }
    }

    /// Reads the manifest of a checkpoint folder.
    ///
    /// # Errors
    /// The folder holds no manifest, or one of another format or version, or its file is missing
    /// or of another size than was written.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("manifest.json");
        let text = std::fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::checkpoint(dir, "no manifest.json here: not a complete checkpoint")
            }
            _ => Error::io("reading", &path)(source),
        })?;
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| Error::checkpoint(&path, format!("not a manifest: {error}")))?;
        if manifest.format != FORMAT || manifest.version != VERSION {
            let what = format!(
                "format {:?} version {}, this program reads {FORMAT:?} version {VERSION}",
                manifest.format, manifest.version
            );
            return Err(Error::checkpoint(&path, what));
        }
        if Path::new(&manifest.file).file_name().is_none_or(|name| name != manifest.file.as_str()) {
            let what = format!("the file name {:?} leaves the folder", manifest.file);
            return Err(Error::checkpoint(&path, what));
        }
        let file = manifest.path(dir);
        let bytes = std::fs::metadata(&file).map_err(Error::io("opening", &file))?.len();
        if bytes != manifest.bytes {
            let what = format!("{bytes} bytes, but {} were written: truncated?", manifest.bytes);
            return Err(Error::checkpoint(&file, what));
        }
        Ok(manifest)
    }

    /// The safetensors file.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.file)
    }

    /// Makes this the checkpoint of `dir` in one rename, then removes files no longer named.
    pub(super) fn publish(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::checkpoint(dir, format!("manifest: {error}")))?;
        let temporary = dir.join("manifest.json.partial");
        let mut file =
            std::fs::File::create(&temporary).map_err(Error::io("creating", &temporary))?;
        file.write_all(&text).map_err(Error::io("writing", &temporary))?;
        file.sync_all().map_err(Error::io("flushing", &temporary))?;
        std::fs::rename(&temporary, dir.join("manifest.json"))
            .map_err(Error::io("renaming", &temporary))?;
        sync_folder(dir)?;
        remove_stale(dir, &self.file)
    }
}

/// Makes renames in a folder durable.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    let folder = std::fs::File::open(dir).map_err(Error::io("opening", dir))?;
    folder.sync_all().map_err(Error::io("flushing", dir))
}

/// Removes this program's earlier or half-written tensor files; other files are left alone.
fn remove_stale(dir: &Path, keep: &str) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(Error::io("listing", dir))? {
        let path = entry.map_err(Error::io("listing", dir))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let ours = name.starts_with("model-")
            && (name.ends_with(".safetensors") || name.ends_with(".safetensors.partial"));
        if ours && name != keep {
            std::fs::remove_file(&path).map_err(Error::io("removing", &path))?;
        }
    }
    Ok(())
}
