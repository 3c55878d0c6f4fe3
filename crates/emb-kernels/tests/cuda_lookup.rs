//! Lookups, tables and rows of the CUDA backend, bit for bit those of the CPU, on a GPU or on the
//! fake driver.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

use emb_cuda::Device;
use emb_kernels::conformance::embedding::{Case, cases};
use emb_kernels::{
    Backend, Cpu, CpuOptions, Cuda, CudaOptions, Dtype, Error, Feature, FeatureMap, Gradients,
    Init, Jagged, JaggedView, Mat, Pooling, RowNumbers, RowTransfer, TableSpec, Window,
};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};

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

fn cpu() -> Cpu {
    Cpu::new(CpuOptions { threads: 1 }).expect("threads")
}

fn optimizer(kind: RuleKind) -> Optimizer {
    OptimizerConfig::new(kind).build().expect("options of its own")
}

/// Bits of floats, so that zeros of either sign differ.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A batch in the memory of a backend.
struct Batch<B: Backend> {
    names: Vec<String>,
    samples: usize,
    len: usize,
    offsets: B::Buffer<u64>,
    values: B::Buffer<i64>,
    weights: Option<B::Buffer<f32>>,
}

impl<B: Backend> Batch<B> {
    fn new(backend: &mut B, batch: &Jagged) -> Self {
        let host = batch.as_ref();
        Self {
            names: host.names.to_vec(),
            samples: host.batch,
            len: host.values.len(),
            offsets: up(backend, host.offsets),
            values: up(backend, host.values),
            weights: host.weights.map(|weights| up(backend, weights)),
        }
    }

    fn view(&self) -> JaggedView<'_, B> {
        JaggedView {
            names: &self.names,
            batch: self.samples,
            len: self.len,
            offsets: all::<B, _>(&self.offsets),
            values: all::<B, _>(&self.values),
            weights: self.weights.as_ref().map(all::<B, _>),
        }
    }
}

fn up<B: Backend, T: emb_kernels::Scalar>(backend: &mut B, from: &[T]) -> B::Buffer<T> {
    let mut buffer = backend.zeros::<T>(from.len()).expect("memory");
    backend.upload(from, B::view_mut(&mut buffer, 0..from.len())).expect("a copy");
    buffer
}

fn all<B: Backend, T: emb_kernels::Scalar>(buffer: &B::Buffer<T>) -> B::View<'_, T> {
    B::view(buffer, 0..B::len(buffer))
}

fn down<B: Backend>(backend: &mut B, buffer: &B::Buffer<f32>) -> Vec<f32> {
    let mut out = vec![0.0; B::len(buffer)];
    backend.download(all::<B, _>(buffer), &mut out).expect("a copy");
    out
}

/// Everything that reads tables, as bits: initial rows and state, pooled and gathered rows,
/// gradients of weights.
fn looked_up<B: Backend>(backend: &mut B, case: &Case) -> Vec<Vec<u32>> {
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("tables");
    let (map, batch) = (case.map(), Batch::new(backend, &case.batch));
    let mut out = rows_of(backend, &mut tables);

    let len = batch.samples * map.width();
    let mut pooled = up(backend, &vec![7.0; len]);
    let matrix = Mat::new(B::view_mut(&mut pooled, 0..len), batch.samples, map.width());
    backend.pool(&mut tables, &map, batch.view(), matrix).expect("a lookup");
    out.push(bits(&down(backend, &pooled)));

    let sequences: usize = case.sequences().iter().map(|(_, rows, dim)| rows * dim).sum();
    let mut gathered = backend.zeros::<f32>(sequences).expect("memory");
    let whole = B::view_mut(&mut gathered, 0..sequences);
    backend.gather_all(&mut tables, &map, batch.view(), whole).expect("a lookup");
    out.push(bits(&down(backend, &gathered)));

    let gradient = up(backend, &case.pooled_gradient);
    let matrix = Mat::new(all::<B, _>(&gradient), batch.samples, map.width());
    let mut weights = backend.zeros::<f32>(batch.len).expect("memory");
    let whole = B::view_mut(&mut weights, 0..batch.len);
    backend
        .weight_gradients(&mut tables, &map, batch.view(), matrix, whole)
        .expect("gradients of weights");
    out.push(bits(&down(backend, &weights)));
    out
}

