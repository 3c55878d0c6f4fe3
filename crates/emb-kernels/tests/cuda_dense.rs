//! The dense operations of the CUDA backend beyond the public suite: the bits of the CPU, layers in
//! one launch, precisions, and recorded steps.
//!
//! `cargo xtask test-simt` runs this with the fake driver; without any driver it says so and passes.

use emb_cuda::{Buffer, Device};
use emb_kernels::cuda::{Graph, Graphs};
use emb_kernels::{
    Accumulate, Activation, Backend, Cpu, CpuOptions, Cuda, CudaOptions, Mat, PairOrder, Precision,
    Result, Transpose,
};
use emb_optim::{Optimizer, RuleKind};

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

/// Values in -1..1, mixed by `SplitMix64`.
fn numbers(len: usize, salt: u64) -> Vec<f32> {
    let mixed = |k: u64| {
        let z = (salt << 32 | k).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((z ^ z >> 27) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (1..=len as u64).map(mixed).collect()
}

fn up<B: Backend>(backend: &mut B, values: &[f32]) -> B::Buffer<f32> {
    let mut buffer = backend.zeros(values.len()).expect("memory");
    backend.upload(values, B::view_mut(&mut buffer, 0..values.len())).expect("a copy");
    buffer
}

fn down<B: Backend>(backend: &mut B, buffer: &B::Buffer<f32>) -> Vec<f32> {
    let mut values = vec![0.0; B::len(buffer)];
    backend.download(B::view(buffer, 0..values.len()), &mut values).expect("a copy");
    values
}

fn mat<B: Backend>(buffer: &B::Buffer<f32>, rows: usize) -> Mat<B::View<'_, f32>> {
    let len = B::len(buffer);
    Mat::new(B::view(buffer, 0..len), rows, len / rows)
}

fn mat_mut<B: Backend>(buffer: &mut B::Buffer<f32>, rows: usize) -> Mat<B::ViewMut<'_, f32>> {
    let len = B::len(buffer);
    Mat::new(B::view_mut(buffer, 0..len), rows, len / rows)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Interactions of `features` vectors of `dim`, forward and backward.
fn interactions<B: Backend>(backend: &mut B, features: usize, dim: usize) -> Result<Vec<f32>> {
    let (rows, cols) = (3, dim + features * (features - 1) / 2);
    let x = up(backend, &numbers(rows * features * dim, 1));
    let gradient = up(backend, &numbers(rows * cols, 2));
    let mut all = Vec::new();
    for order in [PairOrder::Lower, PairOrder::Upper] {
        let mut out = backend.zeros(rows * cols)?;
        backend.interact(mat::<B>(&x, rows), features, mat_mut::<B>(&mut out, rows), order)?;
        all.extend(down(backend, &out));
        let mut out = backend.zeros(rows * features * dim)?;
        let (x, gradient) = (mat::<B>(&x, rows), mat::<B>(&gradient, rows));
        backend.interact_backward(x, features, gradient, mat_mut::<B>(&mut out, rows), order)?;
        all.extend(down(backend, &out));
    }
    Ok(all)
}

#[test]
fn interactions_have_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    #[cfg(target_arch = "x86_64")]
    let fuses = std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let fuses = false;
    if !fuses {
        eprintln!("skipped: this processor rounds products, a device does not");
        return;
    }
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    let mut cuda = cuda(&device);
    for (features, dim) in [(2, 7), (8, 16), (13, 65), (27, 64), (35, 5)] {
        let want = interactions(&mut cpu, features, dim).expect("it fits");
        let got = interactions(&mut cuda, features, dim).expect("it fits");
        assert!(bits(&want) == bits(&got), "{features} vectors of {dim}");
    }
}

/// Everything else that the CPU does without fusing, on matrices of more than one chunk of rows.
fn elements<B: Backend>(backend: &mut B) -> Result<Vec<f32>> {
    let (rows, cols) = (300, 37);
    let mut all = Vec::new();
    let [x0, u, x, gradient] = [1, 2, 3, 4].map(|salt| up(backend, &numbers(rows * cols, salt)));
    let (bias, mut of_bias) = (up(backend, &numbers(cols, 5)), backend.zeros(cols)?);
    let mut out = up(backend, &numbers(rows * cols, 6));
    let whole = 0..cols;
    let view = |buffer| mat::<B>(buffer, rows);
    backend.cross(
        view(&x0),
        view(&u),
        B::view(&bias, whole.clone()),
        view(&x),
        mat_mut::<B>(&mut out, rows),
    )?;
    all.extend(down(backend, &out));
    let mut of_u = backend.zeros(rows * cols)?;
    backend.cross_backward(
        view(&x0),
        view(&u),
        B::view(&bias, whole.clone()),
        view(&gradient),
        mat_mut::<B>(&mut of_u, rows),
        mat_mut::<B>(&mut out, rows),
        B::view_mut(&mut of_bias, whole.clone()),
    )?;
    for buffer in [&of_u, &out, &of_bias] {
        all.extend(down(backend, buffer));
    }
    for activation in [Activation::Linear, Activation::Relu] {
        let mut y = up(backend, &numbers(rows * cols, 7));
        let bias = B::view(&bias, whole.clone());
        backend.bias_activation(mat_mut::<B>(&mut y, rows), bias, activation)?;
        let mut masked = up(backend, &numbers(rows * cols, 8));
        let sums = B::view_mut(&mut of_bias, whole.clone());
        let gradient = mat_mut::<B>(&mut masked, rows);
        backend.bias_activation_backward(mat::<B>(&y, rows), activation, gradient, sums)?;
        for buffer in [&y, &masked, &of_bias] {
            all.extend(down(backend, buffer));
        }
    }
    Ok(all)
}

