//! Sorting, routing and updates of the CUDA backend have the bits of the CPU backend's.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

use emb_cuda::Device;
use emb_kernels::{
    Backend, Bucketized, Cpu, CpuOptions, Cuda, CudaOptions, Dtype, Error, Feature, FeatureMap,
    Gradients, Init, Jagged, JaggedRef, JaggedView, Mat, Pooling, RowGradients, RowMapView,
    TableSpec, Unique, Window,
};
use emb_optim::{Decay, Extent, Optimizer, OptimizerConfig, ReplicaRule, ReplicaScaling, RuleKind};

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

/// Numbers below `end` that repeat, some of them often.
fn numbers(count: usize, end: u64, seed: u64) -> Vec<u64> {
    let mut x = seed;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 33
    };
    (0..count).map(|_| if next() % 3 == 0 { next() % end } else { next() % end.min(5) }).collect()
}

#[test]
fn distinct_ids_are_those_of_the_cpu() {
    let Some(mut cuda) = cuda() else { return };
    for (count, end) in [(0, 1), (1, 1), (100, 7), (5000, 1 << 40), (4097, 300)] {
        let ids: Vec<i64> = numbers(count, end, 3).iter().map(|&id| id as i64).collect();
        let find = |backend: &mut dyn FnMut(&mut Unique<'_>) -> usize| {
            let (mut found, mut inverse) = (vec![0; count], vec![0; count]);
            let n = backend(&mut Unique { ids: &mut found, inverse: &mut inverse });
            found.truncate(n);
            (found, inverse)
        };
        let wanted = find(&mut |out| cpu().unique(&ids, out).expect("ids"));
        let got = find(&mut |out| cuda.unique(&ids, out).expect("ids"));
        assert_eq!(got, wanted, "{count} ids below {end}");
    }
    let mut out = Unique { ids: &mut [0; 2], inverse: &mut [0; 2] };
    let refused = Err(Error::NegativeId { position: 1, id: -7 });
    assert_eq!(cuda.unique(&[3, -7], &mut out), refused);
}

#[test]
fn segment_sums_have_the_bits_of_the_cpu() {
    fn sums<B: Backend>(backend: &mut B, inverse: &[u32], rows: usize, cols: usize) -> Vec<f32> {
        let len = inverse.len() * cols;
        let values: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut from = backend.zeros::<f32>(len).expect("memory");
        backend.upload(&values, B::view_mut(&mut from, 0..len)).expect("a copy");
        // Rows of the output are further apart than they are long.
        let (stride, mut out) = (cols + 3, vec![7.0; rows * (cols + 3)]);
        let mut to = backend.zeros::<f32>(out.len()).expect("memory");
        let end = out.len();
        backend.upload(&out, B::view_mut(&mut to, 0..end)).expect("a copy");
        let values = Mat::with_stride(B::view(&from, 0..len), inverse.len(), cols, cols);
        let sums = Mat::with_stride(B::view_mut(&mut to, 0..end), rows, cols, stride);
        backend.segment_sum(values, inverse, sums).expect("a sum");
        backend.download(B::view(&to, 0..end), &mut out).expect("a copy");
        out
    }
    let Some(mut cuda) = cuda() else { return };
    for (count, rows, cols) in [(0, 3, 5), (300, 11, 8), (2000, 900, 5), (70, 20, 132)] {
        let inverse: Vec<u32> =
            numbers(count, rows as u64, 9).iter().map(|&row| row as u32).collect();
        let got = sums(&mut cuda, &inverse, rows, cols);
        assert_eq!(got, sums(&mut cpu(), &inverse, rows, cols), "{count} rows of {cols}");
    }
}

#[test]
fn bags_are_split_by_owner_as_on_the_cpu() {
    let Some(mut cuda) = cuda() else { return };
    let names = ["a", "b"].map(str::to_owned).to_vec();
    let lengths: Vec<i64> = numbers(2 * 40, 9, 5).iter().map(|&length| length as i64).collect();
    let count = lengths.iter().sum::<i64>() as usize;
    let values: Vec<i64> = numbers(count, 90, 7).iter().map(|&id| id as i64).collect();
    let batch = Jagged::from_lengths(&names, 40, &lengths, values, None).expect("a batch");
    let (range, modulo) = (RowMapView::Range(&[0, 2, 2, 90]), RowMapView::Modulo { owners: 3 });
    let split = |run: &mut dyn FnMut(&mut Bucketized<'_>) -> Result<(), Error>| {
        let mut lengths = vec![9; 3 * 80];
        let (mut ids, mut positions) = (vec![0; count], vec![0; count]);
        let mut out =
            Bucketized { lengths: &mut lengths, ids: &mut ids, positions: &mut positions };
        run(&mut out).map(|()| (lengths, ids, positions))
    };
    let maps = [range, modulo];
    let wanted = split(&mut |out| cpu().bucketize(batch.as_ref(), &maps, out));
    assert_eq!(split(&mut |out| cuda.bucketize(batch.as_ref(), &maps, out)), wanted);
    let short = [range, RowMapView::Range(&[0, 1, 4, 5])];
    let wanted = split(&mut |out| cpu().bucketize(batch.as_ref(), &short, out));
    assert!(matches!(wanted, Err(Error::NoOwner { .. })), "{wanted:?}");
    assert_eq!(split(&mut |out| cuda.bucketize(batch.as_ref(), &short, out)), wanted);
    let mut offsets = batch.as_ref().offsets.to_vec();
    (offsets[3], offsets[4]) = (1 << 40, 2);
    let decrease = Error::OffsetsDecrease { index: 4, previous: 1 << 40, next: 2 };
    let cases = [(&offsets[..], decrease.to_string()), (&offsets[..3], "offsets".to_owned())];
    for (offsets, expected) in cases {
        let lying = JaggedRef { offsets, ..batch.as_ref() };
        let refused = split(&mut |out| cuda.bucketize(lying, &maps, out)).expect_err("a lie");
        assert!(refused.to_string().contains(&expected), "{refused}");
    }
}

