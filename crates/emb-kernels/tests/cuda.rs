//! The CUDA backend passes the public suite, on a GPU or on the fake driver.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

use emb_cuda::Device;
use emb_kernels::conformance::{dense, embedding};
use emb_kernels::{Cpu, CpuOptions, Cuda, CudaOptions};

/// The first device; `None`, with a printed reason, where there is none.
fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn cuda(device: &Device) -> Cuda {
    Cuda::new(device, CudaOptions::default()).expect("a backend")
}

#[test]
fn cuda_passes_the_embedding_suite() {
    let Some(device) = device() else { return };
    embedding::all(|| cuda(&device));
}

#[test]
fn cuda_passes_the_dense_suite() {
    let Some(device) = device() else { return };
    dense::all(|_threads| cuda(&device));
}

/// Lookups, initial values, sums of few rows and updates round as the CPU does.
#[test]
fn cuda_has_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let cpu = || Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    embedding::equal_runs_have_equal_bits(cpu, || cuda(&device));
}
