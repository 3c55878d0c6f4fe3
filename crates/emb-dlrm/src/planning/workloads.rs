//! What a step asks for, from flags and files: [`WorkloadOptions`].

use super::csv_file;
use super::words::word;
use crate::config::{OptimizerKind, WireOptions, json_file, nearest, state_bytes_of, toml_file};
use crate::{Error, Result};
use emb_shard::{Access, Batch, IdType, Preset, ValueType, Workload, WorkloadSpec};
use std::path::{Path, PathBuf};

/// The workload, and what of it a flag says otherwise.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct WorkloadOptions {
    /// Tables and their look-ups: exfm, ctr-256, embark-{dcnv2,t180,t200,t510,t7}, or a .json (as emb profile writes), .toml or .csv file (FILE.csv#NAME: one of several).
    #[arg(long, value_name = "PRESET|FILE", help_heading = "Workload")]
    pub workload: String,
    /// The workload to take from a .csv file of several.
    #[arg(long, value_name = "NAME", help_heading = "Workload")]
    pub workload_name: Option<String>,
    /// Samples of a step, of all ranks together [default: as the workload says]
    #[arg(long, value_name = "B", help_heading = "Workload", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_size: Option<u64>,
    /// Samples of a step, of each rank.
    #[arg(long, value_name = "B", help_heading = "Workload", conflicts_with = "batch_size", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_per_rank: Option<u64>,
    /// Type of stored weights.
    #[arg(long, value_name = "f32|f16|bf16", help_heading = "Workload", value_parser = word::<ValueType>)]
    pub rows: Option<ValueType>,
    /// Type of rows, pooled sums and gradients that travel.
    #[arg(long, value_name = "f32|f16|bf16|int8_rowwise|fp8_e4m3|fp8_e5m2|int4", help_heading = "Workload", value_parser = word::<ValueType>)]
    pub outputs: Option<ValueType>,
    /// The same as emb train takes it: a format both ways, or forward=..,backward=..,sync=..
    #[arg(
        long,
        value_name = "FORMAT|WHAT=FORMAT,..",
        help_heading = "Workload",
        conflicts_with = "outputs"
    )]
    pub wire: Option<WireOptions>,
    /// Type of ids.
    #[arg(long, value_name = "i32|i64", help_heading = "Workload", value_parser = word::<IdType>)]
    pub ids: Option<IdType>,
    /// Update rule of all tables, for the bytes of its state.
    #[arg(
        long,
        value_name = "row-wise-adagrad|adagrad|sgd|adam|row-wise-adam",
        help_heading = "Workload"
    )]
    pub optimizer: Option<OptimizerKind>,
    /// Look-ups of all tables by Zipf's law with this exponent, 0 to 15.
    #[arg(long, value_name = "A", help_heading = "Workload", conflicts_with = "stats")]
    pub zipf: Option<f64>,
    /// Look-ups and hot rows as emb profile measured them, for tables of the same names.
    #[arg(long, value_name = "FILE.json", help_heading = "Workload")]
    pub stats: Option<PathBuf>,
}

impl WorkloadOptions {
    /// Reads the workload and changes what flags say.
    ///
    /// # Errors
    /// By file, line and column: what can't be read. By name: a workload or table that is not
    /// there, with the nearest one; what [`Workload::new`] refuses.
    pub fn load(&self) -> Result<Workload> {
        let mut spec = self.read()?;
        spec.batch = self.batch().unwrap_or(spec.batch);
        spec.rows = self.rows.unwrap_or(spec.rows);
        spec.outputs = self.outputs.unwrap_or(spec.outputs);
        if let Some(wire) = self.wire {
            if wire.says_dense() {
                let what = "--wire dense=.. has no effect: a workload says its dense gradients";
                return Err(Error::Config(what.into()));
            }
            wire.wires(1)?;
            wire.price(&mut spec);
        }
        spec.ids = self.ids.unwrap_or(spec.ids);
        if let Some(kind) = self.optimizer {
            spec.state = state_bytes_of(kind)?;
        }
        if let Some(exponent) = self.zipf {
            spec.access = Access::Zipf { exponent };
            spec.tables.iter_mut().for_each(|table| table.access = None);
        }
        if let Some(path) = &self.stats {
            measured(&mut spec, path)?;
        }
        let refuse = |error| Error::Config(format!("--workload {}: {error}", self.workload));
        Workload::new(spec).map_err(refuse)
    }

