//! Random tables, features and jagged batches.

use crate::{Dtype, Feature, FeatureMap, Init, Jagged, Pooling, Rounding, TableSpec};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};

/// Dims that kernels treat differently: below, at and between vector widths, and large.
const DIMS: [usize; 25] = [
    1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 31, 32, 33, 48, 64, 96, 100, 128, 200, 256, 320, 1023, 1024,
    1280, 2048,
];

/// How many cases [`cases`] has.
const COUNT: u64 = 60;

/// One random problem.
#[derive(Clone, Debug)]
pub struct Case {
    /// Of the case and its tables.
    pub seed: u64,
    /// The tables.
    pub specs: Vec<TableSpec>,
    /// The features of the batch.
    pub features: Vec<Feature>,
    /// The batch, with empty bags, duplicates and (in some cases) per-sample weights.
    pub batch: Jagged,
    /// `[batch, width]`.
    pub pooled_gradient: Vec<f32>,
    /// `[values, dim]` of every sequence feature.
    pub sequence_gradients: Vec<(usize, Vec<f32>)>,
    /// Step of the update.
    pub step: u64,
}

impl Case {
    /// The features with their tables and columns.
    ///
    /// # Panics
    /// Never: features are made for these tables.
    pub fn map(&self) -> FeatureMap {
        // Two columns ahead of the first feature stay unused.
        FeatureMap::new(self.features.clone(), &self.specs, 2).expect("features of these tables")
    }
}

/// The cases of the suite: all rules, dtypes and poolings, dims from 1 to 2048.
pub fn cases() -> impl Iterator<Item = Case> {
    (0..COUNT).map(case)
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let optimizer = optimizer(seed, &mut random);
    let tables = 1 + random.below(4) as usize;
    let specs: Vec<TableSpec> = (0..tables)
        .map(|t| {
            let dim = DIMS[(seed as usize + t * 7) % DIMS.len()];
            let rows = [1, 2, 17, 300, 3000][random.below(5) as usize];
            TableSpec {
                dtype: [Dtype::F32, Dtype::F32, Dtype::F16, Dtype::Bf16][random.below(4) as usize],
                rounding: [Rounding::Stochastic, Rounding::Nearest][random.below(2) as usize],
                init: Init::Uniform { low: -1.0, high: 1.0 },
                ..TableSpec::new(format!("table {t}"), rows, dim, optimizer)
            }
        })
        .collect();
    let count = tables + random.below(3) as usize;
    let features: Vec<Feature> = (0..count)
        .map(|f| Feature {
            name: format!("feature {f}"),
            table: if f < tables { f } else { random.below(tables as u64) as usize },
            pooling: [Pooling::Sum, Pooling::Sum, Pooling::Mean, Pooling::None]
                [random.below(4) as usize],
        })
        .collect();
    let batch = batch(seed, &specs, &features, &mut random);
    let mut case = Case {
        seed,
        specs,
        features,
        batch,
        pooled_gradient: Vec::new(),
        sequence_gradients: Vec::new(),
        step: 1 + random.below(5),
    };
    case.pooled_gradient = random.values(case.batch.batch() * case.map().width());
    case.sequence_gradients =
        case.sequences().iter().map(|(f, rows, dim)| (*f, random.values(rows * dim))).collect();
    case
}

fn optimizer(seed: u64, random: &mut Random) -> Optimizer {
    let kind = RuleKind::ALL[seed as usize % RuleKind::ALL.len()];
    let max_gradient = (random.below(4) == 0).then_some(0.25);
    let config = OptimizerConfig { max_gradient, ..OptimizerConfig::new(kind) };
    config.build().expect("options that every rule takes")
}

fn batch(seed: u64, specs: &[TableSpec], features: &[Feature], random: &mut Random) -> Jagged {
    let samples = [0, 1, 5, 64, 300][random.below(5) as usize];
    // Every eleventh case has bags, and all of them are empty.
    let longest = if seed % 11 == 10 { 1 } else { 1 + random.below(8) };
    let (mut lengths, mut values) = (Vec::new(), Vec::new());
    for feature in features {
        for _ in 0..samples {
            let length = random.below(longest);
            lengths.push(length as i64);
            for _ in 0..length {
                let rows = specs[feature.table].rows;
                // Half of the ids from a few rows, so that there are duplicates.
                let end = if random.below(2) == 0 { rows.min(4) } else { rows };
                values.push(random.below(end) as i64);
            }
        }
    }
    let weighted = random.below(3) == 0;
    let weights = weighted.then(|| values.iter().map(|_| 0.25 + random.unit()).collect());
    let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    Jagged::from_lengths(&names, samples, &lengths, values, weights).expect("consistent lengths")
}

/// `SplitMix64`.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }

    /// `n` values in `[-0.5, 0.5)`.
    pub(super) fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit() - 0.5).collect()
    }
}
