//! Which gradients belong to which row: packed keys, sorted by row.

use super::Cpu;
use super::parallel::split;
use super::shared::SharedMut;
use super::sort::{bits_for, sort};
use super::table::CpuTables;
use crate::{Error, FeatureMap, Gradients, JaggedView, Mat, Pooling, Result};

/// Most bytes of a feature's upstream gradient that are packed: they stay in the second-level cache
/// while the table's rows are summed.
const PACK_BYTES: usize = 1 << 20;

/// Fewest lookups that share an upstream row, on average, for packing to pay.
const PACK_LOOKUPS: u64 = 4;

/// Scratch of an update, kept between steps.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Features ordered by table; `starts[t]..starts[t + 1]` are those of table `t`.
    features: Vec<usize>,
    starts: Vec<usize>,
    /// One a table; more where another group had more.
    tables: Vec<TableKeys>,
    count: usize,
}

/// The lookups of one table, sorted by row; within a row in feature order, then batch order.
#[derive(Debug, Default)]
pub(crate) struct TableKeys {
    /// `row << low_bits | low`. Without per-sample weights and means, `low` says which upstream
    /// row the lookup receives (`side << sample_bits | sample`): equal keys are equal
    /// contributions, so their order is no matter. Else it is a position in `sources`.
    pub(crate) keys: Vec<u64>,
    spare: Vec<u64>,
    pub(crate) low_bits: u32,
    pub(crate) sample_bits: u32,
    pub(crate) direct: bool,
    pub(crate) sources: Vec<Source>,
    pub(crate) sides: Vec<Side>,
    /// Upstream gradients that are read often, without the columns of other features between: such
    /// columns, a power of two apart, share few sets of a cache and push each other out. Measured
    /// on Emerald Rapids: an eighth less a step at 20 lookups an upstream row, copying included.
    packed: Vec<f32>,
}

/// Where the gradient of one lookup comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// Position in [`TableKeys::sides`].
    pub(crate) side: u32,
    /// What the upstream gradient is multiplied by.
    pub(crate) scale: f32,
    /// Row of the upstream gradient.
    pub(crate) row: u64,
}

/// One feature of a table: where its upstream gradients lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) feature: usize,
    /// First column in the pooled gradient.
    pub(crate) column: usize,
    /// Position among the sequence gradients, for a feature that is not pooled.
    pub(crate) sequence: Option<usize>,
    /// First element in the packed gradients, if it is there.
    packed: Option<usize>,
}

/// The upstream gradients of one table.
#[derive(Clone, Copy)]
pub(crate) struct Upstream<'a> {
    pooled: Mat<&'a [f32]>,
    sequences: &'a [(usize, Mat<&'a [f32]>)],
    packed: &'a [f32],
    sides: &'a [Side],
    dim: usize,
}

impl<'a> Upstream<'a> {
    /// The `width` columns from `column` on of an upstream row.
    #[inline(always)]
    pub(crate) fn row(&self, side: usize, row: usize, column: usize, width: usize) -> &'a [f32] {
        let side = &self.sides[side];
        let (data, start) = match (side.packed, side.sequence) {
            (Some(first), _) => (self.packed, first + row * self.dim),
            (None, None) => (self.pooled.data, row * self.pooled.stride + side.column),
            (None, Some(s)) => (self.sequences[s].1.data, row * self.sequences[s].1.stride),
        };
        &data[start + column..start + column + width]
    }
}

impl Keys {
    /// The keys of the tables of the last batch.
    pub(crate) fn tables(&self) -> &[TableKeys] {
        &self.tables[..self.count]
    }

    /// Builds and sorts the keys of every table; ids were checked.
    pub(crate) fn build(
        &mut self,
        threads: usize,
        tables: &CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Cpu>,
        gradients: &Gradients<'_, '_, Cpu>,
    ) -> Result<()> {
        let count = tables.tables().len();
        self.count = count;
        self.order_features(count, map);
        if self.tables.len() < count {
            self.tables.resize_with(count, TableKeys::default);
        }
        for t in 0..count {
            let features = &self.features[self.starts[t]..self.starts[t + 1]];
            self.tables[t].set_sides(features, map, batch, gradients);
            let table = &tables.tables()[t];
            self.tables[t].choose_bits(&table.name, table.rows, batch)?;
        }
        let shared = SharedMut::new(&mut self.tables);
        split(threads, count, &|t: usize| {
            // SAFETY: every part takes its own table.
            let keys = unsafe { &mut shared.part(t, 1)[0] };
            keys.fill(map, batch);
            keys.pack(tables.tables()[t].dim, batch, gradients.pooled);
            sort(&mut keys.keys, &mut keys.spare, keys.low_bits, bits_for(tables.tables()[t].rows));
        });
        Ok(())
    }

