//! `manifest.json`: which file is the checkpoint, and what must be in it.

use super::unfinished::Unfinished;
use crate::config::Options;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const FORMAT: &str = "emb-checkpoint";
const VERSION: u32 = 1;
/// Largest step or number of samples that is believed.
const MAX_COUNT: u64 = 1 << 60;

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

/// How far a training has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Steps done.
    pub step: u64,
    /// Samples seen.
    pub samples: u64,
    /// Rows read of the epoch that is going on.
    pub row: u64,
    /// Passes over the data that were finished before.
    pub epoch: u64,
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
    /// Rows of the training data read in the epoch that was going on; 0 between epochs.
    pub row: u64,
    /// Passes over the training data that were finished before.
    #[serde(default)]
    pub epoch: u64,
    /// Name of the safetensors file in the same folder.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// The options of the run that saved it.
    pub options: Options,
    /// What the file holds.
    pub tensors: Vec<TensorRecord>,
}

impl Manifest {
    pub(super) fn new(
        at: Position,
        options: Options,
        file: String,
        bytes: u64,
        tensors: Vec<TensorRecord>,
    ) -> Self {
        let Position { step, samples, row, epoch } = at;
        let (format, version) = (FORMAT.to_owned(), VERSION);
        Self { format, version, step, samples, row, epoch, file, bytes, options, tensors }
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
        let Position { step, samples, row, epoch } = manifest.position();
        if step.max(samples).max(row).max(epoch) > MAX_COUNT {
            let what = format!(
                "step {step}, {samples} samples, row {row}, epoch {epoch}: no training comes this far"
            );
            return Err(Error::checkpoint(&path, what));
        }
        if Path::new(&manifest.file).file_name().is_none_or(|name| name != manifest.file.as_str()) {
            let what = format!("the file name {:?} leaves the folder", manifest.file);
            return Err(Error::checkpoint(&path, what));
        }
        let file = manifest.path(dir);
        let found = std::fs::metadata(&file).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::checkpoint(&file, "is gone, but manifest.json beside it names it")
            }
            _ => Error::io("opening", &file)(source),
        })?;
        if !found.is_file() {
            return Err(Error::checkpoint(&file, "is a folder, not a file of tensors"));
        }
        let bytes = found.len();
        if bytes != manifest.bytes {
            let what = format!("{bytes} bytes, but {} were written: truncated?", manifest.bytes);
            return Err(Error::checkpoint(&file, what));
        }
        Ok(manifest)
    }

    /// The options that a run which goes on from here takes where nothing else is said: all but
    /// where to save, how long to train and on what. What `given` says of the run to come
    /// displaces more than itself: data of another kind all options about data, another number of
    /// ranks all that was said of ranks.
    pub fn options_to_go_on(&self, given: &Options) -> Options {
        let data = &given.data;
        let mut options = self.options.clone();
        if given.world.is_some_and(|world| Some(world) != options.world) {
            options = options.alone();
        }
        (options.load, options.save, options.threads) = (None, None, None);
        (options.save_every, options.resume) = (None, None);
        (options.timeline, options.threads_per_rank) = (None, None);
        (options.device, options.precision, options.transport) = (None, None, None);
        options.health = None;
        // Look-ups are for the planner, or for the health that is not looked at again.
        options.workload = options.workload.filter(|_| options.planner.is_some());
        (options.steps, options.epochs) = (None, None);
        let synthetic =
            |paths: &[PathBuf]| paths.iter().any(|path| path.as_os_str() == "synthetic");
        if !data.is_empty() && synthetic(data) != synthetic(&options.data) {
            options.eval.clear();
            (options.id_policy, options.bad_rows, options.eval_every) = (None, None, None);
            (options.drop_last, options.soft_labels) = (None, None);
        }
        options
    }

    /// How far the training had come.
    pub fn position(&self) -> Position {
        Position { step: self.step, samples: self.samples, row: self.row, epoch: self.epoch }
    }

    /// The safetensors file.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.file)
    }

    /// Makes this the checkpoint of `dir` in one rename.
    pub(super) fn publish(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::checkpoint(dir, format!("manifest: {error}")))?;
        let (mut temporary, mut file) = Unfinished::create(dir.join("manifest.json.partial"))?;
        file.write_all(&text).map_err(Error::io("writing", temporary.path()))?;
        file.sync_all().map_err(Error::io("flushing", temporary.path()))?;
        temporary.rename(dir.join("manifest.json"))?;
        temporary.done();
        Ok(())
    }

    /// Makes [`publish`](Self::publish) durable, then removes files no longer named.
    pub(super) fn settle(&self, dir: &Path) -> Result<()> {
        sync_folder(dir)?;
        remove(dir, |name| name != self.file)
    }
}

/// Makes renames in a folder durable.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    let folder = std::fs::File::open(dir).map_err(Error::io("opening", dir))?;
    folder.sync_all().map_err(Error::io("flushing", dir))
}

/// Removes half-written tensor files. Nobody else may be writing here.
pub(super) fn remove_partial(dir: &Path) -> Result<()> {
    remove(dir, |name| name.ends_with(".partial"))
}

/// Removes those of this program's tensor files, finished or not, that are in the `way`; other files
/// are left alone.
fn remove(dir: &Path, way: impl Fn(&str) -> bool) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(Error::io("listing", dir))? {
        let path = entry.map_err(Error::io("listing", dir))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if is_ours(name) && way(name) {
            std::fs::remove_file(&path).map_err(Error::io("removing", &path))?;
        }
    }
    Ok(())
}

/// `model-<step>.safetensors` or `model-<step>-<again>.safetensors`, finished or not.
fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".partial").unwrap_or(name);
    let Some(middle) =
        name.strip_prefix("model-").and_then(|name| name.strip_suffix(".safetensors"))
    else {
        return false;
    };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (step, again) = middle.split_once('-').unwrap_or((middle, "0"));
    number(step) && number(again)
}

/// Names of probes differ within a process.
static PROBES: AtomicU64 = AtomicU64::new(0);

/// Makes sure, before any training, that a checkpoint can be written to `dir`: creates it, writes
/// and removes a file, and refuses a folder whose manifest is another program's.
///
/// # Errors
/// What is in the way, by path; options that a manifest can't hold.
pub fn prepare(dir: &Path, options: &Options) -> Result<()> {
    serde_json::to_vec(options)
        .map_err(|error| Error::checkpoint(dir, format!("the options can't be saved: {error}")))?;
    if dir.to_str().is_none() {
        return Err(Error::checkpoint(dir, "the path is not valid UTF-8"));
    }
    std::fs::create_dir_all(dir).map_err(Error::io("creating", dir))?;
    // A name of its own: another run may be writing its files here.
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = dir.join(format!("writable-{}-{number}.partial", std::process::id()));
    std::fs::write(&probe, b"").map_err(Error::io("writing", &probe))?;
    std::fs::remove_file(&probe).map_err(Error::io("removing", &probe))?;
    let manifest = dir.join("manifest.json");
    if manifest.exists() {
        let text = std::fs::read(&manifest).map_err(Error::io("reading", &manifest))?;
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        if value["format"] != FORMAT {
            let what = "this manifest is not of an emb checkpoint: give another folder to --save";
            return Err(Error::checkpoint(&manifest, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_names_that_this_program_writes_are_its_own() {
        for name in ["model-7.safetensors", "model-7-2.safetensors", "model-7.safetensors.partial"]
        {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "model-00001-of-00002.safetensors",
            "model-mine.safetensors",
            "model-.safetensors",
            "model.safetensors",
            "model-7.bin",
            "manifest.json",
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
