//! Data sources of a configuration: files or generated samples, training or evaluation.

use crate::Result;
use crate::config::{self, Config, Origin};
use crate::data::synthetic::{self, Bag, EVALUATION_START, Synthetic};
use crate::data::{BadRowPolicy, Criteo, CriteoOptions, IdPolicy, Labels, Source, SparseColumn};
use crate::metrics::EvalReport;
use std::path::PathBuf;

/// Fresh rows that a run on synthetic data is evaluated on.
pub const SYNTHETIC_EVAL_ROWS: u64 = 50_000;

/// The training data of a configuration.
///
/// # Errors
/// Files that can't be found, are empty or begin with something else.
pub fn training(config: &Config) -> Result<Box<dyn Source>> {
    match &config.data {
        Origin::Files(paths) => files(config, paths, Labels::Required),
        Origin::Synthetic => Ok(Box::new(generator(config, 0, None)?)),
    }
}

/// The evaluation data of a configuration, if it has any.
///
/// # Errors
/// As [`training`].
pub fn evaluation(config: &Config) -> Result<Option<Box<dyn Source>>> {
    match &config.data {
        Origin::Synthetic => {
            let rows = Some(SYNTHETIC_EVAL_ROWS);
            Ok(Some(Box::new(generator(config, EVALUATION_START, rows)?)))
        }
        Origin::Files(_) if config.eval.is_empty() => Ok(None),
        Origin::Files(_) => files(config, &config.eval, Labels::Required).map(Some),
    }
}

/// What the teacher of synthetic data scores on the evaluation rows: the best any model can.
///
/// # Errors
/// Options that no generator takes.
pub fn teacher(config: &Config) -> Result<EvalReport> {
    let mut source = generator(config, 0, None)?;
    Ok(source.teacher(EVALUATION_START..EVALUATION_START + SYNTHETIC_EVAL_ROWS)?)
}

/// Criteo files with the features of a configuration.
///
/// # Errors
/// As [`training`].
pub fn files(config: &Config, paths: &[PathBuf], labels: Labels) -> Result<Box<dyn Source>> {
    let columns = config.tables.features.iter().map(|feature| {
        let table = &config.tables.tables[feature.table];
        SparseColumn {
            feature: feature.name.clone(),
            column: feature.column,
            table: table.spec.name.clone(),
            rows: table.buckets,
        }
    });
    let options = CriteoOptions {
        ids: match config.id_policy {
            config::IdPolicy::Modulo => IdPolicy::Modulo,
            config::IdPolicy::Error => IdPolicy::Error,
        },
        labels,
        soft_labels: config.soft_labels,
        bad_rows: match config.bad_rows {
            config::BadRows::Error => BadRowPolicy::Error,
            config::BadRows::Skip => BadRowPolicy::Skip,
        },
    };
    Ok(Box::new(Criteo::open(paths, columns.collect(), options)?))
}

fn generator(config: &Config, first: u64, rows: Option<u64>) -> Result<Synthetic> {
    let features = config.tables.features.iter().map(|feature| {
        let table = &config.tables.tables[feature.table];
        synthetic::Feature {
            table: table.spec.name.clone(),
            bag: if feature.bag == 1.0 { Bag::Fixed(1) } else { Bag::Geometric(feature.bag) },
            weighted: feature.weighted,
            ..synthetic::Feature::new(&feature.name, table.buckets)
        }
    });
    let options = synthetic::Options { seed: config.seed, first, rows, ..Default::default() };
    Ok(Synthetic::new(features.collect(), options)?)
}
