//! Tables and features of a run, with names resolved to positions.

use super::optimizers::{Optimizers, table_optimizer};
use super::words::{ModelKind, PoolingKind, RoundingMode, WeightType};
use super::{FeatureOptions, InitOptions, Options, SPARSE_COLUMNS, TableOptions, nearest};
use crate::{Error, Result};
use emb_kernels::{Dtype, Feature, Init, Pooling, Rounding, TableSpec};

/// Default buckets of a table.
const DEFAULT_ROWS: u64 = 100_000;

/// One table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// What the backend creates: `buckets + 1` rows, the last for missing values.
    pub spec: TableSpec,
    /// Ids are mapped to `0..buckets`.
    pub buckets: u64,
    /// Learning rate before the schedule.
    pub lr: f64,
}

/// One feature.
#[derive(Clone, Debug, PartialEq)]
pub struct FeaturePlan {
    /// Name.
    pub name: String,
    /// Position of its table.
    pub table: usize,
    /// Column it reads, from 0; synthetic data has one column a feature.
    pub column: usize,
    /// Pooling of its bags.
    pub pooling: Pooling,
    /// Whether its ids carry per-sample weights.
    pub weighted: bool,
    /// Mean ids of a bag; 1 is exactly one.
    pub bag: f64,
}

/// All tables and features.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Tables in order.
    pub tables: Vec<TablePlan>,
    /// Features in order.
    pub features: Vec<FeaturePlan>,
}

impl Tables {
    /// The features as the backend takes them.
    pub fn features(&self) -> Vec<Feature> {
        let feature = |plan: &FeaturePlan| Feature {
            name: plan.name.clone(),
            table: plan.table,
            pooling: plan.pooling,
        };
        self.features.iter().map(feature).collect()
    }

    pub(super) fn from_options(
        options: &Options,
        optimizers: &Optimizers,
        synthetic: bool,
    ) -> Result<Self> {
        let default_tables = || {
            (1..=SPARSE_COLUMNS).map(|c| TableOptions {
                name: format!("C{c}"),
                rows: None,
                dim: None,
                weight_type: None,
                init: None,
                optimizer: None,
                lr: None,
                placement: None,
                replicas: None,
            })
        };
        let described: Vec<TableOptions> = if options.table.is_empty() {
            default_tables().collect()
        } else {
            options.table.clone()
        };
        refuse_twice("table", described.iter().map(|table| &table.name))?;
        refuse_void(options, &described)?;
        let tables = described
            .iter()
            .map(|table| table_plan(options, optimizers, table))
            .collect::<Result<Vec<_>>>()?;
        let described: Vec<FeatureOptions> = if options.feature.is_empty() {
            let plain = |table: &TablePlan| FeatureOptions {
                name: table.spec.name.clone(),
                table: None,
                column: None,
                pooling: None,
                weighted: None,
                bag: None,
            };
            tables.iter().map(plain).collect()
        } else {
            options.feature.clone()
        };
        refuse_twice("feature", described.iter().map(|feature| &feature.name))?;
        let features = described
            .iter()
            .enumerate()
            .map(|(position, feature)| feature_plan(feature, position, &tables, synthetic))
            .collect::<Result<Vec<_>>>()?;
        refuse_unused(&tables, &features)?;
        Ok(Self { tables, features })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !name.contains(char::is_control)
}

/// Refuses two things of one name.
fn refuse_twice<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::Config(format!("two [[{kind}]]s are named {name:?}")));
        }
    }
    Ok(())
}

fn refuse_void(options: &Options, tables: &[TableOptions]) -> Result<()> {
    let own = [
        ("lr", options.lr.is_some(), tables.iter().all(|table| table.lr.is_some())),
        (
            "optimizer",
            options.optimizer.is_some(),
            tables.iter().all(|table| table.optimizer.is_some()),
        ),
    ];
    if let Some((name, ..)) = own.iter().find(|(_, given, all)| *given && *all) {
        return Err(Error::Config(format!("--{name} has no effect: every [[table]] has its own")));
    }
    if options.rows_per_table.is_some() && tables.iter().all(|table| table.rows.is_some()) {
        return Err(Error::Config(
            "--rows-per-table has no effect: every [[table]] has its own rows".into(),
        ));
    }
    let f32_only = |table: &TableOptions| {
        table.weight_type.or(options.weight_type).unwrap_or(WeightType::F32) == WeightType::F32
    };
    if options.rounding.is_some() && tables.iter().all(f32_only) {
        return Err(Error::Config("--rounding has no effect: all weights are f32".into()));
    }
    if options.weight_type.is_some() && tables.iter().all(|table| table.weight_type.is_some()) {
        return Err(Error::Config(
            "--weight-type has no effect: every [[table]] has its own type".into(),
        ));
    }
    Ok(())
}

