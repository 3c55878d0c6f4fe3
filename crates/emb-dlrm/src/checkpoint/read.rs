//! Loading: check names and shapes first, then stream every tensor and its checksum.

use super::CHUNK;
use super::entry::{Entry, Place, entries, is_of_one_replica};
use super::manifest::{Manifest, Position, TensorRecord};
use super::write::{hex, width};
use crate::model::Dlrm;
use crate::{Embeddings, Error, Result};
use emb_kernels::Backend;
use safetensors::tensor::{Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Larger headers than this are refused, as the format's own library does.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// How far the training had come.
    pub position: Position,
    /// Tensors loaded.
    pub tensors: usize,
    /// Bytes loaded.
    pub bytes: u64,
}

/// Loads a checkpoint into a model of the same tables, layers and optimizers. With tables over ranks
/// every rank calls it and keeps its part.
///
/// # Errors
/// Nothing is changed when a tensor is missing, unexpected or of another shape or type (all of
/// them are named); a checksum that differs, or a value that is not finite, names the file and the
/// tensor.
pub fn load<B: Backend, E: Embeddings<B>>(
    dir: &Path,
    backend: &mut B,
    model: &mut Dlrm<B, E>,
    dense_slots: &[&str],
) -> Result<LoadReport> {
    let manifest = Manifest::read(dir)?;
    let mut reader = Reader::open(manifest.path(dir))?;
    let entries = entries(model, dense_slots);
    reader.compare(&entries)?;
    reader.compare_records(&manifest)?;
    let mut bytes = 0;
    for entry in entries.iter().filter(|entry| !is_table(entry)) {
        load_dense(&mut reader, &manifest, entry, backend, model)?;
        bytes += reader.info(entry).data_offsets.1 - reader.info(entry).data_offsets.0;
    }
    for table in 0..model.embeddings.specs().len() {
        bytes += load_table(&mut reader, &manifest, &entries, table, backend, model)?;
    }
    let (position, tensors) = (manifest.position(), entries.len());
    Ok(LoadReport { position, tensors, bytes: bytes as u64 })
}

fn is_table(entry: &Entry) -> bool {
    matches!(entry.place, Place::TableWeight { .. } | Place::TableSlot { .. })
}

fn load_dense<B: Backend, E: Embeddings<B>>(
    reader: &mut Reader,
    manifest: &Manifest,
    entry: &Entry,
    backend: &mut B,
    model: &mut Dlrm<B, E>,
) -> Result<()> {
    let (flat, range) = match &entry.place {
        Place::Dense(range) => (&mut model.dense.weights, range.clone()),
        Place::DenseSlot(range) => (&mut model.dense.state, range.clone()),
        _ => unreachable!("only dense entries are passed"),
    };
    let mut tensor = Tensor::new(reader, entry);
    let mut values = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let len = CHUNK.min(range.end - at);
        tensor.read(reader, len, &mut values)?;
        backend.upload(&values, B::view_mut(flat, at..at + len))?;
        at += len;
    }
    tensor.verify(reader, manifest)
}

fn load_table<B: Backend, E: Embeddings<B>>(
    reader: &mut Reader,
    manifest: &Manifest,
    entries: &[Entry],
    table: usize,
    backend: &mut B,
    model: &mut Dlrm<B, E>,
) -> Result<usize> {
    let spec = &model.embeddings.specs()[table];
    let (rows, dim, optimizer) = (spec.rows as usize, spec.dim, spec.optimizer);
    let slots = optimizer.slots();
    let find = |place: Place| {
        entries
            .iter()
            .find(|entry| entry.place == place)
            .expect("invariant: every table has its entries")
    };
    let mut weight = Tensor::new(reader, find(Place::TableWeight { table }));
    let mut states: Vec<Option<Tensor>> = (0..slots.len())
        .map(|slot| {
            let stored = !is_of_one_replica(spec, slots[slot]);
            stored.then(|| Tensor::new(reader, find(Place::TableSlot { table, slot })))
        })
        .collect();
    let mut weights = Vec::new();
    let mut state = vec![Vec::new(); slots.len()];
    let step = (CHUNK / dim).max(1);
    for first in (0..rows).step_by(step) {
        let n = step.min(rows - first);
        weight.read(reader, n * dim, &mut weights)?;
        for ((tensor, values), slot) in states.iter_mut().zip(&mut state).zip(slots) {
            let elements = n * width(slot.extent, dim);
            match tensor {
                Some(tensor) => tensor.read(reader, elements, values)?,
                None => values.resize(elements, 0.0),
            }
        }
        model.embeddings.write_rows(backend, table, first as u64, &weights, &state)?;
    }
    let mut bytes = weight.end - weight.begin;
    weight.verify(reader, manifest)?;
    for tensor in states.into_iter().flatten() {
        bytes += tensor.end - tensor.begin;
        tensor.verify(reader, manifest)?;
    }
    Ok(bytes as usize)
}

/// An open safetensors file whose header was checked.
pub(super) struct Reader {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) metadata: Metadata,
    pub(super) data_start: u64,
}

