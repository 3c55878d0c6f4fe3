//! A data file as a stream of plain bytes, whatever its compression.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{Error, Result};

/// Bytes read from the operating system at once.
const READ_BYTES: usize = 256 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An open data file. The content decides on the compression; a suffix that promises one the
/// content has not is refused.
///
/// Memory is bounded whatever a stream expands to: a gzip window is 32 KiB, a zstd window over
/// 128 MiB is refused by the decoder.
pub(crate) struct Stream {
    path: PathBuf,
    decoder: Decoder,
}

enum Decoder {
    Plain(Counted),
    Gzip(Box<MultiGzDecoder<Counted>>),
    Zstd(Box<zstd::Decoder<'static, Counted>>),
}

/// A buffered file that counts the bytes its reader has consumed.
struct Counted {
    file: BufReader<File>,
    consumed: u64,
}

impl Stream {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let mut file = Counted { file: BufReader::with_capacity(READ_BYTES, file), consumed: 0 };
        let start = file.fill_buf().map_err(failed)?;
        if start.is_empty() {
            return Err(Error::Empty { path: path.to_owned(), skipped: 0, first: None });
        }
        let decoder = if start.starts_with(&GZIP_MAGIC) {
            Decoder::Gzip(Box::new(MultiGzDecoder::new(file)))
        } else if start.starts_with(&ZSTD_MAGIC) {
            Decoder::Zstd(Box::new(zstd::Decoder::with_buffer(file).map_err(failed)?))
        } else {
            if let Some(expected) = promised(path) {
                let found = start[..start.len().min(4)].to_vec();
                return Err(Error::Magic { path: path.to_owned(), expected, found });
            }
            Decoder::Plain(file)
        };
        Ok(Self { path: path.to_owned(), decoder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `gzip` or `zstd`, or `None` for a plain file.
    pub(crate) fn compression(&self) -> Option<&'static str> {
        match self.decoder {
            Decoder::Plain(_) => None,
            Decoder::Gzip(_) => Some("gzip"),
            Decoder::Zstd(_) => Some("zstd"),
        }
    }

    /// Reads plain bytes; `rows` is for the error message.
    pub(crate) fn read(&mut self, into: &mut [u8], rows: u64) -> Result<usize> {
        loop {
            let read = match &mut self.decoder {
                Decoder::Plain(file) => file.read(into),
                Decoder::Gzip(decoder) => decoder.read(into),
                Decoder::Zstd(decoder) => decoder.read(into),
            };
            match read {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error, rows)),
            }
        }
    }

    /// Bytes of the stored file consumed so far.
    fn consumed(&self) -> u64 {
        match &self.decoder {
            Decoder::Plain(file) => file.consumed,
            Decoder::Gzip(decoder) => decoder.get_ref().consumed,
            Decoder::Zstd(decoder) => decoder.get_ref().consumed,
        }
    }

    /// Tells a fault of the disk from one of the compressed stream.
    fn explain(&self, source: io::Error, rows: u64) -> Error {
        let (path, offset) = (self.path.clone(), self.consumed());
        match self.compression() {
            Some(compression) if source.raw_os_error().is_none() => {
                if source.kind() == io::ErrorKind::UnexpectedEof {
                    Error::Truncated { path, compression, offset, rows }
                } else {
                    Error::Corrupt { path, compression, offset, rows, source }
                }
            }
            _ => Error::Io { path, source },
        }
    }
}

/// The compression that a suffix promises.
fn promised(path: &Path) -> Option<&'static str> {
    let suffix = path.extension()?.to_str()?.to_ascii_lowercase();
    match suffix.as_str() {
        "gz" | "gzip" => Some("gzip"),
        "zst" | "zstd" => Some("zstd"),
        _ => None,
    }
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(into)?;
        self.consumed += bytes as u64;
        Ok(bytes)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
        self.file.consume(bytes);
    }
}