    /// Counting sort of the features by table; map order within a table.
    fn order_features(&mut self, tables: usize, map: &FeatureMap) {
        self.starts.clear();
        self.starts.resize(tables + 1, 0);
        for feature in map.features() {
            self.starts[feature.table + 1] += 1;
        }
        for t in 0..tables {
            self.starts[t + 1] += self.starts[t];
        }
        self.features.clear();
        self.features.resize(map.features().len(), 0);
        for (f, feature) in map.features().iter().enumerate() {
            self.features[self.starts[feature.table]] = f;
            self.starts[feature.table] += 1;
        }
        // Every start has moved to the next table's.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

impl TableKeys {
    fn set_sides(
        &mut self,
        features: &[usize],
        map: &FeatureMap,
        batch: JaggedView<'_, Cpu>,
        gradients: &Gradients<'_, '_, Cpu>,
    ) {
        self.sides.clear();
        self.direct = true;
        for &feature in features {
            let pooling = map.features()[feature].pooling;
            let sequence = match pooling {
                // They are in the order of features.
                Pooling::None => gradients.sequences.binary_search_by_key(&feature, |s| s.0).ok(),
                Pooling::Sum | Pooling::Mean => None,
            };
            self.direct &= pooling == Pooling::Sum && batch.weights.is_none();
            let column = map.column(feature);
            self.sides.push(Side { feature, column, sequence, packed: None });
        }
    }

    fn choose_bits(&mut self, name: &str, rows: u64, batch: JaggedView<'_, Cpu>) -> Result<()> {
        self.sample_bits = bits_for(batch.batch as u64);
        let lookups: u64 = self.sides.iter().map(|side| lookups(batch, side.feature)).sum();
        self.low_bits = if self.direct {
            self.sample_bits + bits_for(self.sides.len() as u64)
        } else {
            bits_for(lookups)
        };
        if bits_for(rows) + self.low_bits > u64::BITS {
            return Err(Error::BadTable {
                table: name.to_owned(),
                what: format!("{lookups} lookups of {rows} rows in one step do not fit a sort key"),
            });
        }
        Ok(())
    }

    fn fill(&mut self, map: &FeatureMap, batch: JaggedView<'_, Cpu>) {
        self.keys.clear();
        self.sources.clear();
        for (side, of) in self.sides.iter().enumerate() {
            let offsets = &batch.offsets[of.feature * batch.batch..=(of.feature + 1) * batch.batch];
            let pooling = map.features()[of.feature].pooling;
            for (sample, pair) in offsets.windows(2).enumerate() {
                let bag = pair[0] as usize..pair[1] as usize;
                let ids = &batch.values[bag.clone()];
                if self.direct {
                    let low = (side << self.sample_bits | sample) as u64;
                    self.keys.extend(ids.iter().map(|&id| (id as u64) << self.low_bits | low));
                    continue;
                }
                let weights = batch.weights.map(|weights| &weights[bag.clone()]);
                let total = bag_total(pooling, ids.len(), weights);
                for (k, &id) in ids.iter().enumerate() {
                    self.keys.push((id as u64) << self.low_bits | self.keys.len() as u64);
                    let weight = weights.map_or(1.0, |weights| weights[k]);
                    let (scale, row) = match pooling {
                        Pooling::Sum => (weight, sample as u64),
                        Pooling::Mean => {
                            (if total == 0.0 { 0.0 } else { weight / total }, sample as u64)
                        }
                        Pooling::None => (1.0, (bag.start + k) as u64 - offsets[0]),
                    };
                    self.sources.push(Source { side: side as u32, scale, row });
                }
            }
        }
    }

    /// Packs the columns of pooled features whose rows are read often.
    fn pack(&mut self, dim: usize, batch: JaggedView<'_, Cpu>, pooled: Mat<&[f32]>) {
        self.packed.clear();
        if pooled.stride == dim || batch.batch * dim * size_of::<f32>() > PACK_BYTES {
            return;
        }
        for side in &mut self.sides {
            let few = lookups(batch, side.feature) < PACK_LOOKUPS * batch.batch as u64;
            if few || side.sequence.is_some() {
                continue;
            }
            side.packed = Some(self.packed.len());
            for sample in 0..batch.batch {
                let start = sample * pooled.stride + side.column;
                self.packed.extend_from_slice(&pooled.data[start..start + dim]);
            }
        }
    }

    /// The gradients of the table's lookups; `gradients` are those that the keys were built for.
    pub(crate) fn upstream<'a>(
        &'a self,
        dim: usize,
        gradients: &'a Gradients<'_, '_, Cpu>,
    ) -> Upstream<'a> {
        Upstream {
            pooled: gradients.pooled,
            sequences: gradients.sequences,
            packed: &self.packed,
            sides: &self.sides,
            dim,
        }
    }

    /// Number of distinct rows.
    pub(crate) fn distinct(&self) -> usize {
        (0..self.keys.len()).filter(|&k| k == 0 || self.row(k) != self.row(k - 1)).count()
    }

    /// The row of key `k`.
    #[inline(always)]
    pub(crate) fn row(&self, k: usize) -> u64 {
        self.keys[k].checked_shr(self.low_bits).unwrap_or(0)
    }
}

fn lookups(batch: JaggedView<'_, Cpu>, feature: usize) -> u64 {
    batch.offsets[(feature + 1) * batch.batch] - batch.offsets[feature * batch.batch]
}

/// What a mean divides by.
fn bag_total(pooling: Pooling, ids: usize, weights: Option<&[f32]>) -> f32 {
    match (pooling, weights) {
        (Pooling::Mean, Some(weights)) => weights.iter().sum(),
        _ => ids as f32,
    }
}