impl Reader {
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let mut file = File::open(&path).map_err(Error::io("opening", &path))?;
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(Error::io("reading", &path))?;
        let length = u64::from_le_bytes(length);
        let bytes = file.metadata().map_err(Error::io("reading", &path))?.len();
        if length > MAX_HEADER_BYTES.min(bytes.saturating_sub(8)) {
            let what = format!("a header of {length} bytes in a file of {bytes}: not safetensors");
            return Err(Error::checkpoint(&path, what));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(Error::io("reading", &path))?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| Error::checkpoint(&path, format!("header: {error}")))?;
        let data_start = 8 + length;
        if data_start + metadata.data_len() as u64 != bytes {
            let what = format!(
                "{bytes} bytes, but its header describes {}",
                data_start + metadata.data_len() as u64
            );
            return Err(Error::checkpoint(&path, what));
        }
        Ok(Self { file, path, metadata, data_start })
    }

    fn info(&self, entry: &Entry) -> &TensorInfo {
        self.metadata.info(&entry.name).expect("invariant: compared before")
    }

    /// Refuses a manifest that describes other tensors than the file has.
    pub(super) fn compare_records(&self, manifest: &Manifest) -> Result<()> {
        let described = |record: &TensorRecord| {
            self.metadata.info(&record.name).is_some_and(|info| {
                let (begin, end) = info.data_offsets;
                info.shape == record.shape && (end - begin) as u64 == record.bytes
            })
        };
        let wrong = manifest.tensors.iter().find(|record| !described(record));
        let (here, there) = (self.metadata.offset_keys().len(), manifest.tensors.len());
        match wrong {
            Some(record) => Err(Error::checkpoint(
                &self.path,
                format!("tensor {} is not as the manifest describes it", record.name),
            )),
            None if here != there => Err(Error::checkpoint(
                &self.path,
                format!("{here} tensors, but the manifest describes {there}"),
            )),
            None => Ok(()),
        }
    }

    /// Refuses a file that has not exactly the expected tensors.
    fn compare(&self, expected: &[Entry]) -> Result<()> {
        let mut missing = Vec::new();
        let mut shapes = Vec::new();
        for entry in expected {
            match self.metadata.info(&entry.name) {
                None => missing.push(entry.name.clone()),
                Some(info) if info.shape != entry.shape || info.dtype != entry.dtype => {
                    shapes.push(format!(
                        "{} is {:?} {:?} here and {:?} {:?} in the model",
                        entry.name, info.dtype, info.shape, entry.dtype, entry.shape
                    ));
                }
                Some(_) => {}
            }
        }
        let mut unexpected = self.metadata.offset_keys();
        unexpected.retain(|name| expected.iter().all(|entry| entry.name != *name));
        if missing.is_empty() && shapes.is_empty() && unexpected.is_empty() {
            return Ok(());
        }
        let list = |names: &[String]| match names.len() {
            0 => "-".to_owned(),
            few @ 1..=3 => names[..few].join(", "),
            many => format!("{} and {} more", names[..3].join(", "), many - 3),
        };
        let what = format!(
            "another model (the manifest's options say which): missing: {}; unexpected: {}; shape: {}",
            list(&missing),
            list(&unexpected),
            list(&shapes)
        );
        Err(Error::checkpoint(&self.path, what))
    }
}

/// One tensor being read front to back.
struct Tensor {
    name: String,
    dtype: safetensors::Dtype,
    begin: u64,
    at: u64,
    end: u64,
    hash: Sha256,
    raw: Vec<u8>,
    /// The first element that is not finite, and what it is.
    bad: Option<(usize, f32)>,
}

impl Tensor {
    fn new(reader: &Reader, entry: &Entry) -> Self {
        let (begin, end) = reader.info(entry).data_offsets;
        let (begin, end) = (reader.data_start + begin as u64, reader.data_start + end as u64);
        Self {
            name: entry.name.clone(),
            dtype: entry.dtype,
            begin,
            at: begin,
            end,
            hash: Sha256::new(),
            raw: Vec::new(),
            bad: None,
        }
    }

    fn read(&mut self, reader: &mut Reader, elements: usize, values: &mut Vec<f32>) -> Result<()> {
        let bytes = elements * self.dtype.bitsize() / 8;
        self.raw.resize(bytes, 0);
        let read = reader.file.seek(SeekFrom::Start(self.at));
        read.and_then(|_| reader.file.read_exact(&mut self.raw))
            .map_err(Error::io("reading", &reader.path))?;
        let first = (self.at - self.begin) as usize * 8 / self.dtype.bitsize();
        self.at += bytes as u64;
        self.hash.update(&self.raw);
        decode(self.dtype, &self.raw, values);
        let bad = || values.iter().position(|value| !value.is_finite());
        self.bad = self.bad.or_else(|| bad().map(|at| (first + at, values[at])));
        Ok(())
    }

    fn verify(self, reader: &Reader, manifest: &Manifest) -> Result<()> {
        let found = hex(&self.hash.finalize());
        let record = manifest.tensors.iter().find(|record| record.name == self.name);
        match record {
            Some(record) if record.sha256 == found => match self.bad {
                None => Ok(()),
                Some((at, value)) => {
                    let what = format!(
                        "tensor {} has {value} at element {at}: this program writes no such \
                         checkpoint",
                        self.name
                    );
                    Err(Error::checkpoint(&reader.path, what))
                }
            },
            Some(record) => {
                let what = format!(
                    "tensor {}: sha256 {found}, but {} was written: the file is damaged",
                    self.name, record.sha256
                );
                Err(Error::checkpoint(&reader.path, what))
            }
            None => {
                let what = format!("tensor {} is not in the manifest", self.name);
                Err(Error::checkpoint(&reader.path, what))
            }
        }
    }
}

fn decode(dtype: safetensors::Dtype, raw: &[u8], values: &mut Vec<f32>) {
    values.clear();
    let pairs = || raw.as_chunks::<2>().0.iter();
    match dtype {
        safetensors::Dtype::F16 => {
            values.extend(pairs().map(|&pair| half::f16::from_le_bytes(pair).to_f32()));
        }
        safetensors::Dtype::BF16 => {
            values.extend(pairs().map(|&pair| half::bf16::from_le_bytes(pair).to_f32()));
        }
        _ => values.extend(raw.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes))),
    }
}
