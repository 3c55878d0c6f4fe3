//! A rule of a user's own has the bits of its Rust form; what is wrong with its source is told.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

#[path = "../examples/own_rule/rule.rs"]
mod rule;

use emb_cuda::Device;
use emb_kernels::cuda::CudaRule;
use emb_kernels::{
    Backend, Cpu, CpuOptions, Cuda, CudaOptions, Dtype, Error, Feature, FeatureMap, Gradients,
    Init, Jagged, JaggedView, Mat, Pooling, Rounding, Scalar, TableSpec,
};
use emb_optim::{Optimizer, RowRule, RowState, RuleKind, Slot, Statistic};
use rule::CappedAdaGrad;

const ROWS: u64 = 30;
const BATCH: usize = 7;

/// A backend on the first device; `None`, with a printed reason, where there is none.
fn cuda() -> Option<Cuda> {
    match Device::open(0) {
        Ok(device) => Some(Cuda::new(&device, CudaOptions::default()).expect("a backend")),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn cpu() -> Cpu {
    Cpu::new(CpuOptions { threads: 1 }).expect("a backend")
}

fn tables(optimizer: Optimizer) -> Vec<TableSpec> {
    // A dim of vectors, one that is none, and one beyond a block's shared memory.
    let kinds = [
        (Dtype::F32, 12, Rounding::Nearest),
        (Dtype::F16, 7, Rounding::Stochastic),
        (Dtype::Bf16, 40, Rounding::Stochastic),
        (Dtype::Bf16, 8, Rounding::Nearest),
        (Dtype::F16, 520, Rounding::Stochastic),
    ];
    let table = |(t, (dtype, dim, rounding)): (usize, (Dtype, usize, Rounding))| TableSpec {
        dtype,
        rounding,
        init: Init::Uniform { low: -0.5, high: 0.5 },
        ..TableSpec::new(format!("table {t}"), ROWS, dim, optimizer)
    };
    kinds.into_iter().enumerate().map(table).collect()
}

fn uploaded<B: Backend, T: Scalar>(backend: &mut B, from: &[T]) -> B::Buffer<T> {
    let mut buffer = backend.zeros(from.len()).expect("memory");
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len())).expect("a copy");
    buffer
}

/// Updates all tables with a batch, twice; returns weights and state as bits.
fn steps<B: Backend, R: RowRule>(
    backend: &mut B,
    optimizer: Optimizer,
    rule: R,
    update: impl Fn(
        &mut B,
        &mut B::Tables,
        &FeatureMap,
        JaggedView<'_, B>,
        &Gradients<'_, '_, B>,
        &[R],
        u64,
    ) -> Result<(), Error>,
) -> Result<Vec<Vec<u32>>, Error> {
    let specs = tables(optimizer);
    let mut tables = backend.create_tables(&specs, 5).expect("tables");
    let pooling = [Pooling::Sum, Pooling::Mean];
    let names: Vec<String> = (0..specs.len()).map(|f| format!("feature {f}")).collect();
    let feature = |f: usize| Feature { name: names[f].clone(), table: f, pooling: pooling[f % 2] };
    let map = FeatureMap::new((0..specs.len()).map(feature).collect(), &specs, 0).expect("a map");
    let lengths: Vec<i64> = (0..specs.len() * BATCH).map(|bag| (bag * 5 % 4) as i64).collect();
    let count = lengths.iter().sum::<i64>();
    let values = (0..count).map(|i| i * i % ROWS as i64).collect();
    let batch = Jagged::from_lengths(&names, BATCH, &lengths, values, None).expect("a batch");
    let batch = batch.as_ref();
    let offsets = uploaded(backend, batch.offsets);
    let values = uploaded(backend, batch.values);
    let len = BATCH * map.width();
    let gradient: Vec<f32> = (0..len).map(|i| (i as f32 * 0.73).sin()).collect();
    let gradient = uploaded(backend, &gradient);
    for step in 1..3 {
        let view = JaggedView::<B> {
            names: &names,
            batch: BATCH,
            len: count as usize,
            offsets: B::view(&offsets, 0..batch.offsets.len()),
            values: B::view(&values, 0..batch.values.len()),
            weights: None,
        };
        let pooled = Mat::new(B::view(&gradient, 0..len), BATCH, map.width());
        let gradients = Gradients { pooled, sequences: &[] };
        let rules = vec![rule; specs.len()];
        update(backend, &mut tables, &map, view, &gradients, &rules, step)?;
    }
    let mut out = Vec::new();
    for (t, spec) in specs.iter().enumerate() {
        let mut weights = vec![0.0; ROWS as usize * spec.dim];
        let mut state = [vec![0.0; ROWS as usize]];
        backend.read_rows(&mut tables, t, 0, &mut weights, &mut state).expect("rows");
        for values in [&weights, &state[0]] {
            out.push(values.iter().map(|value| value.to_bits()).collect());
        }
    }
    Ok(out)
}

