//! An update in two phases, for owners that hold some columns of a row.
//!
//! A row-wise rule needs one number of the *whole* row. Each owner of a column cut sums its
//! gradients and measures them ([`Cpu::row_gradients`]), the owners add their statistics in column
//! order, and each applies the rule with the total ([`Cpu::apply`]).

use super::Cpu;
use super::apply::{Touched, apply, statistics};
use super::ids::check_and_touch;
use super::parallel::split;
use super::shared::SharedMut;
use super::sum::{Run, sum_rows};
use super::table::CpuTables;
use super::update::check;
use crate::rule_checks::{check_rules, refuse_whole_rows};
use crate::rules::Rules;
use crate::{FeatureMap, Gradients, JaggedView, Result, RowGradients, TableSpec};
use emb_optim::Rule;

impl Cpu {
    /// Phase one: sums the gradients of every touched row and measures them with the table's rule.
    /// Weights and state do not change.
    ///
    /// # Errors
    /// As [`Backend::scatter_update`](crate::Backend::scatter_update), but column cuts are
    /// welcome; a rule that needs all columns at once is refused where they are not here.
    pub fn row_gradients(
        &mut self,
        tables: &mut CpuTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[Rule],
        out: &mut RowGradients,
    ) -> Result<()> {
        let Self { team, instructions, update: scratch, .. } = self;
        let (threads, isa) = (team.threads(), *instructions);
        team.run(|| {
            check("row_gradients", tables, map, batch, gradients, rules)?;
            refuse_whole_rows(tables.specs(), rules)?;
            check_and_touch(threads, tables, map, batch, 0..map.features().len())?;
            scratch.keys.build(threads, tables, map, batch, gradients)?;
            let count = tables.tables().len();
            let shared = SharedMut::new(out.reset(count));
            split(threads, count, &|t: usize| {
                // SAFETY: every part takes its own table.
                let out = unsafe { &mut shared.part(t, 1)[0] };
                let keys = &scratch.keys.tables()[t];
                let table = &tables.tables()[t];
                let run = Run {
                    table,
                    keys,
                    upstream: keys.upstream(table.dim, gradients),
                    max_gradient: rules.facts(t).max_gradient,
                    begin: 0,
                    end: keys.keys.len(),
                };
                out.dim = table.dim;
                out.rows.clear();
                out.rows.resize(keys.distinct(), 0);
                out.sums.resize(out.rows.len() * table.dim, 0.0);
                sum_rows(isa, run, &mut out.rows, &mut out.sums);
                out.buffer.resize(table.dim, 0.0);
                out.statistics.clear();
                out.statistics.resize(out.rows.len(), 0.0);
                let touched =
                    Touched { table, rows: &out.rows, sums: &out.sums, totals: None, step: 0 };
                // SAFETY: ids were checked, and every part reads its own table.
                unsafe {
                    statistics(&rules[t], touched, &mut out.buffer, &mut out.statistics);
                };
            });
            Ok(())
        })
    }

    /// Phase two: applies the rules with the statistics of whole rows; `totals[t]` has one for
    /// each of [`RowGradients::rows`].
    ///
    /// # Errors
    /// Totals of another count than rows; gradients of other tables; rules that do not fit.
    pub fn apply(
        &mut self,
        tables: &mut CpuTables,
        gradients: &RowGradients,
        totals: &[&[f64]],
        rules: &[Rule],
        step: u64,
    ) -> Result<()> {
        check_rules("apply", tables.specs(), rules)?;
        refuse_whole_rows(tables.specs(), rules)?;
        gradients.check("apply", tables.specs(), totals)?;
        let (threads, isa) = (self.team.threads(), self.instructions);
        let tables = &*tables;
        self.team.run(|| {
            for (t, table) in tables.tables().iter().enumerate() {
                let part = &gradients.tables()[t];
                // Already done where these tables made the gradients.
                part.rows.iter().for_each(|&row| table.touch(row));
                split(threads, part.rows.len().div_ceil(PART), &|p: usize| {
                    let rows = p * PART..((p + 1) * PART).min(part.rows.len());
                    let touched = Touched {
                        table,
                        rows: &part.rows[rows.clone()],
                        sums: &part.sums[rows.start * table.dim..rows.end * table.dim],
                        totals: Some(&totals[t][rows]),
                        step,
                    };
                    let mut buffer = [0.0; TableSpec::MAX_DIM];
                    // SAFETY: rows are distinct, so no part has a row of another; they were
                    // checked to lie in the table.
                    unsafe { apply(isa, &rules[t], touched, &mut buffer) };
                });
            }
        });
        Ok(())
    }
}

/// Rows that one part of [`Cpu::apply`] updates.
const PART: usize = 4096;