fn table_plan(
    options: &Options,
    optimizers: &Optimizers,
    table: &TableOptions,
) -> Result<TablePlan> {
    let refuse = |what: String| Err(Error::Config(format!("table {:?}: {what}", table.name)));
    let buckets = table.rows.or(options.rows_per_table).unwrap_or(DEFAULT_ROWS);
    let dim = table.dim.or(options.dim).unwrap_or(super::resolve::DEFAULT_DIM);
    if !is_name(&table.name) || table.name == "dense" {
        return refuse(
            "names are not empty, have no '/' and no control characters, and \"dense\" is taken"
                .into(),
        );
    }
    if buckets == 0 || buckets >= 1 << 40 {
        return refuse(format!("rows is {buckets}, valid: 1 to 2^40 - 1"));
    }
    if dim == 0 || dim > TableSpec::MAX_DIM {
        return refuse(format!("dim is {dim}, valid: 1 to {}", TableSpec::MAX_DIM));
    }
    let lr = table.lr.unwrap_or(optimizers.lr);
    if !(lr >= 0.0 && (lr as f32).is_finite()) {
        return refuse(format!("lr is {lr}, valid: 0 or more, finite"));
    }
    let optimizer = match table.optimizer {
        Some(kind) => table_optimizer(options, kind)?,
        None => optimizers.tables,
    };
    let rows = buckets + 1;
    let mut spec = TableSpec::new(table.name.clone(), rows, dim, optimizer);
    spec.dtype = match table.weight_type.or(options.weight_type).unwrap_or(WeightType::F32) {
        WeightType::F32 => Dtype::F32,
        WeightType::F16 => Dtype::F16,
        WeightType::Bf16 => Dtype::Bf16,
    };
    spec.rounding = match options.rounding.unwrap_or(RoundingMode::Stochastic) {
        RoundingMode::Stochastic => Rounding::Stochastic,
        RoundingMode::Nearest => Rounding::Nearest,
    };
    match table.init {
        None => {}
        Some(InitOptions::Constant(value)) if value.abs() <= largest(spec.dtype) => {
            spec.init = Init::Constant(value);
        }
        Some(InitOptions::Uniform([low, high]))
            if low <= high && low.abs().max(high.abs()) <= largest(spec.dtype) / 2.0 =>
        {
            spec.init = Init::Uniform { low, high };
        }
        Some(InitOptions::Constant(value)) => {
            return refuse(format!("init is {value:e}, valid: up to +-{:e}", largest(spec.dtype)));
        }
        Some(InitOptions::Uniform([low, high])) => {
            let most = largest(spec.dtype) / 2.0;
            return refuse(format!(
                "init is [{low:e}, {high:e}], valid: low <= high, both within +-{most:e}"
            ));
        }
    }
    Ok(TablePlan { spec, buckets, lr })
}

/// Largest finite weight of a type.
fn largest(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F16 => half::f16::MAX.to_f32(),
        Dtype::F32 | Dtype::Bf16 => half::bf16::MAX.to_f32(),
    }
}

fn feature_plan(
    feature: &FeatureOptions,
    position: usize,
    tables: &[TablePlan],
    synthetic: bool,
) -> Result<FeaturePlan> {
    let refuse = |what: String| Err(Error::Config(format!("feature {:?}: {what}", feature.name)));
    let wanted = feature.table.as_deref().unwrap_or(&feature.name);
    let names: Vec<&str> = tables.iter().map(|table| table.spec.name.as_str()).collect();
    let Some(table) = names.iter().position(|name| *name == wanted) else {
        let near = nearest::nearest(wanted, &names)
            .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        return refuse(format!("there is no table {wanted:?}{near}"));
    };
    if synthetic && feature.column.is_some() {
        return refuse(
            "column has no effect: synthetic data has one column for each feature".into(),
        );
    }
    if !synthetic && feature.weighted == Some(true) {
        return refuse("weighted: Criteo files have no per-sample weights".into());
    }
    if !synthetic && feature.bag.is_some() {
        return refuse("bag has no effect: Criteo files have one id in each column".into());
    }
    let column = if synthetic { position } else { criteo_column(feature)? };
    let bag = feature.bag.unwrap_or(1.0);
    if !(bag > 0.0 && bag <= 10_000.0) {
        return refuse(format!("bag is {bag}, valid: above 0, at most 10000"));
    }
    Ok(FeaturePlan {
        name: feature.name.clone(),
        table,
        column,
        pooling: match feature.pooling.unwrap_or(PoolingKind::Sum) {
            PoolingKind::Sum => Pooling::Sum,
            PoolingKind::Mean => Pooling::Mean,
        },
        weighted: feature.weighted.unwrap_or(false),
        bag,
    })
}

fn criteo_column(feature: &FeatureOptions) -> Result<usize> {
    let word = feature.column.as_deref().unwrap_or(&feature.name);
    word.strip_prefix('C')
        .and_then(|number| number.parse::<usize>().ok())
        .filter(|number| (1..=SPARSE_COLUMNS).contains(number) && word == format!("C{number}"))
        .map(|number| number - 1)
        .ok_or_else(|| {
            Error::Config(format!(
                "feature {:?}: {word:?} is no column, valid: C1 to C{SPARSE_COLUMNS} \
                 (give column = \"C1\" where the feature has another name)",
                feature.name
            ))
        })
}

fn refuse_unused(tables: &[TablePlan], features: &[FeaturePlan]) -> Result<()> {
    for (position, table) in tables.iter().enumerate() {
        if features.iter().all(|feature| feature.table != position) {
            let name = &table.spec.name;
            return Err(Error::Config(format!("table {name:?}: no feature looks it up")));
        }
    }
    Ok(())
}

/// Whether two models can't work with these dims.
pub(super) fn check_dims(model: ModelKind, dim: usize, tables: &[TablePlan]) -> Result<()> {
    if model == ModelKind::DlrmDcn {
        return Ok(());
    }
    match tables.iter().find(|table| table.spec.dim != dim) {
        None => Ok(()),
        Some(table) => Err(Error::Config(format!(
            "table {:?} has dim {}, but model dlrm takes dot products of vectors of one dim, \
             {dim}: use one dim or --model dlrm-dcn",
            table.spec.name, table.spec.dim
        ))),
    }
}