#[test]
fn sums_of_columns_and_element_wise_operations_have_the_bits_of_the_cpu() {
    let Some(device) = device() else { return };
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    let want = elements(&mut cpu).expect("it fits");
    assert!(bits(&want) == bits(&elements(&mut cuda(&device)).expect("it fits")));
}

/// `x * w^T` of a fixed shape, with another size of `x` each time.
struct Layer {
    x: Buffer<f32>,
    w: Buffer<f32>,
    bias: Buffer<f32>,
    out: Buffer<f32>,
    of_bias: Buffer<f32>,
}

const ROWS: usize = 300;
const INNER: usize = 19;
const COLS: usize = 24;

impl Layer {
    fn new(cuda: &mut Cuda, salt: u64) -> Self {
        Self {
            x: up(cuda, &numbers(ROWS * INNER, salt)),
            w: up(cuda, &numbers(COLS * INNER, 2)),
            bias: up(cuda, &numbers(COLS, 3)),
            out: cuda.zeros(ROWS * COLS).expect("memory"),
            of_bias: cuda.zeros(COLS).expect("memory"),
        }
    }

    fn set(&mut self, cuda: &mut Cuda, salt: u64) {
        cuda.upload(&numbers(ROWS * INNER, salt), self.x.whole_mut()).expect("a copy");
    }

    fn product(&mut self, cuda: &mut Cuda) -> Result<()> {
        let (x, w) = (mat::<Cuda>(&self.x, ROWS), mat::<Cuda>(&self.w, COLS));
        let out = mat_mut::<Cuda>(&mut self.out, ROWS);
        cuda.gemm(x, Transpose::No, w, Transpose::Yes, Accumulate::Replace, out)
    }

    /// Product, bias, `ReLU`, and the sums of what is left, of which there are two chunks.
    fn step(&mut self, cuda: &mut Cuda) -> Result<()> {
        self.product(cuda)?;
        let out = mat_mut::<Cuda>(&mut self.out, ROWS);
        cuda.bias_activation(out, self.bias.whole(), Activation::Relu)?;
        let (mut gradient, y) = (self.out.whole_mut(), self.x.whole());
        let y = Mat::new(y.slice(0..ROWS), ROWS, 1);
        let gradient = Mat::with_stride(gradient.reborrow(), ROWS, 1, COLS);
        let sums = self.of_bias.view_mut(0..1);
        cuda.bias_activation_backward(y, Activation::Relu, gradient, sums)
    }

    fn results(&self, cuda: &mut Cuda) -> Vec<u32> {
        bits(&[down(cuda, &self.out), down(cuda, &self.of_bias)].concat())
    }
}

#[test]
fn a_replayed_step_has_the_bits_of_its_launches() {
    let Some(device) = device() else { return };
    let (mut eager, mut recorded) = (cuda(&device), cuda(&device));
    let (mut a, mut b) = (Layer::new(&mut eager, 1), Layer::new(&mut recorded, 1));
    let mut graphs = Graphs::new(2);
    for step in 0..6_u64 {
        a.set(&mut eager, step);
        b.set(&mut recorded, step);
        a.step(&mut eager).expect("it fits");
        let mut called = false;
        let work = |cuda: &mut Cuda| {
            called = true;
            b.step(cuda)
        };
        // SAFETY: one layer, whose memory stays where it is.
        unsafe { graphs.run(&mut recorded, "layer", work) }.expect("it is recorded");
        assert_eq!(graphs.len(), usize::from(step > 0), "the first is not recorded");
        assert_eq!(called, step < 2 || step == 4, "step {step}");
        assert_eq!(a.results(&mut eager), b.results(&mut recorded), "step {step}");
        if step == 3 {
            // A larger sum moves the backend's memory: what was recorded is of no use any more.
            let large = up(&mut recorded, &numbers(100_000, 1));
            let mut gradient = up(&mut recorded, &numbers(100_000, 2));
            let (y, g) = (mat::<Cuda>(&large, 1000), mat_mut::<Cuda>(&mut gradient, 1000));
            let mut sums: Buffer<f32> = recorded.zeros(100).expect("memory");
            let sums = sums.whole_mut();
            recorded.bias_activation_backward(y, Activation::Linear, g, sums).expect("it fits");
        }
    }
}

