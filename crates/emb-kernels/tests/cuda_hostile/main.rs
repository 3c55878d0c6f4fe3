//! The CUDA backend at the ends of what it takes: the largest tables, rows and batches, nothing at
//! all, numbers that are none, memory that others own or that there is not. All of it has the bits
//! of the CPU backend, or is refused as there.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

mod huge;
mod memory;
mod numbers;
mod refusals;
mod shapes;
mod trial;

use emb_cuda::Device;
use emb_kernels::conformance::embedding::{Case, Outcome, run};
use emb_kernels::{Cpu, CpuOptions, Cuda, CudaOptions, Feature, Init, Jagged, Pooling, TableSpec};
use emb_optim::{Decay, Optimizer, OptimizerConfig, RuleKind};

/// A device by its number; `None`, with a printed reason, where there is none.
fn device(ordinal: usize) -> Option<Device> {
    match Device::open(ordinal) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// A backend on the first device.
fn cuda() -> Option<Cuda> {
    device(0).map(|device| on(&device))
}

fn on(device: &Device) -> Cuda {
    Cuda::new(device, CudaOptions::default()).expect("a backend")
}

fn cpu() -> Cpu {
    Cpu::new(CpuOptions { threads: 1 }).expect("threads")
}

/// Limits of gradients and rows, and decay of weights.
fn limited(kind: RuleKind) -> Optimizer {
    let config = OptimizerConfig {
        max_gradient: Some(0.5),
        max_norm: Some(0.9),
        weight_decay: Some(0.1),
        decay: Some(Decay::L2),
        ..OptimizerConfig::new(kind)
    };
    config.build().expect("options that go together")
}

/// A table whose weights are large enough that wrong ones are seen.
fn table(name: &str, rows: u64, dim: usize, optimizer: Optimizer) -> TableSpec {
    let init = Init::Uniform { low: -0.5, high: 0.5 };
    TableSpec { init, ..TableSpec::new(name, rows, dim, optimizer) }
}

/// A batch over features of these tables and poolings, with gradients of every size below 1.
fn case(
    specs: Vec<TableSpec>,
    of: &[(usize, Pooling)],
    samples: usize,
    lengths: &[i64],
    ids: Vec<i64>,
) -> Case {
    let feature = |(f, &(table, pooling))| Feature { name: format!("feature {f}"), table, pooling };
    let features: Vec<Feature> = of.iter().enumerate().map(feature).collect();
    let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
    let batch = Jagged::from_lengths(&names, samples, lengths, ids, None).expect("a batch");
    let (pooled_gradient, sequence_gradients) = (Vec::new(), Vec::new());
    let case =
        Case { seed: 5, specs, features, batch, pooled_gradient, sequence_gradients, step: 1 };
    with_gradients(case, |i| (i as f32 * 0.73).sin())
}

/// The case with other gradients, by their place.
fn with_gradients(mut case: Case, gradient: impl Fn(usize) -> f32) -> Case {
    let len = case.batch.batch() * case.map().width();
    case.pooled_gradient = (0..len).map(&gradient).collect();
    let sequences = case.sequences().into_iter();
    case.sequence_gradients =
        sequences.map(|(f, rows, dim)| (f, (0..rows * dim).map(&gradient).collect())).collect();
    case
}

/// The case with weights of its lookups.
fn with_weights(mut case: Case, weights: Vec<f32>) -> Case {
    let batch = case.batch.as_ref();
    let offsets: Vec<i64> = batch.offsets.iter().map(|&offset| offset as i64).collect();
    let weighted = Jagged::from_offsets(
        batch.names,
        batch.batch,
        &offsets,
        batch.values.to_vec(),
        Some(weights),
    );
    case.batch = weighted.expect("a weight for each id");
    case
}

/// Bits of floats, so that zeros of either sign differ; every NaN is one, for which of two NaN a
/// sum keeps is the processor's choice.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect()
}

/// Lookups, gradients of weights and one update have the bits of the CPU.
#[track_caller]
fn check(cuda: &mut Cuda, case: &Case, what: &str) {
    same(&parts(&run(&mut cpu(), case)), &parts(&run(cuda, case)), what);
}

/// All parts of two outcomes are the same.
#[track_caller]
fn same(expected: &[Vec<u32>], got: &[Vec<u32>], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: parts");
    for (part, (one, other)) in expected.iter().zip(got).enumerate() {
        assert!(one == other, "{what}: part {part} of {}", got.len());
    }
}

/// All numbers of an outcome, as bits.
fn parts(outcome: &Outcome) -> Vec<Vec<u32>> {
    let mut parts = vec![bits(&outcome.pooled), bits(&outcome.weight_gradients)];
    parts.extend(outcome.gathered.iter().map(|(_, rows)| bits(rows)));
    parts.extend(outcome.before.iter().chain(&outcome.after).map(|weights| bits(weights)));
    parts.extend(outcome.state.iter().flatten().map(|slot| bits(slot)));
    parts
}
