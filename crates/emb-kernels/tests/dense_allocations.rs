//! The dense operations allocate nothing, on any shape, once the backend was made.

use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{Accumulate, Activation, Backend, Mat, PairOrder, Transpose};
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

/// Allocations of all threads during `work`.
fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn a_made_backend_computes_without_allocating() {
    for threads in [1, 2] {
        let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads start");
        let data = vec![0.5f32; 512 * 2048];
        let mut out = vec![0.0f32; 512 * 2048];
        let mut other = vec![0.0f32; 512 * 2048];
        for (m, n, k) in [(2048, 512, 13), (512, 256, 2048), (2048, 1, 256), (1, 256, 2048)] {
            for transpose in [Transpose::No, Transpose::Yes] {
                let oriented = |rows, cols| match transpose {
                    Transpose::No => Mat::new(&data[..], rows, cols),
                    Transpose::Yes => Mat::new(&data[..], cols, rows),
                };
                let (a, b) = (oriented(m, k), oriented(k, n));
                let count = allocations(|| {
                    let out = Mat::new(&mut out[..], m, n);
                    cpu.gemm(a, transpose, b, transpose, Accumulate::Add, out).expect("fits");
                });
                assert_eq!(count, 0, "gemm {m}x{n}x{k}, {transpose:?}, {threads} threads");
            }
        }
        let (features, dim) = (27, 20);
        let cols = dim + features * (features - 1) / 2;
        let adam = Optimizer::new(RuleKind::Adam).rule(0.1, 1);
        let count = allocations(|| {
            let x = Mat::new(&data[..], 200, features * dim);
            let pairs = Mat::new(&mut out[..], 200, cols);
            cpu.interact(x, features, pairs, PairOrder::Lower).expect("fits");
            let pairs = Mat::new(&data[..], 200, cols);
            let gradient = Mat::new(&mut out[..], 200, features * dim);
            cpu.interact_backward(x, features, pairs, gradient, PairOrder::Upper).expect("fits");
            let mat = Mat::new(&data[..], 512, 512);
            cpu.bias_activation(Mat::new(&mut out[..], 512, 512), &data[..512], Activation::Relu)
                .expect("fits");
            let to = Mat::new(&mut out[..], 512, 512);
            cpu.bias_activation_backward(mat, Activation::Relu, to, &mut other[..512])
                .expect("fits");
            let to = Mat::new(&mut out[..], 512, 512);
            cpu.cross(mat, mat, &data[..512], mat, to).expect("fits");
            cpu.bce_with_logits(&data[..512], &data[..512], 1.0, &mut out[..512]).expect("fits");
            let (state, parameter) = other.split_at_mut(200_000);
            cpu.dense_update(&adam, &mut parameter[..100_000], state, &data[..100_000])
                .expect("fits");
        });
        assert_eq!(count, 0, "other operations, {threads} threads");
    }
}
