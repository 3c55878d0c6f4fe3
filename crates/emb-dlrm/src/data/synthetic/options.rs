//! What synthetic data looks like.

use serde::{Deserialize, Serialize};

use crate::data::{Error, Result};

/// Where the sample indices of fresh evaluation rows begin.
pub const EVALUATION_START: u64 = 1 << 40;

/// How many ids a feature has in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bag {
    /// Always this many.
    Fixed(u32),
    /// A random number with this mean, geometric from 0: empty bags and long ones occur.
    Geometric(f64),
}

/// One sparse feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Feature {
    /// Name, unique within a list.
    pub name: String,
    /// Table; features that share one draw from the same ids, with the same effects on labels.
    pub table: String,
    /// Rows for ids; the table has one more, at the end, for missing values.
    pub rows: u64,
    /// Exponent of the Zipf law of ids: 0 is uniform.
    pub exponent: f64,
    /// Ids in a bag.
    pub bag: Bag,
    /// Probability that the feature is missing: one id, `rows`.
    pub missing: f64,
    /// Give every id a weight, uniform from 0.5 to 1.5. With one such feature the batch has
    /// weights, 1 for the ids of the others.
    pub weighted: bool,
}

impl Default for Feature {
    fn default() -> Self {
        Self::new("", 1)
    }
}

impl Feature {
    /// A feature with a table of its own name, one id a sample, exponent 1.05 and 2 % missing.
    pub fn new(name: &str, rows: u64) -> Self {
        Self {
            name: name.to_owned(),
            table: name.to_owned(),
            rows,
            exponent: 1.05,
            bag: Bag::Fixed(1),
            missing: 0.02,
            weighted: false,
        }
    }

    /// Rows of the table, the reserved row of missing values included.
    pub fn table_rows(&self) -> u64 {
        self.rows + 1
    }
}

/// Choices for all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Seed of the samples and of the teacher.
    pub seed: u64,
    /// Index of the first sample.
    pub first: u64,
    /// Samples in an epoch; without end if `None`.
    pub rows: Option<u64>,
    /// Share of positive labels.
    pub base_rate: f64,
    /// Standard deviation of the teacher's logit: 0 makes labels random.
    pub signal: f64,
    /// Probability that a dense value is missing (0).
    pub dense_missing: f64,
}

impl Default for Options {
    /// A quarter of the labels positive, teacher AUC about 0.80.
    fn default() -> Self {
        Self { seed: 0, first: 0, rows: None, base_rate: 0.25, signal: 1.33, dense_missing: 0.05 }
    }
}

/// Checks features and options.
///
/// # Errors
/// [`Error::Option`] with name, value and valid range; [`Error::Column`] for features that
/// contradict each other.
pub(super) fn check(features: &[Feature], options: &Options) -> Result<()> {
    const PROBABILITY: &str = "at least 0 and below 1";
    let Options { first, base_rate, signal, dense_missing, .. } = *options;
    require("first", first, first < 1 << 62, "below 2^62")?;
    require("base-rate", base_rate, base_rate > 0.0 && base_rate < 1.0, "above 0 and below 1")?;
    require("signal", signal, (0.0..=20.0).contains(&signal), "from 0 to 20")?;
    require("dense-missing", dense_missing, (0.0..1.0).contains(&dense_missing), PROBABILITY)?;
    for (position, feature) in features.iter().enumerate() {
        let Feature { ref name, rows, exponent, missing, .. } = *feature;
        let of = |option: &str| format!("{option} of feature {name:?}");
        let (valid, range) = ((1..1 << 53).contains(&rows), "from 1 to 2^53 - 1");
        require(&of("rows"), rows, valid, range)?;
        require(&of("exponent"), exponent, (0.0..=20.0).contains(&exponent), "from 0 to 20")?;
        require(&of("missing"), missing, (0.0..1.0).contains(&missing), PROBABILITY)?;
        match feature.bag {
            Bag::Fixed(ids) => {
                require(&of("bag"), ids, (1..=10_000).contains(&ids), "from 1 to 10000")?;
            }
            Bag::Geometric(mean) => {
                let (valid, range) = (mean > 0.0 && mean <= 10_000.0, "above 0, at most 10000");
                require(&of("bag"), mean, valid, range)?;
            }
        }
        for other in &features[..position] {
            let what = if other.name == *name {
                "two features of this name".to_owned()
            } else if other.table == feature.table && other.rows != rows {
                format!("table {:?} has {rows} rows here, {} elsewhere", other.table, other.rows)
            } else {
                continue;
            };
            return Err(Error::Column { feature: name.clone(), what });
        }
    }
    Ok(())
}

fn require(
    option: &str,
    value: impl std::fmt::Display,
    holds: bool,
    valid: &'static str,
) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::Option { option: option.to_owned(), value: value.to_string(), valid })
}
