//! What readers must do with good, bad and hostile files.

mod feeding;
mod hostile;
mod ids;
mod inspection;
mod real;
mod rows;
mod storage;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// A folder of its own for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("emb-data-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A row with this label, integers `first, first + 1, ..` and ids `first * 100 + column`.
fn row(label: &str, first: u32) -> String {
    let mut fields = vec![label.to_owned()];
    fields.extend((0..DENSE as u32).map(|j| (first + j).to_string()));
    fields.extend((0..SPARSE as u32).map(|j| format!("{:08x}", first * 100 + j)));
    fields.join("\t")
}

/// `row` with one field replaced; field 0 is the label.
fn row_with(field: usize, text: &str) -> String {
    let row = row("1", 7);
    let mut fields: Vec<&str> = row.split('\t').collect();
    fields[field] = text;
    fields.join("\t")
}

/// `rows` good rows, each with its line end.
fn good_rows(rows: u32) -> String {
    (0..rows).map(|i| row(if i % 3 == 0 { "1" } else { "0" }, i) + "\n").collect()
}

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fn zstd(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    zstd::encode_all(bytes.as_ref(), 1).expect("writing to memory")
}

/// One feature for each id column, tables `t1` to `t26`.
fn columns(rows: u64) -> Vec<SparseColumn> {
    (0..SPARSE)
        .map(|column| SparseColumn {
            feature: format!("C{}", column + 1),
            column,
            table: format!("t{}", column + 1),
            rows,
        })
        .collect()
}

fn open(paths: &[impl AsRef<Path>], options: CriteoOptions) -> Result<Criteo> {
    Criteo::open(paths, columns(1 << 33), options)
}

/// Everything a source gives, batch by batch.
#[derive(Debug, Default, PartialEq)]
struct All {
    dense: Vec<f32>,
    labels: Vec<f32>,
    /// `[rows][features]`.
    ids: Vec<Vec<i64>>,
}

fn read_all(source: &mut dyn Source, limit: usize) -> Result<All> {
    let mut all = All::default();
    let mut batch = Batch::default();
    loop {
        let rows = source.next(limit, &mut batch)?;
        assert_eq!((rows, batch.dense.len()), (batch.rows, rows * DENSE));
        if rows == 0 {
            return Ok(all);
        }
        all.dense.extend(&batch.dense);
        all.labels.extend(&batch.labels);
        let features = batch.sparse.names().len();
        for sample in 0..rows {
            let ids = (0..features).flat_map(|f| batch.sparse.bag(f, sample)).copied();
            all.ids.push(ids.collect());
        }
    }
}

/// Reads one file whole, in batches of 3.
fn read_file(path: &Path, options: CriteoOptions) -> Result<All> {
    read_all(&mut open(&[path], options)?, 3)
}

/// Writes `text` to a file and reads it back whole.
fn read_text(text: impl AsRef<[u8]>, options: CriteoOptions) -> Result<All> {
    let folder = Folder::new();
    read_file(&folder.write("day.txt", text), options)
}

/// The message of the error that reading `text` must end in.
fn message(text: impl AsRef<[u8]>, options: CriteoOptions) -> String {
    read_text(text, options).expect_err("this text is bad").to_string()
}

fn skipping() -> CriteoOptions {
    CriteoOptions { bad_rows: BadRowPolicy::Skip, ..CriteoOptions::default() }
}
