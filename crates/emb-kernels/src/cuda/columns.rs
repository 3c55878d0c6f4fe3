//! An update in two phases, see `cpu/columns.rs`: sums and statistics to the host, then the rules
//! with the statistics of whole rows.

use super::keys::{Step, Tables, covering, stride};
use super::records::{Launch, Run};
use super::rules::{Described, lanes};
use super::update::{self, TouchedRows, check, launch_rules, upload};
use super::{Cuda, CudaTables};
use crate::row_gradients::TableGradients;
use crate::rule_checks::{check_rules, refuse_whole_rows};
use crate::{FeatureMap, Gradients, JaggedView, Result, RowGradients, TableSpec};
use emb_cuda::{Kept, Plain, Shape, View};
use emb_optim::Rule;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    first_runs: Kept<u32>,
    runs: Kept<Run>,
    count: Kept<u32>,
    offsets: Kept<u64>,
    sums: Kept<f32>,
    statistics: Kept<f64>,
    layout: Layout,
    runs_host: Vec<Run>,
}

/// Where the sums of each table's rows lie: tables one after the other, each at 16 bytes.
#[derive(Debug, Default)]
struct Layout {
    /// First run of each table, and the number of all.
    firsts: Vec<u32>,
    /// First float of each table, and the number of all.
    starts: Vec<usize>,
    /// What a kernel adds to run number times dim; wraps around.
    offsets: Vec<u64>,
}

impl Layout {
    /// From the runs of each table.
    fn set(&mut self, specs: &[TableSpec]) {
        let Self { firsts, starts, offsets } = self;
        starts.clear();
        offsets.clear();
        let mut start = 0_usize;
        for (spec, pair) in specs.iter().zip(firsts.windows(2)) {
            starts.push(start);
            offsets.push((start as u64).wrapping_sub(u64::from(pair[0]) * spec.dim as u64));
            start += ((pair[1] - pair[0]) as usize * spec.dim).next_multiple_of(4);
        }
        starts.push(start);
    }

    fn runs(&self) -> usize {
        self.firsts.last().map_or(0, |&count| count as usize)
    }

    fn floats(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
}

pub(super) fn row_gradients(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    gradients: &Gradients<'_, '_, Cuda>,
    rules: &[Rule],
    out: &mut RowGradients,
) -> Result<()> {
    check_rules("row_gradients", tables.specs(), rules)?;
    refuse_whole_rows(tables.specs(), rules)?;
    check(cuda, "row_gradients", tables, map, batch, gradients)?;
    let out = out.reset(tables.specs().len());
    if batch.len == 0 {
        for (out, spec) in out.iter_mut().zip(tables.specs()) {
            fit(out, spec.dim, 0);
        }
        return Ok(());
    }
    let mut foreseen = tables.foreseen.take(map, cuda.ids.told(), &batch);
    let Cuda { stream, ids, update, .. } = cuda;
    let update::Scratch { rules: described, records, keys, columns, .. } = update;
    let keys = foreseen.as_mut().unwrap_or(keys);
    described.set(tables.specs(), rules);
    let all = Tables {
        stream,
        specs: tables.specs(),
        descriptors: tables.descriptors(),
        records: upload(records, stream, &described.records)?,
    };
    let at = Step::new(all, map, ids.features(stream)?, batch, gradients);
    keys.build(at)?;
    let lookups = keys.lookups(at)?;
    let rows = TouchedRows::of(&at, &lookups);
    columns.count(all, rows)?;
    columns.sum(at, rows, lookups.launch)?;
    columns.measure(all, described, rows)?;
    columns.fetch(all, rows, out)?;
    at.release_sequences()?;
    tables.foreseen.put(foreseen);
    Ok(())
}

/// Makes room for `rows` rows.
fn fit(out: &mut TableGradients, dim: usize, rows: usize) {
    out.dim = dim;
    out.rows.resize(rows, 0);
    out.sums.resize(rows * dim, 0.0);
    out.statistics.resize(rows, 0.0);
}

impl Scratch {
    /// Waits for how many rows each table has, and lays out their sums.
    fn count(&mut self, tables: Tables<'_>, rows: TouchedRows<'_>) -> Result<()> {
        let Tables { stream, specs, .. } = tables;
        let firsts = self.first_runs.room(stream, specs.len() + 1)?;
        let mut firsts = firsts.view_mut(0..specs.len() + 1);
        let shape = Shape::new((specs.len() + 1).div_ceil(256) as u32, 256);
        let args = (rows.runs, rows.count, specs.len() as u32, firsts.reborrow());
        // SAFETY: as many runs as counted; one more place than tables.
        unsafe { stream.launch(stream.device().kernel("emb_table_runs")?, shape, args) }?;
        self.layout.firsts.resize(specs.len() + 1, 0);
        stream.download(firsts.as_view(), &mut self.layout.firsts)?;
        self.layout.set(specs);
        Ok(())
    }

    fn sum(&mut self, step: Step<'_>, rows: TouchedRows<'_>, launch: Launch) -> Result<()> {
        let Tables { stream, specs, descriptors, records } = step.tables;
        let Some((_, lookups)) = rows.lookups else { return Ok(()) };
        let offsets = upload(&mut self.offsets, stream, &self.layout.offsets)?;
        let sums = self.sums.room(stream, self.layout.floats().max(1))?.whole_mut();
        let lanes = lanes(stride(specs));
        let args = (
            descriptors,
            records,
            rows.runs,
            rows.count,
            lookups.sorted.tags,
            lookups.sources,
            step.features,
            step.offsets,
            lookups.sequences,
            step.pooled.data,
            rows.sums,
            offsets,
            sums,
            Plain(Launch { lanes, ..launch }),
        );
        let shape = covering(stream, self.layout.runs(), lanes)?;
        // SAFETY: as in an update; the sums have room for every row, as laid out.
        Ok(unsafe { stream.launch(stream.device().kernel("emb_run_sums")?, shape, args) }?)
    }

