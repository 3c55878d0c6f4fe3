//! What the library chose for a shape: [`Plan`], kept by [`Plans`].

use super::library::{Description, Handle, Layout, Preference, failed};
use crate::Result;
use crate::cuda::Precision;
use emb_cuda::cudarc::cublaslt::{result, sys};
use emb_cuda::cudarc::driver::sys::CUstream;

/// Plans that are kept. A model of ten layers has thirty products, and twice as many shapes where a
/// last batch is shorter.
const KEPT: usize = 128;

/// A factor or the product, column by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    /// Whether our matrix is used transposed.
    pub(super) transposed: bool,
    /// Elements from one column to the next.
    pub(super) stride: usize,
    /// A power of two that divides the address, in bytes.
    pub(super) alignment: u32,
}

/// What is done to the product before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    /// Nothing.
    None,
    /// A bias for each of our columns.
    Bias,
    /// The bias, then `max(x, 0)`.
    BiasRelu,
}

/// All that a choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Rows and columns of the product as the library sees it, and the inner dimension.
    pub(super) size: [usize; 3],
    /// The library's first factor.
    pub(super) first: Operand,
    /// The library's second factor.
    pub(super) second: Operand,
    /// The product.
    pub(super) out: Operand,
    /// What follows.
    pub(super) epilogue: Epilogue,
}

/// Addresses and numbers of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) first: u64,
    pub(super) second: u64,
    pub(super) out: u64,
    /// For the epilogues with one.
    pub(super) bias: Option<u64>,
    /// Factor on what was in the output.
    pub(super) keep: f32,
    /// Address and bytes.
    pub(super) workspace: (u64, usize),
    pub(super) stream: CUstream,
}

/// The choice for one shape.
#[derive(Debug)]
pub(super) struct Plan {
    description: Description,
    first: Layout,
    second: Layout,
    out: Layout,
    choice: sys::cublasLtMatmulAlgo_t,
}

/// Choices for the shapes seen last.
#[derive(Debug, Default)]
pub(super) struct Plans {
    /// With the time of the last use.
    kept: Vec<(Key, u64, Plan)>,
    time: u64,
}

impl Plans {
    /// The plan of a shape, asked of the library where it is not kept.
    pub(super) fn of(
        &mut self,
        handle: &Handle,
        key: Key,
        precision: Precision,
        workspace: usize,
    ) -> Result<&Plan> {
        self.time += 1;
        if let Some(at) = self.kept.iter().position(|(kept, ..)| *kept == key) {
            let (_, used, plan) = &mut self.kept[at];
            *used = self.time;
            return Ok(plan);
        }
        let plan = match Plan::new(handle, &key, precision, workspace) {
            // Matrix units want 16 bytes; what they cannot take is multiplied as `f32`.
            Err(_) if precision != Precision::F32 => {
                Plan::new(handle, &key, Precision::F32, workspace)?
            }
            plan => plan?,
        };
        if self.kept.len() == KEPT {
            let oldest = self.kept.iter().enumerate().min_by_key(|(_, (_, used, _))| *used);
            let (at, _) = oldest.expect("invariant: full, so not empty");
            self.kept.swap_remove(at);
        }
        self.kept.push((key, self.time, plan));
        let (.., plan) = self.kept.last().expect("invariant: pushed above");
        Ok(plan)
    }
}

impl Plan {
    fn new(handle: &Handle, key: &Key, precision: Precision, workspace: usize) -> Result<Self> {
        let [rows, cols, inner] = key.size;
        let stored = |transposed: bool, (rows, cols): (usize, usize), stride: usize| {
            let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
            Layout::new(rows, cols, stride)
        };
        let description = describe(key, precision)?;
        let first = stored(key.first.transposed, (rows, inner), key.first.stride)?;
        let second = stored(key.second.transposed, (inner, cols), key.second.stride)?;
        let out = stored(false, (rows, cols), key.out.stride)?;
        let preference = prefer(key, workspace)?;
        // SAFETY: objects that live.
        let choice = unsafe {
            result::get_matmul_algo_heuristic(
                handle.0,
                description.0,
                first.0,
                second.0,
                out.0,
                out.0,
                preference.0,
            )
        };
        let choice = choice.map_err(failed("cublasLtMatmulAlgoGetHeuristic"))?.algo;
        Ok(Self { description, first, second, out, choice })
    }

    /// Queues the product on its stream.
    ///
    /// # Safety
    /// The addresses are those of matrices as the key of this plan says, in the memory of the
    /// device of the current context, and stay so until the work is done.
    pub(super) unsafe fn run(&self, handle: &Handle, product: &Product) -> Result<()> {
        if let Some(bias) = product.bias {
            let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            // SAFETY: an address.
            unsafe { self.description.set(attribute, bias) }?;
        }
        let one = 1.0_f32;
        let (workspace, bytes) = product.workspace;
        let out = product.out as *mut std::ffi::c_void;
        // SAFETY: the caller's promise; the factors are of `f32` on the host, as is the default.
        unsafe {
            result::matmul(
                handle.0,
                self.description.0,
                (&raw const one).cast(),
                (&raw const product.keep).cast(),
                product.first as *const _,
                self.first.0,
                product.second as *const _,
                self.second.0,
                out,
                self.out.0,
                out,
                self.out.0,
                &raw const self.choice,
                workspace as *mut _,
                bytes,
                product.stream.cast(),
            )
        }
        .map_err(failed("cublasLtMatmul"))
    }
}

fn describe(key: &Key, precision: Precision) -> Result<Description> {
    use sys::cublasComputeType_t as Compute;
    use sys::cublasLtEpilogue_t as Kind;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    let description = Description::new(match precision {
        Precision::F32 => Compute::CUBLAS_COMPUTE_32F,
        Precision::Tf32 => Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
        Precision::Bf16 => Compute::CUBLAS_COMPUTE_32F_FAST_16BF,
    })?;
    // CUBLAS_OP_N and CUBLAS_OP_T of cublasOperation_t, which the bindings leave out.
    let operation = |operand: Operand| u32::from(operand.transposed);
    let (first, second) =
        (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, Attribute::CUBLASLT_MATMUL_DESC_TRANSB);
    // SAFETY: the attribute is of this type.
    unsafe { description.set(first, operation(key.first)) }?;
    // SAFETY: as above.
    unsafe { description.set(second, operation(key.second)) }?;
    let epilogue = match key.epilogue {
        Epilogue::None => Kind::CUBLASLT_EPILOGUE_DEFAULT,
        Epilogue::Bias => Kind::CUBLASLT_EPILOGUE_BIAS,
        Epilogue::BiasRelu => Kind::CUBLASLT_EPILOGUE_RELU_BIAS,
    };
    // SAFETY: as above.
    unsafe { description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) }?;
    Ok(description)
}

/// The library otherwise takes all addresses for multiples of 256.
fn prefer(key: &Key, workspace: usize) -> Result<Preference> {
    use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
    let preference = Preference::new()?;
    // SAFETY: the attribute is a 64-bit count of bytes.
    unsafe {
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace as u64)
    }?;
    let alignments = [
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.first.alignment),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.second.alignment),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.out.alignment),
        (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.out.alignment),
    ];
    for (attribute, bytes) in alignments {
        // SAFETY: the attribute is a 32-bit count of bytes.
        unsafe { preference.set(attribute, bytes) }?;
    }
    Ok(preference)
}
