//! One pass over the training data of a configuration: [`profile`].

use super::RowCounts;
use super::dense::DenseCount;
use super::shares::shares;
use crate::config::{Config, Origin};
use crate::data::{BadRows, Batch, Distinct, Source};
use crate::{Error, Result, sources};
use emb_shard::{
    Access, Histogram, RowFrequencies, StateBytes, Table, TableSpec, Tables, ValueType,
    WorkloadSpec,
};
use serde::Serialize;

/// Samples read at a time.
const BATCH: usize = 8192;

/// How a profile is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Bytes that the counts of all tables may take together.
    pub memory_bytes: u64,
    /// Most samples to read; `None` for all. Synthetic data has no end.
    pub samples: Option<u64>,
    /// Most rows of a table that are listed as hot, of 8 bytes each when the counts of the table
    /// are done; 0 for no lists.
    pub hot_rows: usize,
}

/// What the data asks of the tables.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Samples read.
    pub samples: u64,
    /// Lines left out because they could not be read.
    pub skipped: BadRows,
    /// Every table, in the order of the configuration.
    pub tables: Vec<TableProfile>,
    /// What planners start from, with the measured histograms and the most frequent rows.
    pub workload: WorkloadSpec,
}

/// What the data asks of one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableProfile {
    /// Name.
    pub table: String,
    /// Rows of the table, that of missing values included.
    pub rows: u64,
    /// Rows that were looked up at least once.
    pub seen: Distinct,
    /// Look-ups of all its features.
    pub lookups: u64,
    /// Mean number of ids in a bag of one of its features.
    pub pooling_factor: f64,
    /// Rows that are listed as hot.
    pub hot: u64,
    /// Part of the look-ups that the most frequent hundredth of the rows seen takes.
    pub top_1_percent: f64,
    /// Part of the look-ups that the most frequent tenth of the rows seen takes.
    pub top_10_percent: f64,
}

/// Reads the training data of `config` once and counts the look-ups of every row; `progress` is
/// told the samples read so far, batch by batch.
///
/// # Errors
/// Data that can't be read, by file and line; no samples; tables that no workload can hold, by
/// name; memory of less than [`RowCounts::LEAST_BYTES`] a table.
pub fn profile(
    config: &Config,
    options: ProfileOptions,
    mut progress: impl FnMut(u64),
) -> Result<Profile> {
    let tables = config.planned_tables()?;
    let mut workload = workload_of(config, &tables)?;
    let mut counts = counts_of(&tables, options.memory_bytes)?;
    let mut source = sources::training(config)?;
    let samples = count(config, source.as_mut(), options.samples, &mut counts, &mut progress)?;
    if samples == 0 {
        return Err(Error::Config("the data has no samples to measure".into()));
    }
    let mut profiles = Vec::with_capacity(counts.len());
    // Each table's counts make room for its list of hot rows.
    for ((table, counts), spec) in
        tables.tables().as_slice().iter().zip(counts).zip(&mut workload.tables)
    {
        let bags = samples * table.features().len() as u64;
        spec.pooling_factor = counts.lookups() as f64 / bags as f64;
        let histogram = counts.histogram();
        spec.hot = (options.hot_rows > 0).then(|| counts.hot(options.hot_rows));
        profiles.push(of_table(table, &counts, spec, histogram.as_ref())?);
        spec.access = histogram.map(Access::Histogram);
    }
    Ok(Profile { samples, skipped: source.skipped(), tables: profiles, workload })
}

fn counts_of(tables: &Tables, memory: u64) -> Result<Vec<RowCounts>> {
    let tables = tables.tables().as_slice();
    let least = RowCounts::LEAST_BYTES * tables.len() as u64;
    if memory < least {
        return Err(Error::Config(format!(
            "--memory is {memory} bytes, valid: at least {least}, {} for each of {} tables",
            RowCounts::LEAST_BYTES,
            tables.len()
        )));
    }
    let wanted: Vec<u64> =
        tables.iter().map(|table| RowCounts::bytes_wanted(table.rows())).collect();
    let shares = shares(&wanted, memory);
    Ok(tables
        .iter()
        .zip(shares)
        .map(|(table, bytes)| RowCounts::new(table.rows(), bytes))
        .collect())
}