    fn measure(
        &mut self,
        tables: Tables<'_>,
        rules: &Described,
        rows: TouchedRows<'_>,
    ) -> Result<()> {
        let Tables { stream, descriptors, records, .. } = tables;
        let count = self.layout.runs();
        let offsets = self.offsets.room(stream, 1)?.whole();
        let sums = self.sums.room(stream, 1)?.whole();
        let mut statistics = self.statistics.room(stream, count.max(1))?.whole_mut();
        stream.clear(statistics.reborrow())?;
        for (number, group) in rules.groups.iter().enumerate() {
            let Some(kernel) = group.statistics() else { continue };
            let launch = Launch { group: number as u32, lanes: group.lanes, ..Launch::default() };
            let to = statistics.reborrow();
            let args =
                (descriptors, records, rows.runs, rows.count, sums, offsets, to, Plain(launch));
            let shape = covering(stream, count, group.lanes)?;
            // SAFETY: sums of all runs, as laid out, and a statistic for each.
            unsafe { stream.launch(stream.device().kernel(kernel)?, shape, args) }?;
        }
        Ok(())
    }

    /// Copies rows, sums and statistics to the host.
    fn fetch(
        &mut self,
        tables: Tables<'_>,
        rows: TouchedRows<'_>,
        out: &mut [TableGradients],
    ) -> Result<()> {
        let Tables { stream, specs, .. } = tables;
        self.runs_host.resize(self.layout.runs(), Run::default());
        stream.download(rows.runs.slice(0..self.layout.runs()), &mut self.runs_host)?;
        let sums = self.sums.room(stream, 1)?.whole();
        let statistics = self.statistics.room(stream, 1)?.whole();
        for (t, (out, spec)) in out.iter_mut().zip(specs).enumerate() {
            let [first, end] = [t, t + 1].map(|t| self.layout.firsts[t] as usize);
            fit(out, spec.dim, end - first);
            if first == end {
                continue;
            }
            for (row, run) in out.rows.iter_mut().zip(&self.runs_host[first..end]) {
                *row = run.row;
            }
            let start = self.layout.starts[t];
            stream.download(sums.slice(start..start + out.sums.len()), &mut out.sums)?;
            stream.download(statistics.slice(first..end), &mut out.statistics)?;
        }
        Ok(())
    }

    /// Copies rows and their sums to the device.
    fn send(
        &mut self,
        tables: Tables<'_>,
        gradients: &RowGradients,
        totals: &[&[f64]],
    ) -> Result<()> {
        let Tables { stream, specs, .. } = tables;
        self.runs_host.clear();
        self.layout.firsts.clear();
        for (t, part) in gradients.tables().iter().enumerate() {
            self.layout.firsts.push(self.runs_host.len() as u32);
            let run = |&row| Run { row, begin: 0, table: t as u32 };
            self.runs_host.extend(part.rows.iter().map(run));
        }
        let count = self.runs_host.len();
        self.layout.firsts.push(count as u32);
        self.layout.set(specs);
        // Kernels look at the run after the last.
        self.runs_host.push(Run::default());
        upload(&mut self.runs, stream, &self.runs_host)?;
        upload(&mut self.count, stream, &[count as u32])?;
        upload(&mut self.offsets, stream, &self.layout.offsets)?;
        let sums = self.sums.room(stream, self.layout.floats().max(1))?;
        let statistics = self.statistics.room(stream, count.max(1))?;
        for (t, part) in gradients.tables().iter().enumerate() {
            let (start, first) = (self.layout.starts[t], self.layout.firsts[t] as usize);
            stream.upload(&part.sums, sums.view_mut(start..start + part.sums.len()))?;
            stream.upload(totals[t], statistics.view_mut(first..first + totals[t].len()))?;
        }
        Ok(())
    }
}

pub(super) fn apply(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    gradients: &RowGradients,
    totals: &[&[f64]],
    rules: &[Rule],
    step: u64,
) -> Result<()> {
    check_rules("apply", tables.specs(), rules)?;
    refuse_whole_rows(tables.specs(), rules)?;
    gradients.check("apply", tables.specs(), totals)?;
    let Cuda { stream, update, .. } = cuda;
    let update::Scratch { rules: described, records, far, columns, .. } = update;
    described.set(tables.specs(), rules);
    let tables = Tables {
        stream,
        specs: tables.specs(),
        descriptors: tables.descriptors(),
        records: upload(records, stream, &described.records)?,
    };
    columns.send(tables, gradients, totals)?;
    let Scratch { runs, count, offsets, sums, statistics, layout, .. } = columns;
    if layout.runs() == 0 {
        return Ok(());
    }
    let rows = TouchedRows {
        rows: layout.runs(),
        runs: runs.room(stream, 1)?.whole(),
        count: whole(count, stream)?,
        lookups: None,
        sums: Some(whole(sums, stream)?),
        sum_offsets: Some(whole(offsets, stream)?),
        totals: Some(whole(statistics, stream)?),
    };
    let launch = Launch { step, stage_stride: stride(tables.specs) as u32, ..Launch::default() };
    launch_rules(tables, described, rows, far, launch)
}

fn whole<'a, T: bytemuck::Pod>(
    kept: &'a mut Kept<T>,
    stream: &emb_cuda::Stream,
) -> Result<View<'a, T>> {
    Ok(kept.room(stream, 1)?.whole())
}