/// Every rule, alone and with every option it takes.
fn optimizers() -> Vec<Optimizer> {
    let mut out = Vec::new();
    for kind in RuleKind::ALL {
        let plain = OptimizerConfig::new(kind);
        let limits = OptimizerConfig {
            max_gradient: Some(0.4),
            max_norm: Some(0.9),
            weight_decay: Some(0.1),
            decay: Some(Decay::L2),
            ..plain
        };
        let decoupled = OptimizerConfig { decay: Some(Decay::Decoupled), ..limits };
        out.extend([plain, limits, decoupled]);
        if kind.has_accumulator() {
            let replica =
                ReplicaScaling { rule: ReplicaRule::History, replicas: 3, ..plain.replica };
            out.push(OptimizerConfig { replica, initial_accumulator: Some(0.5), ..limits });
        }
        if kind != RuleKind::Sgd {
            let replica =
                ReplicaScaling { rule: ReplicaRule::Moment, replicas: 2, ..plain.replica };
            out.push(OptimizerConfig { replica, eps: Some(0.0), ..plain });
        }
    }
    out.into_iter().map(|config| config.build().expect("options that go together")).collect()
}

/// Two tables of every dtype, a batch over both, and two steps of it; returns weights and state.
fn steps<B: Backend>(backend: &mut B, optimizer: Optimizer, phases: bool) -> Vec<Vec<f32>> {
    let window = Window { first_row: 1 << 40, row_step: 7, ..Window::whole(12) };
    let spec = |name: &str, dim: usize, dtype, window: Window| TableSpec {
        dtype,
        init: Init::Uniform { low: -0.5, high: 0.5 },
        window: Window { table_dim: dim, ..window },
        ..TableSpec::new(name, 40, dim, optimizer)
    };
    let specs = [
        spec("a", 12, Dtype::F32, Window::whole(12)),
        spec("b", 7, Dtype::F16, window.clone()),
        spec("c", 40, Dtype::Bf16, window),
    ];
    let mut tables = backend.create_tables(&specs, 5).expect("tables");
    let features: Vec<Feature> = (0..6)
        .map(|f| Feature {
            name: format!("feature {f}"),
            table: f % 3,
            pooling: [Pooling::Sum, Pooling::Mean][f / 3],
        })
        .collect();
    let names: Vec<String> = features.iter().map(|feature| feature.name.clone()).collect();
    let map = FeatureMap::new(features, &specs, 0).expect("features of these tables");
    let batch = 9;
    let lengths: Vec<i64> = numbers(6 * batch, 4, 5).iter().map(|&length| length as i64).collect();
    let count = lengths.iter().sum::<i64>() as usize;
    let values: Vec<i64> = numbers(count, 40, 7).iter().map(|&id| id as i64).collect();
    let jagged = Jagged::from_lengths(&names, batch, &lengths, values, None).expect("a batch");
    let jagged = jagged.as_ref();
    let mut offsets = backend.zeros::<u64>(jagged.offsets.len()).expect("memory");
    backend.upload(jagged.offsets, B::view_mut(&mut offsets, 0..6 * batch + 1)).expect("a copy");
    let mut ids = backend.zeros::<i64>(count).expect("memory");
    backend.upload(jagged.values, B::view_mut(&mut ids, 0..count)).expect("a copy");
    let len = batch * map.width();
    let gradient: Vec<f32> = (0..len).map(|i| (i as f32 * 0.73).sin()).collect();
    let mut pooled = backend.zeros::<f32>(len).expect("memory");
    backend.upload(&gradient, B::view_mut(&mut pooled, 0..len)).expect("a copy");
    for step in 1..3 {
        let rules = [optimizer.rule(0.3, step); 3];
        let view = JaggedView::<B> {
            names: &names,
            batch,
            len: count,
            offsets: B::view(&offsets, 0..6 * batch + 1),
            values: B::view(&ids, 0..count),
            weights: None,
        };
        let pooled = Mat::new(B::view(&pooled, 0..len), batch, map.width());
        let gradients = Gradients::<B> { pooled, sequences: &[] };
        if phases {
            let mut sums = RowGradients::new();
            backend
                .row_gradients(&mut tables, &map, view, &gradients, &rules, &mut sums)
                .expect("the first phase");
            let totals = [0, 1, 2].map(|t| sums.statistics(t).to_vec());
            let totals: Vec<&[f64]> = totals.iter().map(Vec::as_slice).collect();
            backend.apply(&mut tables, &sums, &totals, &rules, step).expect("the second phase");
        } else {
            backend
                .scatter_update(&mut tables, &map, view, &gradients, &rules, step)
                .expect("an update");
        }
    }
    let mut out = Vec::new();
    for (t, spec) in specs.iter().enumerate() {
        let mut weights = vec![0.0; 40 * spec.dim];
        let mut state: Vec<Vec<f32>> = optimizer
            .slots()
            .iter()
            .map(|slot| vec![0.0; if slot.extent == Extent::Row { 40 } else { 40 * spec.dim }])
            .collect();
        backend.read_rows(&mut tables, t, 0, &mut weights, &mut state).expect("rows");
        out.push(weights);
        out.append(&mut state);
    }
    out
}