/// Feeds every look-up to the counts of its table; returns the samples.
fn count(
    config: &Config,
    source: &mut dyn Source,
    limit: Option<u64>,
    counts: &mut [RowCounts],
    progress: &mut impl FnMut(u64),
) -> Result<u64> {
    let mut batch = Batch::default();
    let mut samples = 0;
    let limit = limit.unwrap_or(u64::MAX);
    while samples < limit {
        let read = source.next((limit - samples).min(BATCH as u64) as usize, &mut batch)?;
        if read == 0 {
            break;
        }
        let bags = batch.sparse.as_ref();
        for (number, feature) in config.tables.features.iter().enumerate() {
            let offsets = &bags.offsets[number * bags.batch..=(number + 1) * bags.batch];
            let span = offsets[0] as usize..offsets[bags.batch] as usize;
            for &row in &bags.values[span] {
                counts[feature.table].add(row as u64);
            }
        }
        samples += read as u64;
        progress(samples);
    }
    Ok(samples)
}

fn of_table(
    table: &Table,
    counts: &RowCounts,
    spec: &TableSpec,
    histogram: Option<&Histogram>,
) -> Result<TableProfile> {
    let (mut top_1_percent, mut top_10_percent) = (0.0, 0.0);
    if let Some(histogram) = histogram {
        let access = Access::Histogram(histogram.clone());
        let frequencies = RowFrequencies::new(&access, table.rows())?;
        top_1_percent = frequencies.share_of_top(histogram.rows().div_ceil(100));
        top_10_percent = frequencies.share_of_top(histogram.rows().div_ceil(10));
    }
    Ok(TableProfile {
        table: table.name().to_owned(),
        rows: table.rows(),
        seen: counts.seen(),
        lookups: counts.lookups(),
        pooling_factor: spec.pooling_factor,
        hot: spec.hot.as_ref().map_or(0, |hot| hot.len() as u64),
        top_1_percent,
        top_10_percent,
    })
}

/// The configuration as a workload, without what is measured.
///
/// # Errors
/// Tables with different types of weights or optimizer state, by name.
pub(crate) fn workload_of(config: &Config, tables: &Tables) -> Result<WorkloadSpec> {
    let name = match &config.data {
        Origin::Synthetic => "synthetic".to_owned(),
        Origin::Files(paths) => paths[0].file_stem().map_or_else(
            || "data".to_owned(),
            |stem| stem.to_string_lossy().trim_end_matches(['*', '?', '_', '.']).to_owned(),
        ),
    };
    let name = if name.is_empty() { "data".to_owned() } else { name };
    let mut spec = WorkloadSpec::new(name, emb_shard::Batch::Global(config.batch_size as u64));
    let (rows, state) = one_kind(config, tables)?;
    (spec.rows, spec.state) = (rows, state);
    let dense = DenseCount::of(config);
    let slots = config.optimizers.dense.optimizer().slots().len();
    (spec.dense, spec.dense_model) = (dense.time(), dense.model(slots));
    if let (Some(wire), Some(_)) = (config.options.wire, &config.ranks) {
        wire.price(&mut spec);
    }
    spec.tables = tables.tables().as_slice().iter().map(table_spec).collect();
    Ok(spec)
}

fn table_spec(table: &Table) -> TableSpec {
    TableSpec {
        pooling: table.pooling(),
        features: (table.features() != [table.name()]).then(|| table.features().to_vec()),
        ..TableSpec::new(table.name(), table.rows(), table.dim())
    }
}

/// Type and optimizer state, which a workload has one of for all tables.
fn one_kind(config: &Config, tables: &Tables) -> Result<(ValueType, StateBytes)> {
    let kind = |number: usize| {
        let dtype = match config.tables.tables[number].spec.dtype {
            emb_kernels::Dtype::F32 => ValueType::F32,
            emb_kernels::Dtype::F16 => ValueType::F16,
            emb_kernels::Dtype::Bf16 => ValueType::Bf16,
        };
        (dtype, tables.tables().as_slice()[number].state())
    };
    let first = kind(0);
    for (number, table) in config.tables.tables.iter().enumerate() {
        let own = kind(number);
        if own != first {
            return Err(Error::Config(format!(
                "table {:?} has {} and table {:?} has {}: a workload has one type of weights and \
                 one optimizer state for all tables",
                table.spec.name,
                in_words(own),
                config.tables.tables[0].spec.name,
                in_words(first)
            )));
        }
    }
    Ok(first)
}

fn in_words((dtype, state): (ValueType, StateBytes)) -> String {
    format!(
        "{dtype:?} weights with {} bytes of state a row and {} a weight",
        state.per_row, state.per_element
    )
}