#[test]
fn work_that_waits_is_not_recorded_and_the_stream_goes_on() {
    let Some(device) = device() else { return };
    let mut cuda = cuda(&device);
    let mut layer = Layer::new(&mut cuda, 1);
    layer.step(&mut cuda).expect("it fits");
    let want = layer.results(&mut cuda);
    let labels = up(&mut cuda, &numbers(COLS, 9));
    let mut gradient: Buffer<f32> = cuda.zeros(COLS).expect("memory");
    let stream = cuda.stream().clone();
    let mut loss = || {
        let gradient = gradient.whole_mut();
        cuda.bce_with_logits(layer.bias.whole(), labels.whole(), 1.0, gradient).map(drop)
    };
    // Once before, so that nothing is left to be allocated.
    loss().expect("it fits");
    assert!(Graph::capture(&stream, loss).is_err(), "a loss comes back to the host");
    layer.step(&mut cuda).expect("the stream records no more");
    assert_eq!(layer.results(&mut cuda), want);
}

#[test]
fn a_layer_in_one_launch_is_its_product_bias_and_activation() {
    let Some(device) = device() else { return };
    let mut cuda = cuda(&device);
    for activation in [Activation::Linear, Activation::Relu] {
        let mut layer = Layer::new(&mut cuda, 1);
        layer.product(&mut cuda).expect("it fits");
        let out = mat_mut::<Cuda>(&mut layer.out, ROWS);
        cuda.bias_activation(out, layer.bias.whole(), activation).expect("it fits");
        let want = down(&mut cuda, &layer.out);
        let (x, w) = (mat::<Cuda>(&layer.x, ROWS), mat::<Cuda>(&layer.w, COLS));
        let out = mat_mut::<Cuda>(&mut layer.out, ROWS);
        let bias = layer.bias.whole();
        cuda.linear(x, Transpose::No, w, Transpose::Yes, bias, activation, out).expect("it fits");
        let got = down(&mut cuda, &layer.out);
        let close = want.iter().zip(&got).all(|(a, b)| (a - b).abs() <= 1e-6 * a.abs().max(1.0));
        assert!(close, "{activation:?}");
        // Without an inner dimension only the bias is left.
        let none = cuda.zeros(0).expect("memory");
        let (x, w) = (Mat::new(none.whole(), ROWS, 0), Mat::new(none.whole(), COLS, 0));
        let out = mat_mut::<Cuda>(&mut layer.out, ROWS);
        let bias = layer.bias.whole();
        cuda.linear(x, Transpose::No, w, Transpose::Yes, bias, activation, out).expect("it fits");
        let (got, bias) = (down(&mut cuda, &layer.out), down(&mut cuda, &layer.bias));
        let relu = activation == Activation::Relu;
        let want = bias.iter().map(|&b| if relu { b.max(0.0) } else { b });
        assert!(want.eq(got[COLS..2 * COLS].iter().copied()));
    }
}

#[test]
fn precisions_round_factors_and_no_more() {
    let Some(device) = device() else { return };
    let product = |precision| {
        let options = CudaOptions::default().with_precision(precision);
        let mut cuda = Cuda::new(&device, options).expect("a backend");
        let mut layer = Layer::new(&mut cuda, 1);
        layer.product(&mut cuda).expect("it fits");
        down(&mut cuda, &layer.out)
    };
    let exact = product(Precision::F32);
    // Each of the 19 products of factors below 1 is off by at most two roundings of a factor.
    for (precision, fraction_bits) in [(Precision::Tf32, 10), (Precision::Bf16, 7)] {
        let most = INNER as f32 * 2.0 * 0.5_f32.powi(fraction_bits + 1);
        let apart = exact.iter().zip(product(precision)).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f32::max);
        assert!(apart > 0.0 && apart <= most, "{precision:?}: {apart}, at most {most}");
    }
}

#[test]
fn a_rule_with_a_history_steps_as_on_the_cpu() {
    fn step<B: Backend>(backend: &mut B) -> Vec<u32> {
        let emb_optim::Rule::AdaGrad(adagrad) = Optimizer::new(RuleKind::AdaGrad).rule(0.1, 1)
        else {
            unreachable!("invariant: the rule that was asked for")
        };
        let rule = emb_optim::Rule::AdaGrad(emb_optim::AdaGrad { history: true, ..adagrad });
        let len = 1001;
        let (mut parameter, gradient) =
            (up(backend, &numbers(len, 1)), up(backend, &numbers(len, 2)));
        let state: Vec<f32> = numbers(2 * len, 3).iter().map(|x| x.abs()).collect();
        let mut state = up(backend, &state);
        backend
            .dense_update(
                &rule,
                B::view_mut(&mut parameter, 0..len),
                B::view_mut(&mut state, 0..2 * len),
                B::view(&gradient, 0..len),
            )
            .expect("it fits");
        bits(&[down(backend, &parameter), down(backend, &state)].concat())
    }
    let Some(device) = device() else { return };
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    assert_eq!(step(&mut cpu), step(&mut cuda(&device)));
}
