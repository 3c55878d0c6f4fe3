//! Gradients of per-sample weights.

use super::{Cuda, CudaTables, ids};
use crate::{FeatureMap, JaggedView, Mat, Result, shape};
use emb_cuda::{Shape, View, ViewMut};

/// Bags of a block: eight lanes each.
const BAGS_OF_A_BLOCK: usize = 32;

pub(super) fn weight_gradients(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    pooled_gradient: Mat<View<'_, f32>>,
    out: ViewMut<'_, f32>,
) -> Result<()> {
    let operation = "weight_gradients";
    let names = shape::names!("the pooled gradient");
    shape::mat(operation, names, &pooled_gradient, batch.batch, map.width())?;
    shape::same(operation, "output", batch.len, out.len())?;
    let _ = ids::check(cuda, operation, tables, map, batch)?;
    let Cuda { stream, ids, .. } = cuda;
    let features = ids.features(stream)?;
    let bags = map.features().len() * batch.batch;
    if batch.len == 0 {
        return Ok(());
    }
    let shape = Shape::new(bags.div_ceil(BAGS_OF_A_BLOCK) as u32, 256);
    let (count, samples) = (map.features().len() as u32, batch.batch as u64);
    let (offsets, values, weights) = (batch.offsets, batch.values, batch.weights);
    let (gradient, stride) = (pooled_gradient.data, pooled_gradient.stride as u64);
    let args = (features, count, offsets, samples, values, weights, gradient, stride, out);
    tables.around(stream, || {
        let kernel = stream.device().kernel("emb_weight_gradients")?;
        // SAFETY: ids are rows of their tables; a gradient a bag and an output an id, as checked.
        Ok(unsafe { stream.launch(kernel, shape, args) }?)
    })
}
