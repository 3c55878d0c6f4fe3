//! Pooled look-ups.

use super::descriptors::FeatureDescriptor;
use super::{Cuda, CudaTables, ids};
use crate::{FeatureMap, JaggedView, Mat, Result, shape};
use emb_cuda::{Shape, ViewMut};

/// Most bags that a group of lanes walks: a lane of the smallest group has the end of each.
const MOST_BAGS: usize = 8;

/// Warps for each multiprocessor that make longer lists of bags worth while: twice as many as fit.
const WARPS: usize = 48;

/// Warps of a block.
const WARPS_OF_A_BLOCK: usize = 8;

/// Lanes of a warp.
const WARP: usize = 32;

/// One warp of a feature; twin of `emb::Slot` of `cuda/tables.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slot {
    feature: u32,
    part: u16,
    vector: u8,
    lanes: u8,
}

const _: () = assert!(size_of::<Slot>() == 8);

// SAFETY: numbers without padding between them, by the size above.
unsafe impl bytemuck::Zeroable for Slot {}
// SAFETY: as above; any bits are a value.
unsafe impl bytemuck::Pod for Slot {}

/// The warps that a block of samples needs, feature by feature.
pub(super) fn slots_of(features: &[FeatureDescriptor]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (f, feature) in features.iter().enumerate().filter(|(_, feature)| feature.pooling != 2) {
        let (vector, lanes, tiles) = row_shape(feature.weights, feature.dim, feature.dtype);
        slots.extend((0..lanes * tiles).map(|part| Slot {
            feature: f as u32,
            part: part as u16,
            vector: vector as u8,
            lanes: lanes as u8,
        }));
    }
    slots
}

/// Bytes of a vector, lanes that share a row, tiles of a row; twin of `emb::row_shape` of
/// `cuda/vector.cuh`, which says why.
fn row_shape(address: u64, dim: u32, dtype: u32) -> (u32, u32, u32) {
    let element = if dtype == 0 { 4 } else { 2 };
    let row_bytes = dim * element;
    let mut vector = 1 << (address | u64::from(row_bytes) | 16).trailing_zeros();
    while vector > element && row_bytes < 8 * vector {
        vector /= 2;
    }
    let vectors = row_bytes / vector;
    let lanes = vectors.next_power_of_two().clamp(8, 32);
    (vector, lanes, vectors.div_ceil(32))
}

pub(super) fn pool(
    cuda: &mut Cuda,
    tables: &mut CudaTables,
    map: &FeatureMap,
    batch: JaggedView<'_, Cuda>,
    out: Mat<ViewMut<'_, f32>>,
) -> Result<()> {
    shape::mat("pool", shape::names!("the output"), &out, batch.batch, map.width())?;
    let _ = ids::check(cuda, "pool", tables, map, batch)?;
    let Cuda { stream, ids, .. } = cuda;
    let (features, slots) = ids.slots(stream)?;
    if batch.batch == 0 || slots.is_empty() {
        return Ok(());
    }
    let device = stream.device();
    let warps = |chunk: usize| batch.batch.div_ceil(WARP * chunk) * slots.len();
    let enough = WARPS * device.multiprocessors()? as usize;
    let mut chunk = MOST_BAGS;
    while chunk > 1 && warps(chunk) < enough {
        chunk /= 2;
    }
    let shape = Shape::new(warps(chunk).div_ceil(WARPS_OF_A_BLOCK) as u32, 256);
    let (slot_count, samples, stride) = (slots.len() as u32, batch.batch as u64, out.stride as u64);
    let (offsets, values, weights) = (batch.offsets, batch.values, batch.weights);
    let args = (
        features,
        slots,
        slot_count,
        offsets,
        values,
        weights,
        out.data,
        stride,
        samples,
        chunk as u32,
    );
    tables.around(stream, || {
        // SAFETY: ids are rows of their tables, and the output has a row a sample, as checked.
        Ok(unsafe { stream.launch(device.kernel("emb_pool")?, shape, args) }?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_by_8_to_32_lanes_and_cut_into_tiles() {
        // (dim, dtype): (bytes of a vector, lanes, tiles).
        let cases = [
            ((1, 0), (4, 8, 1)),
            ((16, 0), (8, 8, 1)),
            ((32, 0), (16, 8, 1)),
            ((33, 0), (4, 32, 2)),
            ((128, 0), (16, 32, 1)),
            ((16_384, 0), (16, 32, 128)),
            ((16, 1), (4, 8, 1)),
            ((100, 1), (8, 32, 1)),
            ((256, 2), (16, 32, 1)),
            ((16_383, 2), (2, 32, 512)),
        ];
        for ((dim, dtype), expected) in cases {
            assert_eq!(row_shape(256, dim, dtype), expected, "dim {dim}, dtype {dtype}");
        }
        assert_eq!(row_shape(260, 128, 0), (4, 32, 4), "an address that is no multiple of 16");
    }
}
