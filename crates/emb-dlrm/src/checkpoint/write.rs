//! Saving: stream every tensor to a new file, then switch the manifest to it.

use super::CHUNK;
use super::entry::{Entry, Place, entries};
use super::manifest::{Manifest, Position, TensorRecord, remove_partial, sync_folder};
use super::unfinished::{Unfinished, no_room};
use crate::model::Dlrm;
use crate::{Embeddings, Error, Result, config::Options};
use emb_kernels::{Backend, Dtype};
use safetensors::tensor::{Metadata, TensorInfo};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes that the writer of the file collects before it calls the system.
const WRITER: usize = 1 << 20;

/// Saves a model to `dir`, which is created; an earlier checkpoint there is replaced only once the
/// new one is complete. Where that fails, nothing of the new one is left. `dense_slots` are the names of the dense optimizer's slots.
///
/// With tables over ranks it is rank 0 that saves, while the others call [`lend`] with the same
/// slots; replicas have to be equal before.
///
/// # Errors
/// A weight that is not finite (by tensor and element: such a checkpoint is never written); the
/// disk failed.
pub fn save<B: Backend, E: Embeddings<B>>(
    dir: &Path,
    backend: &mut B,
    model: &mut Dlrm<B, E>,
    dense_slots: &[&str],
    options: &Options,
    at: Position,
) -> Result<Manifest> {
    std::fs::create_dir_all(dir).map_err(Error::io("creating", dir))?;
    let _turn = lock(dir)?;
    // What a killed run left here takes room.
    remove_partial(dir)?;
    let entries = entries(model, dense_slots);
    let header = header(dir, &entries, at)?;
    let name = free_name(dir, at.step);
    let write = || {
        let (mut file, out) = Unfinished::create(dir.join(format!("{name}.partial")))?;
        let out = BufWriter::with_capacity(WRITER, out);
        let mut writer = Writer { out, path: file.path(), bytes: 0 };
        let records = write_all(&mut writer, &header, &entries, backend, model)?;
        let bytes = writer.finish()?;
        file.rename(dir.join(&name))?;
        sync_folder(dir)?;
        let manifest = Manifest::new(at, options.clone(), name, bytes, records);
        manifest.publish(dir)?;
        file.done();
        Ok(manifest)
    };
    let needed = header.len() + entries.iter().map(Entry::bytes).sum::<usize>();
    let manifest = write().map_err(|error| no_room(error, dir, needed as u64))?;
    manifest.settle(dir)?;
    Ok(manifest)
}

/// Bytes of memory through which [`save`] writes, on rank 0 and beside what exchanges of rows take:
/// those of the widest table, whatever its rows.
pub fn buffers<B: Backend, E: Embeddings<B>>(model: &Dlrm<B, E>) -> u64 {
    let of_table = |spec: &emb_kernels::TableSpec| {
        let slots = spec.optimizer.slots().iter();
        let columns = spec.dim + slots.map(|slot| width(slot.extent, spec.dim)).sum::<usize>();
        (CHUNK / spec.dim).max(1).min(spec.rows as usize) * columns
    };
    let tables = model.embeddings.specs().iter().map(of_table).max().unwrap_or(0);
    let scalars = tables.max(CHUNK.min(model.dense.total()));
    // The numbers as they are, once more as bytes of the file, and the writer's own memory.
    (2 * scalars * size_of::<f32>() + WRITER) as u64
}

/// Takes part in a [`save`] of rank 0, as one of the other ranks.
///
/// # Errors
/// A peer that fails, rank 0 among them.
pub fn lend<B: Backend, E: Embeddings<B>>(
    backend: &mut B,
    model: &mut Dlrm<B, E>,
    dense_slots: &[&str],
) -> Result<()> {
    for entry in entries(model, dense_slots) {
        match entry.place {
            Place::Dense(_) | Place::DenseSlot(_) => {}
            Place::TableWeight { table } => {
                table_chunks(backend, model, table, None, |_, _| Ok(()))?;
            }
            Place::TableSlot { table, slot } => {
                table_chunks(backend, model, table, Some(slot), |_, _| Ok(()))?;
            }
        }
    }
    Ok(())
}

/// Waits until no other run saves to the folder, and keeps others waiting while the result lives.
fn lock(dir: &Path) -> Result<File> {
    let folder = File::open(dir).map_err(Error::io("opening", dir))?;
    match folder.lock() {
        // Where folders can't be locked, runs that save to one have to take turns by themselves.
        Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
            Err(Error::io("locking", dir)(error))
        }
        _ => Ok(folder),
    }
}

/// A name that no file of the folder has: a save over step N must not write into N's file.
fn free_name(dir: &Path, step: u64) -> String {
    let plain = format!("model-{step}.safetensors");
    if !dir.join(&plain).exists() {
        return plain;
    }
    (1..=u64::MAX)
        .map(|again| format!("model-{step}-{again}.safetensors"))
        .find(|name| !dir.join(name).exists())
        .expect("invariant: some number is free")
}