/// Weights and state of all tables.
fn rows_of<B: Backend>(backend: &mut B, tables: &mut B::Tables) -> Vec<Vec<u32>> {
    let mut out = Vec::new();
    for (t, spec) in B::specs(tables).to_vec().iter().enumerate() {
        let mut weights = vec![0.0; spec.rows as usize * spec.dim];
        let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
        backend.read_rows(tables, t, 0, &mut weights, &mut state).expect("rows");
        out.push(bits(&weights));
        out.extend(state.iter().map(|slot| bits(slot)));
    }
    out
}

#[test]
fn lookups_have_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let (mut cpu, mut cuda) = (cpu(), cuda(&device));
    for case in cases() {
        let (expected, got) = (looked_up(&mut cpu, &case), looked_up(&mut cuda, &case));
        for (k, (expected, part)) in expected.iter().zip(&got).enumerate() {
            assert!(expected == part, "case {}, part {k} of {}", case.seed, got.len());
        }
    }
}

/// Columns cut anywhere, strides, and rows that are numbered by a function.
#[test]
fn parts_of_tables_begin_with_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let numbers = RowNumbers::new(|place| (place * 7919 + 3) % 100_003 + (1 << 33));
    let window = |first_column, rows: Option<&RowNumbers>| Window {
        first_row: 5,
        row_step: 3,
        rows: rows.cloned(),
        first_column,
        table_dim: 200,
    };
    let base = TableSpec::new("t", 40, 33, optimizer(RuleKind::RowWiseAdaGrad));
    let specs = [
        TableSpec { window: window(0, None), ..base.clone() },
        TableSpec { window: window(62, Some(&numbers)), dtype: Dtype::F16, ..base.clone() },
        TableSpec { window: window(7, Some(&numbers)), ..base.clone() },
        TableSpec { window: window(64, None), dtype: Dtype::Bf16, ..base.clone() },
        TableSpec { init: Init::Constant(0.1), name: "c".to_owned(), dtype: Dtype::F16, ..base },
    ];
    let (mut cpu, mut cuda) = (cpu(), cuda(&device));
    let mut tables = cpu.create_tables(&specs, 3).expect("tables");
    let expected = rows_of(&mut cpu, &mut tables);
    let mut tables = cuda.create_tables(&specs, 3).expect("tables");
    assert!(expected == rows_of(&mut cuda, &mut tables));
}

/// Two features over two tables, with a bad id in the second; all operations, and what they leave.
fn refused<B: Backend>(backend: &mut B, bad: i64) -> Vec<Error> {
    let specs = [
        TableSpec::new("small", 3, 4, optimizer(RuleKind::Sgd)),
        TableSpec::new("large", 1000, 8, optimizer(RuleKind::Sgd)),
    ];
    let feature = |name: &str, table, pooling| Feature { name: name.to_owned(), table, pooling };
    let features = vec![
        feature("a", 1, Pooling::Sum),
        feature("b", 0, Pooling::None),
        feature("c", 1, Pooling::Mean),
    ];
    let map = FeatureMap::new(features, &specs, 0).expect("a map");
    let batch = Jagged::from_lengths(
        &["a", "b", "c"],
        2,
        &[1, 0, 2, 2, 0, 1],
        vec![999, 2, 0, 1, bad, -5],
        None,
    )
    .expect("a batch");
    let mut tables = backend.create_tables(&specs, 1).expect("tables");
    let batch = Batch::new(backend, &batch);
    let mut errors = Vec::new();
    let mut pooled = up(backend, &[7.0; 2 * 16]);
    let matrix = Mat::new(B::view_mut(&mut pooled, 0..32), 2, 16);
    errors.extend(backend.pool(&mut tables, &map, batch.view(), matrix).err());
    let mut gathered = up(backend, &[7.0; 16]);
    let matrix = Mat::new(B::view_mut(&mut gathered, 0..16), 4, 4);
    errors.extend(backend.gather(&mut tables, &map, 1, batch.view(), matrix).err());
    let whole = B::view_mut(&mut gathered, 0..16);
    errors.extend(backend.gather_all(&mut tables, &map, batch.view(), whole).err());
    let gradient = up(backend, &[1.0; 32]);
    let matrix = Mat::new(all::<B, _>(&gradient), 2, 16);
    let mut weights = up(backend, &[7.0; 6]);
    let whole = B::view_mut(&mut weights, 0..6);
    errors.extend(backend.weight_gradients(&mut tables, &map, batch.view(), matrix, whole).err());
    for written in [pooled, gathered, weights] {
        assert!(down(backend, &written).iter().all(|&value| value == 7.0), "written to");
    }
    errors
}

