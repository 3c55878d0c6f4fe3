//! Criteo files: tab-separated rows of a label, 13 integers and 26 hexadecimal ids.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::batch::Bags;
use super::row::Row;
use super::rows::{Rows, Rules};
use super::{
    BadRowPolicy, BadRows, Batch, Error, IdPolicy, Labels, Result, Source, SourceInfo,
    SparseColumn, check_columns, files,
};

/// Most samples that memory is set aside for before they are read.
const RESERVED_ROWS: usize = 1 << 16;
const LOGS: usize = 1 << 12;

/// How Criteo files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CriteoOptions {
    /// What to do with ids that are not below the rows of their table.
    pub ids: IdPolicy,
    /// Whether rows have a label.
    pub labels: Labels,
    /// Accept labels from 0 to 1 rather than 0 and 1 only.
    pub soft_labels: bool,
    /// What to do with rows that cannot be parsed.
    pub bad_rows: BadRowPolicy,
}

/// Reads Criteo files, plain, gzip or zstd, one after the other, a batch at a time.
///
/// Integers become `ln(1 + max(x, 0))`; missing ones count as 0. An id becomes a row as
/// [`SparseColumn::row`] says; every bag has one id.
pub struct Criteo {
    files: Vec<PathBuf>,
    columns: Vec<SparseColumn>,
    names: Vec<String>,
    options: CriteoOptions,
    rules: Rules,
    next_file: usize,
    current: Option<Rows>,
    buffer: Vec<u8>,
    bags: Vec<Bags>,
    row: Row,
    /// `ln(1 + x)` of small `x`.
    logs: Vec<f32>,
    failed: bool,
}

impl std::fmt::Debug for Criteo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Criteo")
            .field("files", &self.files)
            .field("columns", &self.columns)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Criteo {
    /// Resolves paths and patterns ([`files::expand`]) and looks into every file, so that a
    /// missing, empty or misnamed one is refused before the first batch.
    ///
    /// # Errors
    /// Files that cannot be found or begun, columns that contradict each other.
    pub fn open<P: AsRef<Path>>(
        paths: &[P],
        columns: Vec<SparseColumn>,
        options: CriteoOptions,
    ) -> Result<Self> {
        check_columns(&columns)?;
        let files = files::expand(paths)?;
        let mut buffer = Vec::new();
        for path in &files {
            let mut rows = Rows::open(path, buffer)?;
            rows.check_not_empty()?;
            buffer = rows.into_buffer();
        }
        let names = columns.iter().map(|column| column.feature.clone()).collect();
        let bags = vec![Bags::default(); columns.len()];
        Ok(Self {
            files,
            columns,
            names,
            options,
            rules: Self::rules(options),
            next_file: 0,
            current: None,
            buffer,
            bags,
            row: Row::default(),
            logs: (0..LOGS).map(|x| log1p(x as i32)).collect(),
            failed: false,
        })
    }

    fn rules(options: CriteoOptions) -> Rules {
        Rules::new(options.labels, options.soft_labels, options.bad_rows)
    }

    /// Reads the next good row of any file into `self.row`.
    #[inline]
    fn next_row(&mut self) -> Result<bool> {
        loop {
            if let Some(rows) = &mut self.current {
                if rows.next_row(&mut self.rules, &mut self.row)? {
                    return Ok(true);
                }
                if let Some(done) = self.current.take() {
                    self.buffer = done.into_buffer();
                }
            }
            let Some(path) = self.files.get(self.next_file) else { return Ok(false) };
            self.current = Some(Rows::open(path, std::mem::take(&mut self.buffer))?);
            self.next_file += 1;
        }
    }

    fn fill(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        batch.dense.clear();
        batch.labels.clear();
        for bags in &mut self.bags {
            bags.clear();
            bags.values.reserve(limit.min(RESERVED_ROWS));
        }
        let mut rows = 0;
        while rows < limit && self.next_row()? {
            self.push_row(batch)?;
            rows += 1;
        }
        for bags in &mut self.bags {
            bags.lengths.resize(rows, 1);
        }
        batch.refill(rows, &self.names, &self.bags, false)?;
        Ok(rows)
    }

    #[inline]
    fn push_row(&mut self, batch: &mut Batch) -> Result<()> {
        let row = &self.row;
        if self.rules.labelled() {
            batch.labels.push(row.label);
        }
        batch.dense.extend(row.integers.iter().map(|integer| {
            let x = integer.unwrap_or(0).max(0);
            self.logs.get(x as usize).copied().unwrap_or_else(|| log1p(x))
        }));
        for (column, bags) in self.columns.iter().zip(&mut self.bags) {
            let id = row.ids[column.column];
            let Some(row) = column.row(id, self.options.ids) else {
                return Err(self.out_of_range(column, id));
            };
            bags.values.push(row);
        }
        Ok(())
    }

    #[cold]
    fn out_of_range(&self, column: &SparseColumn, id: Option<u32>) -> Error {
        Error::IdOutOfRange {
            path: self.files[self.next_file - 1].clone(),
            line: self.current.as_ref().map_or(0, Rows::line),
            column: super::Column::Id(column.column).to_string(),
            table: column.table.clone(),
            id: id.map_or(0, u64::from),
            rows: column.rows,
        }
    }
}

impl Source for Criteo {
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        super::source::check_limit(limit)?;
        if self.failed {
            return Err(Error::Failed);
        }
        let filled = self.fill(limit, batch);
        if filled.is_err() {
            self.failed = true;
            batch.clear();
        }
        filled
    }

    fn restart_at(&mut self, row: u64) -> Result<()> {
        if let Some(rows) = self.current.take() {
            self.buffer = rows.into_buffer();
        }
        self.next_file = 0;
        self.rules = Self::rules(self.options);
        self.failed = true;
        for _ in 0..row {
            if !self.next_row()? {
                break;
            }
        }
        self.failed = false;
        Ok(())
    }

    fn describe(&self) -> SourceInfo {
        SourceInfo { kind: "criteo", files: self.files.clone(), rows: None }
    }

    fn skipped(&self) -> BadRows {
        self.rules.skipped
    }
}

/// `ln(1 + x)` of a count, rounded once to `f32`.
fn log1p(x: i32) -> f32 {
    f64::from(x).ln_1p() as f32
}
