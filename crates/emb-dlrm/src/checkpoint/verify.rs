//! Reading a whole checkpoint without a model: is every byte as it was written?

use super::manifest::Manifest;
use super::read::Reader;
use super::write::hex;
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Reads every tensor of a checkpoint and compares shape, size and SHA-256 with the manifest.
///
/// # Errors
/// No complete checkpoint in `dir`; a tensor that differs, by file and name.
pub fn verify(dir: &Path) -> Result<Manifest> {
    let manifest = Manifest::read(dir)?;
    let mut reader = Reader::open(manifest.path(dir))?;
    reader.compare_records(&manifest)?;
    let mut buffer = vec![0; CHUNK];
    for record in &manifest.tensors {
        // Compared before: every record has its tensor.
        let Some(info) = reader.metadata.info(&record.name) else { continue };
        let mut at = reader.data_start + info.data_offsets.0 as u64;
        let mut left = record.bytes as usize;
        let mut hash = Sha256::new();
        while left > 0 {
            let part = &mut buffer[..left.min(CHUNK)];
            let read = reader.file.seek(SeekFrom::Start(at));
            read.and_then(|_| reader.file.read_exact(part))
                .map_err(Error::io("reading", &reader.path))?;
            hash.update(&*part);
            at += part.len() as u64;
            left -= part.len();
        }
        let found = hex(&hash.finalize());
        if found != record.sha256 {
            let what = format!(
                "tensor {}: sha256 {found}, but {} was written: the file is damaged",
                record.name, record.sha256
            );
            return Err(Error::checkpoint(&reader.path, what));
        }
    }
    Ok(manifest)
}