fn header(dir: &Path, entries: &[Entry], at: Position) -> Result<Vec<u8>> {
    let mut start = 0;
    let tensors = entries.iter().map(|entry| {
        let end = start + entry.bytes();
        let info = TensorInfo {
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            data_offsets: (start, end),
        };
        start = end;
        (entry.name.clone(), info)
    });
    let about = HashMap::from([
        ("format".to_owned(), "emb-checkpoint".to_owned()),
        ("step".to_owned(), at.step.to_string()),
        ("samples".to_owned(), at.samples.to_string()),
    ]);
    let metadata = Metadata::new(Some(about), tensors.collect())
        .map_err(|error| Error::checkpoint(dir, format!("header: {error}")))?;
    // By way of a value, whose keys are sorted: equal models are equal files.
    let mut json = serde_json::to_value(&metadata)
        .and_then(|value| serde_json::to_vec(&value))
        .map_err(|error| Error::checkpoint(dir, format!("header: {error}")))?;
    // Data begins at a multiple of 8, as the format asks.
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.extend_from_slice(&json);
    Ok(header)
}

fn write_all<B: Backend, E: Embeddings<B>>(
    writer: &mut Writer<'_>,
    header: &[u8],
    entries: &[Entry],
    backend: &mut B,
    model: &mut Dlrm<B, E>,
) -> Result<Vec<TensorRecord>> {
    writer.write(header)?;
    let mut records = Vec::with_capacity(entries.len());
    let mut encoded = Vec::new();
    for entry in entries {
        let mut hash = Sha256::new();
        let begin = writer.bytes;
        for_each_chunk(backend, model, entry, |first, chunk| {
            refuse_non_finite(writer.path, entry, first, chunk)?;
            encode(entry.dtype, chunk, &mut encoded);
            hash.update(&encoded);
            writer.write(&encoded)
        })?;
        records.push(TensorRecord {
            name: entry.name.clone(),
            shape: entry.shape.clone(),
            bytes: writer.bytes - begin,
            sha256: hex(&hash.finalize()),
        });
    }
    Ok(records)
}

/// Calls `f` with the position of the first element and the elements of each chunk, in order.
fn for_each_chunk<B: Backend, E: Embeddings<B>>(
    backend: &mut B,
    model: &mut Dlrm<B, E>,
    entry: &Entry,
    mut f: impl FnMut(usize, &[f32]) -> Result<()>,
) -> Result<()> {
    let (flat, range) = match &entry.place {
        Place::Dense(range) => (&model.dense.weights, range.clone()),
        Place::DenseSlot(range) => (&model.dense.state, range.clone()),
        Place::TableWeight { table } => return table_chunks(backend, model, *table, None, f),
        Place::TableSlot { table, slot } => {
            return table_chunks(backend, model, *table, Some(*slot), f);
        }
    };
    let mut host = vec![0.0; CHUNK.min(range.len())];
    let mut at = range.start;
    while at < range.end {
        let len = CHUNK.min(range.end - at);
        backend.download(B::view(flat, at..at + len), &mut host[..len])?;
        f(at - range.start, &host[..len])?;
        at += len;
    }
    Ok(())
}

fn table_chunks<B: Backend, E: Embeddings<B>>(
    backend: &mut B,
    model: &mut Dlrm<B, E>,
    table: usize,
    slot: Option<usize>,
    mut f: impl FnMut(usize, &[f32]) -> Result<()>,
) -> Result<()> {
    let spec = &model.embeddings.specs()[table];
    let (rows, dim, optimizer) = (spec.rows as usize, spec.dim, spec.optimizer);
    let slots = optimizer.slots();
    let mut state: Vec<Vec<f32>> = vec![Vec::new(); slots.len()];
    let mut weights = Vec::new();
    let step = (CHUNK / dim).max(1);
    for first in (0..rows).step_by(step) {
        let n = step.min(rows - first);
        weights.resize(n * dim, 0.0);
        for (values, slot) in state.iter_mut().zip(slots) {
            values.resize(n * width(slot.extent, dim), 0.0);
        }
        model.embeddings.read_rows(backend, table, first as u64, &mut weights, &mut state)?;
        match slot {
            None => f(first * dim, &weights)?,
            Some(slot) => f(first * width(slots[slot].extent, dim), &state[slot])?,
        }
    }
    Ok(())
}

/// Scalars that a slot keeps for a row.
pub(super) fn width(extent: emb_optim::Extent, dim: usize) -> usize {
    match extent {
        emb_optim::Extent::Row => 1,
        emb_optim::Extent::Element => dim,
    }
}

fn refuse_non_finite(path: &Path, entry: &Entry, first: usize, chunk: &[f32]) -> Result<()> {
    let Some(at) = chunk.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let what = format!("not written: {} has {} at element {}", entry.name, chunk[at], first + at);
    Err(Error::checkpoint(path, what))
}

fn encode(dtype: safetensors::Dtype, values: &[f32], out: &mut Vec<u8>) {
    let dtype = match dtype {
        safetensors::Dtype::F16 => Dtype::F16,
        safetensors::Dtype::BF16 => Dtype::Bf16,
        _ => Dtype::F32,
    };
    out.clear();
    match dtype {
        Dtype::F32 => out.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        Dtype::F16 => {
            out.extend(values.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()));
        }
        Dtype::Bf16 => {
            out.extend(values.iter().flat_map(|&value| half::bf16::from_f32(value).to_le_bytes()));
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("invariant: writing to a String cannot fail");
        text
    })
}

struct Writer<'a> {
    out: BufWriter<File>,
    path: &'a Path,
    bytes: u64,
}

impl Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Error::io("writing", self.path))
    }

    fn finish(self) -> Result<u64> {
        let file = self
            .out
            .into_inner()
            .map_err(|error| Error::io("writing", self.path)(error.into_error()))?;
        file.sync_all().map_err(Error::io("flushing", self.path))?;
        Ok(self.bytes)
    }
}
