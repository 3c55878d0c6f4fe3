//! Backward and update in one: sort, sum, rule.

use super::Cpu;
use super::apply::apply_run;
use super::detect::Instructions;
use super::ids::{check_and_touch, check_shapes, expect, expect_shape};
use super::keys::Keys;
use super::parallel::split;
use super::sum::Run;
use super::table::CpuTables;
use crate::rule_checks::{check_rules, refuse_column_cuts};
use crate::rules::{Own, Rules};
use crate::{Error, FeatureMap, Gradients, JaggedView, Pooling, Result, TableSpec};
use emb_optim::RowRule;

/// Elements of a block of sums: it stays in the first-level cache until the rule has run.
const BLOCK_ELEMENTS: usize = 2048;

/// Fewest lookups worth a piece of their own.
const MIN_PIECE: usize = 2048;

/// Scratch of [`scatter_update`].
#[derive(Debug, Default)]
pub(crate) struct UpdateScratch {
    pub(crate) keys: Keys,
    pieces: Vec<Piece>,
}

/// Sorted keys of one table between two row boundaries.
#[derive(Clone, Copy, Debug)]
struct Piece {
    table: usize,
    begin: usize,
    end: usize,
}

impl Cpu {
    /// As [`Backend::scatter_update`](crate::Backend::scatter_update) with a rule of one's own: one
    /// a table, with the state that the table's optimizer keeps.
    ///
    /// # Errors
    /// As there. A rule with other state than the table's is refused by the table's name.
    pub fn scatter_update_with<R: RowRule>(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[R],
        step: u64,
    ) -> Result<()> {
        scatter_update(self, tables, map, batch, gradients, &Own(rules), step)
    }
}

pub(crate) fn scatter_update(
    cpu: &mut Cpu,
    tables: &mut CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    gradients: &Gradients<'_, '_, Cpu>,
    rules: &(impl Rules + ?Sized),
    step: u64,
) -> Result<()> {
    let Cpu { team, instructions, update: scratch, .. } = cpu;
    let (threads, isa) = (team.threads(), *instructions);
    team.run(|| update_all(threads, isa, scratch, tables, map, batch, gradients, rules, step))
}

fn update_all(
    threads: usize,
    instructions: Instructions,
    scratch: &mut UpdateScratch,
    tables: &mut CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    gradients: &Gradients<'_, '_, Cpu>,
    rules: &(impl Rules + ?Sized),
    step: u64,
) -> Result<()> {
    check("scatter_update", tables, map, batch, gradients, rules)?;
    refuse_column_cuts(tables.specs(), rules)?;
    check_and_touch(threads, tables, map, batch, 0..map.features().len())?;
    scratch.keys.build(threads, tables, map, batch, gradients)?;
    scratch.cut(threads);
    let UpdateScratch { keys, pieces } = scratch;
    split(threads, pieces.len(), &|p: usize| {
        let piece = pieces[p];
        let (table, keys) = (&tables.tables()[piece.table], &keys.tables()[piece.table]);
        let run = Run {
            table,
            keys,
            upstream: keys.upstream(table.dim, gradients),
            max_gradient: rules.facts(piece.table).max_gradient,
            begin: piece.begin,
            end: piece.end,
        };
        update(instructions, run, rules, piece.table, step);
    });
    Ok(())
}

/// Sums and updates the rows of a run of table `table`.
fn update(
    instructions: Instructions,
    run: Run<'_>,
    rules: &(impl Rules + ?Sized),
    table: usize,
    step: u64,
) {
    let dim = run.table.dim;
    let mut small = [0.0_f32; 2 * BLOCK_ELEMENTS];
    let mut large;
    let memory = if dim <= BLOCK_ELEMENTS {
        &mut small[..]
    } else {
        large = [0.0_f32; 2 * TableSpec::MAX_DIM];
        &mut large[..]
    };
    let (sums, buffer) = memory.split_at_mut((BLOCK_ELEMENTS / dim).max(1) * dim);
    // SAFETY: ids were checked against the table, and a row's keys are all in one piece.
    unsafe { apply_run(instructions, rules, table, run, step, sums, buffer) };
}

impl UpdateScratch {
    /// Cuts the sorted keys of all tables into pieces of about equal work, at row boundaries.
    fn cut(&mut self, threads: usize) {
        self.pieces.clear();
        let total: usize = self.keys.tables().iter().map(|table| table.keys.len()).sum();
        let wanted = if threads == 1 { total } else { total.div_ceil(8 * threads) };
        let wanted = wanted.max(MIN_PIECE);
        for (t, table) in self.keys.tables().iter().enumerate() {
            let count = table.keys.len();
            let mut begin = 0;
            while begin < count {
                let mut end = (begin + wanted).min(count);
                if end < count {
                    let row = table.row(end - 1);
                    let low = table.low_bits;
                    end += table.keys[end..].partition_point(|key| key >> low == row);
                }
                self.pieces.push(Piece { table: t, begin, end });
                begin = end;
            }
        }
    }
}

/// Checks everything about an update but the ids.
pub(crate) fn check(
    operation: &'static str,
    tables: &CpuTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cpu>,
    gradients: &Gradients<'_, '_, Cpu>,
    rules: &(impl Rules + ?Sized),
) -> Result<()> {
    check_shapes(operation, tables, map, batch)?;
    check_rules(operation, tables.specs(), rules)?;
    let pooled = gradients.pooled;
    let shape = (pooled.rows, pooled.cols, pooled.stride, pooled.data.len());
    expect_shape(operation, "pooled gradient", shape, batch.batch, map.width())?;
    let wanted = map.features().iter().enumerate().filter(|(_, f)| f.pooling == Pooling::None);
    let mut given = gradients.sequences.iter();
    for (f, _) in wanted {
        let Some((position, gradient)) = given.next() else {
            return Err(Error::Shape {
                operation,
                what: "sequence gradients: none for feature",
                expected: f,
                got: gradients.sequences.len(),
            });
        };
        expect(operation, "feature of a sequence gradient", f, *position)?;
        let rows = batch.offsets[(f + 1) * batch.batch] - batch.offsets[f * batch.batch];
        let shape = (gradient.rows, gradient.cols, gradient.stride, gradient.data.len());
        expect_shape(operation, "sequence gradient", shape, rows as usize, map.dim(f))?;
    }
    expect(operation, "sequence gradients beyond the features", 0, given.count())
}