#[test]
fn a_bad_id_is_refused_as_on_the_cpu_before_anything_is_written() {
    let Some(device) = device() else { return };
    for bad in [3, -1, i64::MAX, i64::MIN] {
        let expected = refused(&mut cpu(), bad);
        assert_eq!(expected.len(), 4);
        assert_eq!(refused(&mut cuda(&device), bad), expected);
    }
}

/// Two features of one table; the memory of the batch says other offsets than were checked.
fn offsets_that_lie(backend: &mut Cuda, offsets: &[u64]) -> Error {
    let specs = [TableSpec::new("t", 3, 4, optimizer(RuleKind::Sgd))];
    let feature = |name: &str, pooling| Feature { name: name.to_owned(), table: 0, pooling };
    let features = vec![feature("a", Pooling::Sum), feature("b", Pooling::None)];
    let map = FeatureMap::new(features, &specs, 0).expect("a map");
    let lengths = [1, 1, 0, 3];
    let batch = Jagged::from_lengths(&["a", "b"], 2, &lengths, vec![0, 1, 2, 1, 2], None);
    let mut batch = Batch::new(backend, &batch.expect("a batch"));
    backend.upload(offsets, batch.offsets.whole_mut()).expect("a copy");
    let mut tables = backend.create_tables(&specs, 1).expect("tables");
    let mut pooled = up(backend, &[7.0; 2 * 4]);
    let matrix = Mat::new(pooled.whole_mut(), 2, 4);
    let refusal = backend.pool(&mut tables, &map, batch.view(), matrix).expect_err("they lie");
    assert!(down(backend, &pooled).iter().all(|&value| value == 7.0), "written to");
    let gradients = Gradients { pooled: Mat::new(pooled.whole(), 2, 4), sequences: &[] };
    let gradients = Gradients { sequences: &[(1, Mat::new(pooled.view(0..0), 0, 4))], ..gradients };
    let (rules, before) = ([optimizer(RuleKind::Sgd).rule(0.1, 1)], rows_of(backend, &mut tables));
    let update = backend.scatter_update(&mut tables, &map, batch.view(), &gradients, &rules, 1);
    assert!(update.is_err(), "an update by {offsets:?}");
    assert!(rows_of(backend, &mut tables) == before, "written to");
    refusal
}

#[test]
fn offsets_that_lie_are_refused_before_they_are_followed() {
    let Some(device) = device() else { return };
    let mut cuda = cuda(&device);
    let decrease = |index, previous, next| Error::OffsetsDecrease { index, previous, next };
    let cases = [
        ([0, 4, 2, 3, 5], decrease(2, 4, 2)),
        ([0, 1 << 40, 2, 3, 5], decrease(2, 1 << 40, 2)),
        ([0, 1, 1, 9, 5], decrease(4, 9, 5)),
        ([2, 2, 2, 3, 5], Error::OffsetsStart { first: 2 }),
    ];
    for (offsets, expected) in cases {
        assert_eq!(offsets_that_lie(&mut cuda, &offsets), expected);
    }
    let refusal = offsets_that_lie(&mut cuda, &[0, 1, 2, 3, 4]).to_string();
    assert!(refusal.contains("last offset"), "{refusal}");
}