/// As bits, since NaN is not equal to itself.
fn bits(values: &[Vec<f32>]) -> Vec<Vec<u32>> {
    values.iter().map(|values| values.iter().map(|value| value.to_bits()).collect()).collect()
}

#[test]
fn rules_have_the_bits_of_their_rust_twins() {
    let Some(mut cuda) = cuda() else { return };
    for optimizer in optimizers() {
        for phases in [false, true] {
            let wanted = steps(&mut cpu(), optimizer, phases);
            let got = steps(&mut cuda, optimizer, phases);
            assert!(wanted[0].iter().any(|weight| weight.abs() > 0.01), "rows moved");
            assert_eq!(bits(&got), bits(&wanted), "{optimizer}, two phases: {phases}");
        }
    }
}

/// Weights of two tables after an update of one batch, which may have been foreseen as one of other
/// features.
fn updated(cuda: &mut Cuda, foreseen: Option<&[(usize, Pooling)]>) -> Vec<f32> {
    let optimizer = OptimizerConfig::new(RuleKind::Sgd).build().expect("a rule");
    let spec =
        |name| TableSpec { init: Init::Constant(0.5), ..TableSpec::new(name, 3, 4, optimizer) };
    let specs = ["a", "b"].map(spec);
    let map_of = |features: &[(usize, Pooling)]| {
        let feature = |&(table, pooling)| Feature { name: format!("of {table}"), table, pooling };
        FeatureMap::new(features.iter().map(feature).collect(), &specs, 0).expect("a map")
    };
    let map = map_of(&[(1, Pooling::Sum), (0, Pooling::Mean)]);
    let names = ["of 1", "of 0"].map(str::to_owned);
    let mut tables = cuda.create_tables(&specs, 5).expect("tables");
    let (offsets, ids) = ([0, 2, 4, 5, 6], [0, 2, 1, 2, 2, 0]);
    let mut starts = cuda.zeros::<u64>(offsets.len()).expect("memory");
    cuda.upload(&offsets, starts.whole_mut()).expect("a copy");
    let mut values = cuda.zeros::<i64>(ids.len()).expect("memory");
    cuda.upload(&ids, values.whole_mut()).expect("a copy");
    let view = JaggedView::<Cuda> {
        names: &names,
        batch: 2,
        len: ids.len(),
        offsets: starts.whole(),
        values: values.whole(),
        weights: None,
    };
    if let Some(features) = foreseen {
        cuda.foresee(&mut tables, &map_of(features), view).expect("foresight");
        let short = JaggedView { offsets: starts.view(0..3), ..view };
        let refused = cuda.foresee(&mut tables, &map, short);
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
    let mut gradient = cuda.zeros::<f32>(2 * map.width()).expect("memory");
    cuda.upload(&[1.0; 16], gradient.whole_mut()).expect("a copy");
    let pooled = Mat::new(gradient.whole(), 2, map.width());
    let (gradients, rules) = (Gradients { pooled, sequences: &[] }, [optimizer.rule(0.25, 1); 2]);
    cuda.scatter_update(&mut tables, &map, view, &gradients, &rules, 1).expect("an update");
    let mut weights = vec![0.0; 24];
    let (a, b) = weights.split_at_mut(12);
    cuda.read_rows(&mut tables, 0, 0, a, &mut []).expect("rows");
    cuda.read_rows(&mut tables, 1, 0, b, &mut []).expect("rows");
    weights
}

#[test]
fn a_batch_foreseen_with_other_features_is_sorted_anew() {
    let Some(mut cuda) = cuda() else { return };
    let expected = updated(&mut cuda, None);
    let (sum, mean) = (Pooling::Sum, Pooling::Mean);
    for features in [[(0, sum), (1, mean)], [(1, sum), (0, sum)], [(1, sum), (0, mean)]] {
        assert_eq!(updated(&mut cuda, Some(&features)), expected, "{features:?}");
    }
}
