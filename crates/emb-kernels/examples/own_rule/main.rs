//! An update rule of one's own, on the CPU and on a GPU: `rule.rs` is the rule, `capped.cuh` its
//! twin. Run with `cargo run --release --example own_rule -p emb-kernels --features cuda`.

mod rule;

use emb_cuda::Device;
use emb_kernels::{
    Backend, Cpu, CpuOptions, Cuda, CudaOptions, Dtype, Feature, FeatureMap, Gradients, Jagged,
    JaggedView, Mat, Pooling, Result, TableSpec,
};
use emb_optim::{Optimizer, RuleKind};
use rule::CappedAdaGrad;
use std::io::Write;

const ROWS: u64 = 100;
const DIM: usize = 16;
const BATCH: usize = 4;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
    let on_cpu = train(&mut cpu, |cpu, tables, map, batch, gradients, rules, step| {
        cpu.scatter_update_with(tables, map, batch, gradients, rules, step)
    })?;
    writeln!(out, "cpu: loss {:.3} -> {:.3}", on_cpu.losses[0], on_cpu.losses[19])?;

    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => return Ok(writeln!(out, "cuda: skipped: {error}")?),
    };
    let mut cuda = Cuda::new(&device, CudaOptions::default())?;
    let compiled = cuda.compile_rule::<CappedAdaGrad>()?;
    let on_cuda = train(&mut cuda, |cuda, tables, map, batch, gradients, rules, step| {
        cuda.scatter_update_with(&compiled, tables, map, batch, gradients, rules, step)
    })?;
    writeln!(out, "cuda: loss {:.3} -> {:.3}", on_cuda.losses[0], on_cuda.losses[19])?;
    let pairs = on_cpu.weights.iter().zip(&on_cuda.weights);
    let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    writeln!(out, "largest difference of {} weights: {largest}", on_cpu.weights.len())?;
    if largest == 0.0 { Ok(()) } else { Err("the two forms of the rule differ".into()) }
}

/// What a training run leaves.
struct Trained {
    /// Of each step.
    losses: Vec<f32>,
    /// Of all tables.
    weights: Vec<f32>,
}

/// Pulls the pooled rows of one batch towards 1 for 20 steps; `update` is the backend's own.
fn train<B: Backend>(
    backend: &mut B,
    update: impl Fn(
        &mut B,
        &mut B::Tables,
        &FeatureMap,
        JaggedView<'_, B>,
        &Gradients<'_, '_, B>,
        &[CappedAdaGrad],
        u64,
    ) -> Result<()>,
) -> Result<Trained> {
    // The rule keeps what row-wise AdaGrad keeps.
    let optimizer = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let table = |name, dtype| TableSpec { dtype, ..TableSpec::new(name, ROWS, DIM, optimizer) };
    let specs = [table("user", Dtype::F32), table("item", Dtype::Bf16)];
    let mut tables = backend.create_tables(&specs, 7)?;
    let feature = |name: &str, table| Feature { name: name.into(), table, pooling: Pooling::Sum };
    let map = FeatureMap::new(vec![feature("user", 0), feature("item", 1)], &specs, 0)?;
    let ids = vec![5, 9, 5, 7, 3, 3, 8, 1, 2];
    let batch =
        Jagged::from_lengths(&["user", "item"], BATCH, &[1, 1, 1, 1, 2, 0, 1, 2], ids, None)?;
    let batch = batch.as_ref();
    let offsets = uploaded(backend, batch.offsets)?;
    let values = uploaded(backend, batch.values)?;
    let view = JaggedView::<B> {
        names: batch.names,
        batch: BATCH,
        len: batch.values.len(),
        offsets: B::view(&offsets, 0..batch.offsets.len()),
        values: B::view(&values, 0..batch.values.len()),
        weights: None,
    };

    let width = map.width();
    let mut pooled = vec![0.0; BATCH * width];
    let mut losses = Vec::new();
    for step in 1..=20 {
        let mut output = backend.zeros(pooled.len())?;
        let to = Mat::new(B::view_mut(&mut output, 0..pooled.len()), BATCH, width);
        backend.pool(&mut tables, &map, view, to)?;
        backend.download(B::view(&output, 0..pooled.len()), &mut pooled)?;
        let gradient: Vec<f32> = pooled.iter().map(|value| value - 1.0).collect();
        losses.push(gradient.iter().map(|g| 0.5 * g * g).sum());
        let gradient = uploaded(backend, &gradient)?;
        let pooled = Mat::new(B::view(&gradient, 0..BATCH * width), BATCH, width);
        let rules = [CappedAdaGrad { lr: 0.3, eps: 1e-8, cap: 0.05 }; 2];
        let gradients = Gradients { pooled, sequences: &[] };
        update(backend, &mut tables, &map, view, &gradients, &rules, step)?;
    }

    let mut weights = vec![0.0; specs.len() * ROWS as usize * DIM];
    for (t, weights) in weights.chunks_exact_mut(ROWS as usize * DIM).enumerate() {
        backend.read_rows(&mut tables, t, 0, weights, &mut [vec![0.0; ROWS as usize]])?;
    }
    Ok(Trained { losses, weights })
}

fn uploaded<B: Backend, T: emb_kernels::Scalar>(
    backend: &mut B,
    from: &[T],
) -> Result<B::Buffer<T>> {
    let mut buffer = backend.zeros(from.len())?;
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len()))?;
    Ok(buffer)
}
