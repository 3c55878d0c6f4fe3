//! Backward and update in one: keys, sort, runs, then one launch for each kind of table.

use super::keys::{Keys, Lookups, SUM_THREADS, Step, Tables, covering, stride};
use super::records::{Launch, RuleRecord, Run};
use super::rules::{CudaRules, Described};
use super::{Cuda, CudaTables, columns, ids};
use crate::rule_checks::{check_rules, refuse_column_cuts};
use crate::{FeatureMap, Gradients, JaggedView, Pooling, Result, shape};
use emb_cuda::{Kept, Plain, Shape, Stream, View};

/// Most bytes of memory for rows that are too long for the kernels' shared memory.
const FAR_BYTES: usize = 64 << 20;

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rules: Described,
    pub(super) records: Kept<RuleRecord>,
    pub(super) keys: Keys,
    pub(super) far: Kept<f32>,
    pub(super) columns: columns::Scratch,
}

pub(super) fn scatter_update(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    gradients: &Gradients<'_, '_, Cuda>,
    rules: &(impl CudaRules + ?Sized),
    step: u64,
) -> Result<()> {
    check_rules("scatter_update", tables.specs(), rules)?;
    refuse_column_cuts(tables.specs(), rules)?;
    check(cuda, "scatter_update", tables, map, batch, gradients)?;
    if batch.len == 0 {
        return Ok(());
    }
    let mut foreseen = tables.foreseen.take(map, cuda.ids.told(), &batch);
    let Cuda { stream, ids, update, .. } = cuda;
    let Scratch { rules: described, records, keys, far, .. } = update;
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
    let launch = Launch { step, ..lookups.launch };
    launch_rules(all, described, TouchedRows::of(&at, &lookups), far, launch)?;
    at.release_sequences()?;
    tables.foreseen.put(foreseen);
    Ok(())
}

/// Checks everything about the batch and its gradients; waits for the device.
pub(super) fn check(
    cuda: &mut Cuda,
    operation: &'static str,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    gradients: &Gradients<'_, '_, Cuda>,
) -> Result<()> {
    let names = shape::names!("the pooled gradient");
    shape::mat(operation, names, &gradients.pooled, batch.batch, map.width())?;
    let wanted = map.features().iter().enumerate().filter(|(_, f)| f.pooling == Pooling::None);
    let given = gradients.sequences.len();
    shape::same(operation, "sequence gradients", wanted.clone().count(), given)?;
    for ((f, _), (position, _)) in wanted.clone().zip(gradients.sequences) {
        shape::same(operation, "feature of a sequence gradient", f, *position)?;
    }
    let report = ids::look(cuda, operation, tables, map, batch, 0..map.features().len())?;
    for ((f, _), (_, mat)) in wanted.zip(gradients.sequences) {
        let names = shape::names!("a sequence gradient");
        shape::mat(operation, names, mat, cuda.ids.sequence_values(f), map.dim(f))?;
    }
    report.refuse(cuda, tables, map, batch)
}

/// Copies to memory that is kept.
pub(super) fn upload<'a, T: bytemuck::Pod>(
    kept: &'a mut Kept<T>,
    stream: &Stream,
    from: &[T],
) -> Result<View<'a, T>> {
    let buffer = kept.room(stream, from.len().max(1))?;
    stream.upload(from, buffer.view_mut(0..from.len()))?;
    Ok(buffer.view(0..from.len()))
}

/// Touched rows and where their sums come from: what `emb_update_..` and `emb_run_sums` are told.
#[derive(Clone, Copy)]
pub(super) struct TouchedRows<'a> {
    /// Most runs there may be.
    pub(super) rows: usize,
    pub(super) runs: View<'a, Run>,
    pub(super) count: View<'a, u32>,
    /// How to find gradients; `None` where all sums were made before.
    pub(super) lookups: Option<(&'a Step<'a>, &'a Lookups<'a>)>,
    /// Sums of chunks of long runs, or with `sum_offsets` of all runs.
    pub(super) sums: Option<View<'a, f32>>,
    pub(super) sum_offsets: Option<View<'a, u64>>,
    /// Statistics of whole rows.
    pub(super) totals: Option<View<'a, f64>>,
}

impl<'a> TouchedRows<'a> {
    /// Of sorted lookups.
    pub(super) fn of(step: &'a Step<'a>, lookups: &'a Lookups<'a>) -> Self {
        Self {
            rows: step.len(),
            runs: lookups.sorted.runs,
            count: lookups.sorted.count,
            lookups: Some((step, lookups)),
            sums: lookups.chunk_sums,
            sum_offsets: None,
            totals: None,
        }
    }
}

/// Updates the rows of each group of tables, in a launch each.
pub(super) fn launch_rules(
    tables: Tables<'_>,
    rules: &Described,
    rows: TouchedRows<'_>,
    far: &mut Kept<f32>,
    launch: Launch,
) -> Result<()> {
    let Tables { stream, specs, descriptors, records } = tables;
    let step = rows.lookups.map(|(step, _)| step);
    let lookups = rows.lookups.map(|(_, lookups)| lookups);
    let stride = stride(specs);
    for (number, group) in rules.groups.iter().enumerate() {
        let mut shape = covering(stream, rows.rows, group.lanes)?;
        let far = if group.far {
            let parts = (SUM_THREADS / group.lanes) as usize;
            let most = (FAR_BYTES / (parts * stride * size_of::<f32>())).max(1);
            shape = Shape::new(shape.grid[0].min(most as u32), SUM_THREADS);
            let len = shape.grid[0] as usize * parts * stride;
            Some(far.room(stream, len)?.whole_mut())
        } else {
            None
        };
        let args = (
            descriptors,
            records,
            rows.runs,
            rows.count,
            lookups.map(|lookups| lookups.sorted.tags),
            lookups.and_then(|lookups| lookups.sources),
            step.map(|step| step.features),
            step.map(|step| step.offsets),
            lookups.and_then(|lookups| lookups.sequences),
            step.map(|step| step.pooled.data),
            rows.sums,
            rows.sum_offsets,
            rows.totals,
            far,
            Plain(Launch { group: number as u32, lanes: group.lanes, ..launch }),
        );
        // SAFETY: runs hold rows of the tables, one run a row; gradients were checked against the
        // batch; sums, totals and far rows are as many as the kernel reads.
        unsafe { stream.launch(group.update(stream.device())?, shape, args) }?;
    }
    Ok(())
}
