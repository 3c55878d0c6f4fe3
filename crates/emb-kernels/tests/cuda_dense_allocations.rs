//! The dense operations of the CUDA backend allocate nothing, on the host or the device, on shapes
//! that were seen.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

use emb_cuda::{Buffer, Device, ViewMut};
use emb_kernels::{
    Accumulate, Activation, Backend, Cuda, CudaOptions, Mat, PairOrder, Result, Transpose,
};
use emb_optim::{Optimizer, RuleKind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on as it came to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Samples, more than one chunk of a column sum.
const ROWS: usize = 300;

/// Columns of every matrix: 4 vectors of 8.
const COLS: usize = 32;

fn all(buffer: &mut Buffer<f32>) -> Mat<ViewMut<'_, f32>> {
    Mat::new(buffer.whole_mut(), ROWS, COLS)
}

/// Every dense operation once.
fn step(cuda: &mut Cuda, from: &Buffer<f32>, [out, other]: &mut [Buffer<f32>; 2]) -> Result<()> {
    let (x, vector) = (Mat::new(from.whole(), ROWS, COLS), from.view(0..COLS));
    let square = Mat::new(from.view(0..COLS * COLS), COLS, COLS);
    cuda.gemm(x, Transpose::No, square, Transpose::Yes, Accumulate::Add, all(out))?;
    cuda.linear(x, Transpose::No, square, Transpose::No, vector, Activation::Relu, all(out))?;
    cuda.bias_activation(all(out), vector, Activation::Relu)?;
    cuda.bias_activation_backward(x, Activation::Relu, all(out), other.view_mut(0..COLS))?;
    cuda.cross(x, x, vector, x, all(out))?;
    let (head, rest) = other.whole_mut().split_at(COLS);
    let other_mat = Mat::new(rest, ROWS - 1, COLS);
    let less = Mat::new(from.view(0..(ROWS - 1) * COLS), ROWS - 1, COLS);
    let out_less = Mat::new(out.view_mut(0..(ROWS - 1) * COLS), ROWS - 1, COLS);
    cuda.cross_backward(less, less, vector, less, out_less, other_mat, head)?;
    cuda.fill(all(other), 0.5)?;
    cuda.add(x, all(other))?;
    let pairs = 8 + 4 * 3 / 2;
    let out_pairs = Mat::new(out.view_mut(0..ROWS * pairs), ROWS, pairs);
    cuda.interact(x, 4, out_pairs, PairOrder::Upper)?;
    let gradient = Mat::new(from.view(0..ROWS * pairs), ROWS, pairs);
    cuda.interact_backward(x, 4, gradient, all(out), PairOrder::Lower)?;
    let (logits, labels) = (from.view(0..ROWS), from.view(ROWS..2 * ROWS));
    cuda.bce_with_logits(logits, labels, 1.0, out.view_mut(0..ROWS))?;
    let adam = Optimizer::new(RuleKind::Adam).rule(0.1, 1);
    let (parameter, state) = other.whole_mut().split_at(ROWS);
    cuda.dense_update(&adam, parameter, state.into_slice(0..2 * ROWS), from.view(0..ROWS))
}

#[test]
fn a_second_step_allocates_nothing() {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let mut cuda = Cuda::new(&device, CudaOptions::default()).expect("a backend");
    let mut buffer = || cuda.zeros(ROWS * COLS).expect("memory");
    let (from, mut to) = (buffer(), [buffer(), buffer()]);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    step(&mut cuda, &from, &mut to).expect("it fits");
    assert_ne!(ALLOCATIONS.load(Ordering::Relaxed), before, "the first step plans its products");
    let free = device.memory().expect("a number").0;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    step(&mut cuda, &from, &mut to).expect("it fits");
    let count = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(count, 0, "allocations of the host");
    assert_eq!(device.memory().expect("a number").0, free, "bytes free on the device");
}
