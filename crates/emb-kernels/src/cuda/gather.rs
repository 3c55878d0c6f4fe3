//! Look-ups without pooling.

use super::{Cuda, CudaTables, ids};
use crate::{Error, FeatureMap, JaggedView, Mat, Result, shape};
use emb_cuda::{Shape, Stream, View, ViewMut};

/// Warps of a block.
const WARPS_OF_A_BLOCK: usize = 8;

/// Warps for each multiprocessor that make longer lists of ids worth while: twice as many as fit.
const WARPS: usize = 32;

/// How many ids a warp copies the rows of, and the blocks for `ids` of them.
fn cut(stream: &Stream, ids: usize) -> Result<(u32, Shape)> {
    let enough = WARPS * stream.device().multiprocessors()? as usize;
    let mut chunk = 32;
    while chunk > 4 && ids.div_ceil(chunk) < enough {
        chunk /= 2;
    }
    let blocks = ids.div_ceil(chunk).div_ceil(WARPS_OF_A_BLOCK);
    Ok((chunk as u32, Shape::new(blocks as u32, 256)))
}

pub(super) fn gather(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    feature: usize,
    batch: JaggedView<'_, Cuda>,
    out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    let (operation, what) = ("gather", "feature position");
    if feature >= map.features().len() {
        let (expected, got) = (map.features().len(), feature);
        return Err(Error::Shape { operation, what, expected, got });
    }
    let report = ids::look(cuda, operation, tables, map, batch, feature..feature + 1)?;
    let names = shape::names!("the output");
    shape::mat(operation, names, &out, report.values, map.dim(feature))?;
    report.refuse(cuda, tables, map, batch)?;
    if report.values == 0 {
        return Ok(());
    }
    let Cuda { stream, ids, .. } = cuda;
    let features = ids.features(stream)?;
    let (chunk, shape) = cut(stream, report.values)?;
    let (first, end, samples) = (feature as u32, feature as u32 + 1, batch.batch as u64);
    let (offsets, values, stride) = (batch.offsets, batch.values, out.stride as u64);
    let starts: Option<View<'_, u64>> = None;
    let args = (features, first, end, offsets, samples, values, starts, out.data, stride, chunk);
    tables.around(stream, || {
        // SAFETY: ids are rows of their tables, and the output has a row an id, as checked.
        Ok(unsafe { stream.launch(stream.device().kernel("emb_gather")?, shape, args) }?)
    })
}

pub(super) fn gather_all(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    out: ViewMut<'_, f32>,
) -> Result<()> {
    let (operation, count) = ("gather_all", map.features().len());
    let report = ids::look(cuda, operation, tables, map, batch, 0..count)?;
    shape::same(operation, "output", report.elements, out.len())?;
    report.refuse(cuda, tables, map, batch)?;
    if report.elements == 0 {
        return Ok(());
    }
    let Cuda { stream, ids, .. } = cuda;
    let (features, starts) = ids.starts(stream)?;
    let (chunk, shape) = cut(stream, batch.len)?;
    let (end, samples, stride) = (count as u32, batch.batch as u64, 0_u64);
    let (offsets, values) = (batch.offsets, batch.values);
    let args = (features, 0_u32, end, offsets, samples, values, starts, out, stride, chunk);
    tables.around(stream, || {
        // SAFETY: as above; starts end at the length of the output, as checked.
        Ok(unsafe { stream.launch(stream.device().kernel("emb_gather")?, shape, args) }?)
    })
}
