//! Matrices on the host and the device, and what the checks do with them.

use crate::{Backend, Mat};

/// Gradient of `<upstream, f(x)>` by central differences.
pub(super) fn differences(x: &[f64], upstream: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    const STEP: f64 = 1e-4;
    let mut moved = x.to_vec();
    let mut value = |k: usize, to: f64| {
        let from = std::mem::replace(&mut moved[k], to);
        let value: f64 = f(&moved).iter().zip(upstream).map(|(f, u)| f * u).sum();
        moved[k] = from;
        value
    };
    (0..x.len()).map(|k| (value(k, x[k] + STEP) - value(k, x[k] - STEP)) / (2.0 * STEP)).collect()
}

/// Asserts that `gradient` is that of `<upstream, f(x)>` by central differences. Long vectors are
/// left out, they would take minutes.
pub(super) fn assert_slope(
    what: &str,
    gradient: &[f64],
    x: &[f64],
    upstream: &[f64],
    f: impl Fn(&[f64]) -> Vec<f64>,
) {
    if x.len() * upstream.len() > 200_000 {
        return;
    }
    for (k, (want, got)) in differences(x, upstream, f).into_iter().zip(gradient).enumerate() {
        assert!(
            (want - got).abs() < 1e-7,
            "{what}: gradient {k} of the reference is not its slope"
        );
    }
}

/// Runs twice with one thread and once with two, on fresh backends and on a used one, and asserts
/// that no bit differs.
pub(super) fn same_everywhere<B: Backend>(
    make: &impl Fn(usize) -> B,
    what: &str,
    mut run: impl FnMut(&mut On<B>) -> Vec<f32>,
) -> Vec<f32> {
    let mut one = On(make(1));
    let first = run(&mut one);
    let mut same = |on: &mut On<B>, how: &str| {
        let other = run(on);
        let same = first.iter().zip(&other).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same && first.len() == other.len(), "{what}: {how} differs from the first run");
    };
    same(&mut one, "a repeat");
    same(&mut On(make(2)), "a run with two threads");
    first
}

/// A matrix on the host, its rows padded.
pub(super) struct Host {
    pub(super) data: Vec<f32>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) stride: usize,
}

impl Host {
    /// Values in -1..1, mixed by `SplitMix64`.
    pub(super) fn new((rows, cols): (usize, usize), pad: usize, salt: u64) -> Self {
        let mixed = |k: u64| {
            let z = (salt << 32 | k).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        let stride = cols + pad;
        Self { data: (1..=(rows * stride) as u64).map(mixed).collect(), rows, cols, stride }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        f64::from(self.data[i * self.stride + j])
    }

    pub(super) fn row(&self, i: usize) -> Vec<f64> {
        (0..self.cols).map(|j| self.at(i, j)).collect()
    }

    pub(super) fn wide(&self) -> Vec<f64> {
        (0..self.rows).flat_map(|i| self.row(i)).collect()
    }

    /// Asserts that `got`, laid out as `self`, is `want` and that padding was left as in `self`.
    pub(super) fn assert_close(
        &self,
        what: &str,
        got: &[f32],
        tolerance: f64,
        want: impl Fn(usize, usize) -> f64,
    ) {
        assert_eq!(got.len(), self.data.len(), "{what}");
        for (k, &got) in got.iter().enumerate() {
            let (i, j) = (k / self.stride, k % self.stride);
            if j >= self.cols {
                assert_eq!(got.to_bits(), self.data[k].to_bits(), "{what}: padding of row {i}");
                continue;
            }
            let want = want(i, j);
            let error = (f64::from(got) - want).abs();
            assert!(error <= tolerance * want.abs().max(1.0), "{what} ({i}, {j}): {got} vs {want}");
        }
    }
}

/// A matrix on the device.
pub(super) struct Device<B: Backend> {
    buffer: B::Buffer<f32>,
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<B: Backend> Device<B> {
    pub(super) fn all(&self) -> B::View<'_, f32> {
        B::view(&self.buffer, 0..B::len(&self.buffer))
    }

    pub(super) fn all_mut(&mut self) -> B::ViewMut<'_, f32> {
        let len = B::len(&self.buffer);
        B::view_mut(&mut self.buffer, 0..len)
    }

    pub(super) fn mat(&self) -> Mat<B::View<'_, f32>> {
        Mat::with_stride(self.all(), self.rows, self.cols, self.stride)
    }

    pub(super) fn mat_mut(&mut self) -> Mat<B::ViewMut<'_, f32>> {
        let (rows, cols, stride) = (self.rows, self.cols, self.stride);
        Mat::with_stride(self.all_mut(), rows, cols, stride)
    }
}

/// A backend, with what the checks do on it.
pub(super) struct On<B: Backend>(pub(super) B);

impl<B: Backend> On<B> {
    pub(super) fn up(&mut self, host: &Host) -> Device<B> {
        let mut buffer = self.0.zeros(host.data.len()).expect("the device has memory");
        let to = B::view_mut(&mut buffer, 0..host.data.len());
        self.0.upload(&host.data, to).expect("the device copies");
        Device { buffer, rows: host.rows, cols: host.cols, stride: host.stride }
    }

    pub(super) fn down(&mut self, device: &Device<B>) -> Vec<f32> {
        let mut data = vec![0.0; B::len(&device.buffer)];
        self.0.download(device.all(), &mut data).expect("the device copies");
        data
    }

    /// What `work` makes of a copy of `before`.
    pub(super) fn write(
        &mut self,
        before: &Host,
        work: impl FnOnce(&mut B, Mat<B::ViewMut<'_, f32>>) -> crate::Result<()>,
    ) -> Vec<f32> {
        self.try_write(before, work).expect("the shapes fit")
    }

    /// What `work` makes of a copy of `before`; after an error nothing may have been written.
    pub(super) fn try_write(
        &mut self,
        before: &Host,
        work: impl FnOnce(&mut B, Mat<B::ViewMut<'_, f32>>) -> crate::Result<()>,
    ) -> crate::Result<Vec<f32>> {
        let mut device = self.up(before);
        let result = work(&mut self.0, device.mat_mut());
        let after = self.down(&device);
        if let Err(error) = &result {
            assert_eq!(after, before.data, "written despite {error}");
        }
        result.map(|()| after)
    }

    /// What `work` makes of copies of `first` and `second`.
    pub(super) fn write2(
        &mut self,
        first: &Host,
        second: &Host,
        work: impl FnOnce(
            &mut B,
            Mat<B::ViewMut<'_, f32>>,
            Mat<B::ViewMut<'_, f32>>,
        ) -> crate::Result<()>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (mut a, mut b) = (self.up(first), self.up(second));
        work(&mut self.0, a.mat_mut(), b.mat_mut()).expect("the shapes fit");
        (self.down(&a), self.down(&b))
    }
}