    fn batch(&self) -> Option<Batch> {
        let of_rank = self.batch_per_rank.map(Batch::PerRank);
        self.batch_size.map(Batch::Global).or(of_rank)
    }

    /// The published model that is named instead of a file.
    pub fn preset(&self) -> Option<Preset> {
        let named = Preset::named(&self.workload).ok();
        named.filter(|_| !Path::new(&self.workload).is_file())
    }

    fn read(&self) -> Result<WorkloadSpec> {
        if let Some(preset) = self.preset() {
            if let Some(name) = &self.workload_name {
                return Err(Error::Config(format!(
                    "--workload-name {name} has no effect: --workload {} is one workload",
                    self.workload
                )));
            }
            return Ok(preset.spec().clone());
        }
        let (path, fragment) = match self.workload.rsplit_once('#') {
            Some((path, name)) if !Path::new(&self.workload).exists() => (path, Some(name)),
            _ => (self.workload.as_str(), None),
        };
        let file = Path::new(path);
        let extension = file.extension().and_then(|extension| extension.to_str());
        if !file.is_file() && extension.is_none() && fragment.is_none() {
            let known = Preset::names();
            return Err(Error::Config(format!("--workload {}", nearest::explain(path, &known))));
        }
        if !file.is_file() {
            return Err(Error::Config(format!("--workload: there is no file {path}")));
        }
        let chosen = fragment.or(self.workload_name.as_deref());
        if let (Some("json" | "toml"), Some(name)) = (extension, chosen) {
            return Err(Error::Config(format!(
                "--workload {path}: {name:?} has no effect: only a .csv file has several workloads"
            )));
        }
        match extension {
            Some("json") => json_file(file),
            Some("toml") => toml_file(file),
            Some("csv") => self.of_list(file, fragment),
            _ => {
                Err(Error::Config(format!("--workload {path}: must end with .json, .toml or .csv")))
            }
        }
    }

    fn of_list(&self, path: &Path, fragment: Option<&str>) -> Result<WorkloadSpec> {
        let refuse = |what: String| Error::Config(format!("--workload {}: {what}", path.display()));
        let rows = csv_file::read(path)?;
        let mut names: Vec<&str> = Vec::new();
        for row in &rows {
            if !names.contains(&row.workload.as_str()) {
                names.push(&row.workload);
            }
        }
        let name = match (fragment, self.workload_name.as_deref()) {
            (Some(_), Some(_)) => {
                return Err(refuse("#NAME and --workload-name both choose: give one".into()));
            }
            (Some(name), None) | (None, Some(name)) => name.to_owned(),
            (None, None) if names.len() == 1 => names[0].to_owned(),
            (None, None) => {
                return Err(refuse(format!(
                    "has {} workloads, choose by --workload-name: {}",
                    names.len(),
                    names.join(", ")
                )));
            }
        };
        let batch = self.batch().ok_or_else(|| {
            refuse("a .csv file does not say how large a batch is: give --batch-size".into())
        })?;
        WorkloadSpec::from_rows(&name, batch, rows).map_err(|error| refuse(error.to_string()))
    }
}

/// Gives every table the look-ups that were measured for the table of its name.
fn measured(spec: &mut WorkloadSpec, path: &Path) -> Result<()> {
    let stats: WorkloadSpec = json_file(path)?;
    let names: Vec<&str> = stats.tables.iter().map(|table| table.name.as_str()).collect();
    for table in &mut spec.tables {
        let Some(found) = names.iter().position(|name| *name == table.name) else {
            let near = nearest::nearest(&table.name, &names)
                .map_or_else(String::new, |near| format!("; the nearest is {near:?}"));
            return Err(Error::Config(format!(
                "--stats {}: nothing is measured of table {:?}{near}",
                path.display(),
                table.name
            )));
        };
        let access = stats.tables[found].access.clone();
        table.access = Some(access.unwrap_or_else(|| stats.access.clone()));
        table.hot.clone_from(&stats.tables[found].hot);
    }
    Ok(())
}