/// On a device that no other test uses.
#[test]
fn lookups_go_on_after_a_device_was_full() {
    let Ok(device) = Device::open(2) else { return eprintln!("skipped: no third device") };
    let mut cuda = cuda(&device);
    let case = cases().next().expect("a case");
    let mut tables = cuda.create_tables(&case.specs, case.seed).expect("tables");
    let (map, batch) = (case.map(), Batch::new(&mut cuda, &case.batch));
    let len = batch.samples * map.width();
    let mut pooled = up(&mut cuda, &vec![7.0; len]);
    let stream = cuda.stream().clone();
    let mut filled = Vec::new();
    for power in (4..40).rev() {
        while let Ok(memory) = stream.uninit::<u8>(1 << power) {
            filled.push(memory);
        }
    }
    let mut lookup = |backend: &mut Cuda| {
        let matrix = Mat::new(pooled.whole_mut(), batch.samples, map.width());
        backend.pool(&mut tables, &map, batch.view(), matrix)?;
        Ok(bits(&down(backend, &pooled)))
    };
    let refused = lookup(&mut cuda);
    assert!(matches!(refused, Err(Error::Memory { .. })), "{refused:?}");
    drop(filled);
    let got = lookup(&mut cuda).expect("there is room again");
    let fresh = &mut Cuda::new(&device, CudaOptions::default()).expect("a backend");
    assert_eq!(lookup(fresh).expect("a lookup"), got);
}

#[test]
fn tables_of_another_device_are_looked_up() {
    let Some(near) = device() else { return };
    let Ok(far) = Device::open(1) else { return eprintln!("skipped: one device") };
    let (mut cuda, mut far) = (cuda(&near), cuda(&far));
    let case = cases().next().expect("a case");
    let mut tables = far.create_tables(&case.specs, case.seed).expect("tables");
    let (map, batch) = (case.map(), Batch::new(&mut far, &case.batch));
    let len = batch.samples * map.width();
    let mut lookup = |backend: &mut Cuda| {
        let mut pooled = up(backend, &vec![7.0; len]);
        let matrix = Mat::new(pooled.whole_mut(), batch.samples, map.width());
        backend.pool(&mut tables, &map, batch.view(), matrix).expect("a lookup");
        bits(&down(backend, &pooled))
    };
    assert_eq!(lookup(&mut cuda), lookup(&mut far));
}

#[test]
fn tables_that_cannot_be_are_refused_as_on_the_cpu() {
    let Some(device) = device() else { return };
    let good = TableSpec::new("t", 3, 4, optimizer(RuleKind::Adam));
    let cut = Window { table_dim: 6, ..Window::whole(4) };
    let bad = [
        vec![TableSpec { rows: 0, ..good.clone() }],
        vec![TableSpec { dim: 0, ..good.clone() }],
        vec![TableSpec { dim: TableSpec::MAX_DIM + 1, ..good.clone() }],
        vec![TableSpec { window: Window { first_column: 1, ..Window::whole(4) }, ..good.clone() }],
        vec![TableSpec { window: Window { row_step: 0, ..Window::whole(4) }, ..good.clone() }],
        vec![good.clone(), good.clone()],
        vec![good.clone(), TableSpec { window: cut, ..good.clone() }],
    ];
    for specs in bad {
        let expected = cpu().create_tables(&specs, 1).expect_err("it cannot be");
        assert_eq!(cuda(&device).create_tables(&specs, 1).expect_err("it cannot be"), expected);
    }
    let mut cuda = cuda(&device);
    let mut tables = cuda.create_tables(&[good], 1).expect("a table");
    let rows = RowTransfer::Read(&mut [0.0; 12]);
    let refusal = cuda.transfer_rows(&mut tables, 0, &[3], rows).expect_err("there is no row 3");
    assert!(refusal.to_string().contains("row 3 of 3"), "{refusal}");
}