fn on_cpu<R: RowRule>(optimizer: Optimizer, rule: R) -> Result<Vec<Vec<u32>>, Error> {
    steps(&mut cpu(), optimizer, rule, |cpu, tables, map, batch, gradients, rules, step| {
        cpu.scatter_update_with(tables, map, batch, gradients, rules, step)
    })
}

fn on_cuda<R: CudaRule>(
    cuda: &mut Cuda,
    optimizer: Optimizer,
    rule: R,
) -> Result<Vec<Vec<u32>>, Error> {
    let compiled = cuda.compile_rule::<R>()?;
    steps(cuda, optimizer, rule, |cuda, tables, map, batch, gradients, rules, step| {
        cuda.scatter_update_with(&compiled, tables, map, batch, gradients, rules, step)
    })
}

const RULE: CappedAdaGrad = CappedAdaGrad { lr: 0.3, eps: 1e-8, cap: 0.1 };

#[test]
fn an_own_rule_has_the_bits_of_its_rust_form() {
    let Some(mut cuda) = cuda() else { return };
    let optimizer = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let wanted = on_cpu(optimizer, RULE).expect("an update");
    let got = on_cuda(&mut cuda, optimizer, RULE).expect("an update");
    assert_eq!(got, wanted);
    let free = on_cpu(optimizer, CappedAdaGrad { cap: f32::MAX, ..RULE }).expect("an update");
    for (t, (capped, free)) in wanted.chunks(2).zip(free.chunks(2)).enumerate() {
        assert_ne!(capped[0], free[0], "the cap was met in table {t}");
        assert_eq!(capped[1], free[1], "and state does not know of it");
    }
}

#[test]
fn an_own_rule_with_other_state_than_the_table_is_refused_by_the_tables_name() {
    let Some(mut cuda) = cuda() else { return };
    let sgd = Optimizer::new(RuleKind::Sgd);
    let wanted = on_cpu(sgd, RULE).expect_err("no state");
    assert!(wanted.to_string().contains("table \"table 0\": a rule with state"), "{wanted}");
    assert_eq!(on_cuda(&mut cuda, sgd, RULE).expect_err("no state"), wanted);
}

/// The same rule, said to have other parameters or another source.
#[derive(Clone, Copy)]
struct Other<const PARAMETERS: usize, const MISSPELT: bool>;

impl<const PARAMETERS: usize, const MISSPELT: bool> RowRule for Other<PARAMETERS, MISSPELT> {
    fn slots(&self) -> &'static [Slot] {
        RULE.slots()
    }

    fn uses_statistic(&self) -> bool {
        true
    }

    fn max_gradient(&self) -> Option<f32> {
        None
    }

    fn statistic(&self, row: &[f32], grad: &[f32]) -> f64 {
        RULE.statistic(row, grad)
    }

    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic) {
        RULE.step(row, state, grad, statistic);
    }
}

impl CudaRule for Other<4, false> {
    type Parameters = [f32; 4];
    const NAME: &'static str = CappedAdaGrad::NAME;
    const SOURCE: &'static str = CappedAdaGrad::SOURCE;

    fn parameters(&self) -> [f32; 4] {
        [RULE.lr, RULE.eps, RULE.cap, 0.0]
    }
}

impl CudaRule for Other<1, true> {
    type Parameters = f32;
    const NAME: &'static str = "Misspelt";
    const SOURCE: &'static str = "struct Misspelt {\n    float lr;\n    flaot eps;\n};\n";

    fn parameters(&self) -> f32 {
        RULE.lr
    }
}

fn refused<R: CudaRule>(cuda: &Cuda) -> String {
    let Err(error) = cuda.compile_rule::<R>() else { panic!("{} compiles", R::NAME) };
    error.to_string()
}

#[test]
fn an_error_in_a_source_is_told_with_the_rules_name_and_the_line() {
    let Some(cuda) = cuda() else { return };
    let error = refused::<Other<1, true>>(&cuda);
    assert!(error.starts_with("rule Misspelt does not compile:\n"), "{error}");
    // As gcc and as NVRTC write it.
    let line = error.contains("Misspelt.cuh:3:") || error.contains("Misspelt.cuh(3): error");
    assert!(line && error.contains("flaot"), "{error}");
}

#[test]
fn parameters_of_another_size_than_the_structure_are_refused() {
    let Some(cuda) = cuda() else { return };
    let error = refused::<Other<4, false>>(&cuda);
    let told = error.contains("CappedAdaGrad: parameters of 16 bytes in Rust");
    assert!(told && error.starts_with("rule CappedAdaGrad does not compile:\n"), "{error}");
}
