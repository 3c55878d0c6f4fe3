//! Pairwise dot products: kernels of `cuda/interaction.cu`.

use super::Cuda;
use crate::shape::{self, names, same};
use crate::{Error, Mat, PairOrder, Result};
use emb_cuda::{Kernel, Shape, View, ViewMut};

/// Features that the widest kernel keeps in shared memory at a time; more are done block by block.
const WIDEST: usize = 32;

/// Most blocks of features: all pairs of them are blocks of a launch in its second direction, of
/// which there are at most 65,535.
const MOST_BLOCKS: usize = 361;

/// Threads of a block, four for each feature of a kernel's width.
const THREADS: u32 = 128;

pub(super) fn interact(
    cuda: &mut Cuda,
    x: Mat<View<'_, f32>>,
    features: usize,
    out: Mat<ViewMut<'_, f32>>,
    order: PairOrder,
) -> Result<()> {
    let dim = check("interact", &x, features)?;
    let cols = out_cols(features, dim);
    shape::mat("interact", names!("out"), &out, x.rows, cols)?;
    let samples = Samples::new("interact", x.rows, features, dim)?;
    if x.rows == 0 || cols == 0 {
        return Ok(());
    }
    let names = ["emb_interact_8", "emb_interact_16", "emb_interact_32"];
    let (kernel, shape) = samples.launch(cuda, names, |blocks| blocks * (blocks + 1) / 2)?;
    let Samples { batch, features, dim } = samples;
    let strides = (x.stride as u64, out.stride as u64);
    let args = (x.data, strides.0, batch, features, dim, out.data, strides.1, number(order));
    // SAFETY: what the kernel takes; the matrices lie inside their views, by the checks above.
    unsafe { cuda.stream.launch(kernel, shape, args) }?;
    Ok(())
}

pub(super) fn interact_backward(
    cuda: &mut Cuda,
    x: Mat<View<'_, f32>>,
    features: usize,
    gradient: Mat<View<'_, f32>>,
    x_gradient: Mat<ViewMut<'_, f32>>,
    order: PairOrder,
) -> Result<()> {
    let operation = "interact_backward";
    let dim = check(operation, &x, features)?;
    shape::mat(operation, names!("gradient"), &gradient, x.rows, out_cols(features, dim))?;
    shape::mat(operation, names!("x_gradient"), &x_gradient, x.rows, x.cols)?;
    let samples = Samples::new(operation, x.rows, features, dim)?;
    if x.extent() == 0 {
        return Ok(());
    }
    let names = ["emb_interact_backward_8", "emb_interact_backward_16", "emb_interact_backward_32"];
    let (kernel, shape) = samples.launch(cuda, names, |blocks| blocks)?;
    let Samples { batch, features, dim } = samples;
    let args = (
        x.data,
        x.stride as u64,
        batch,
        features,
        dim,
        gradient.data,
        gradient.stride as u64,
        x_gradient.data,
        x_gradient.stride as u64,
        number(order),
    );
    // SAFETY: what the kernel takes; the matrices lie inside their views, by the checks above.
    unsafe { cuda.stream.launch(kernel, shape, args) }?;
    Ok(())
}

/// Checks `x` and returns its `dim`.
fn check(operation: &'static str, x: &Mat<View<'_, f32>>, features: usize) -> Result<usize> {
    shape::inside(operation, names!("x"), x)?;
    let dim = x.cols.checked_div(features).unwrap_or(0);
    let what = "columns of x (whole vectors, one a feature)";
    same(operation, what, features * dim, x.cols)?;
    Ok(dim)
}

/// `dim + features * (features - 1) / 2`.
fn out_cols(features: usize, dim: usize) -> usize {
    dim + features * features.saturating_sub(1) / 2
}

/// As `PairOrder` of `interaction.cu`.
fn number(order: PairOrder) -> u32 {
    match order {
        PairOrder::Lower => 0,
        PairOrder::Upper => 1,
    }
}

/// Sizes that the kernels take.
struct Samples {
    batch: u64,
    features: u32,
    dim: u32,
}

impl Samples {
    fn new(operation: &'static str, batch: usize, features: usize, dim: usize) -> Result<Self> {
        let most = MOST_BLOCKS * WIDEST;
        let refused = |what: String| Error::NotAvailable(operation, what);
        if features > most {
            return Err(refused(format!("{features} features, more than {most}")));
        }
        if batch > i32::MAX as usize {
            return Err(refused(format!("{batch} samples, more than {}", i32::MAX)));
        }
        let dim = u32::try_from(dim).map_err(|_| refused(format!("vectors of {dim}")))?;
        Ok(Self { batch: batch as u64, features: features as u32, dim })
    }

    /// The narrowest kernel that holds the features, and its launch; `second` is the number of
    /// blocks of a sample, given its blocks of features.
    fn launch(
        &self,
        cuda: &Cuda,
        [narrow, middle, wide]: [&'static str; 3],
        second: impl FnOnce(u32) -> u32,
    ) -> Result<(Kernel, Shape)> {
        let (name, width) = match self.features {
            ..=8 => (narrow, 8),
            9..=16 => (middle, 16),
            _ => (wide, WIDEST as u32),
        };
        let samples_of_a_block = u64::from(THREADS / (4 * width));
        let first = self.batch.div_ceil(samples_of_a_block) as u32;
        let grid = [first, second(self.features.div_ceil(width)), 1];
        let shape = Shape { grid, block: [THREADS, 1, 1], shared: 0 };
        Ok((cuda.stream.device().kernel(name)?, shape))
    }
}
