use super::{gemm, warm_up};
use crate::cpu::testing::{on, same_bits, values};
use crate::{Accumulate, Error, Mat, Transpose, reference};
use Accumulate::{Add, Replace};
use Transpose::{No, Yes};

/// An operand as stored, `pad` elements wider than it needs.
fn stored(data: &[f32], rows: usize, cols: usize, t: Transpose, pad: usize) -> Mat<&[f32]> {
    let (rows, cols) = if t == Yes { (cols, rows) } else { (rows, cols) };
    Mat::with_stride(data, rows, cols, cols + pad)
}

struct Case {
    shape: (usize, usize, usize),
    ta: Transpose,
    tb: Transpose,
    how: Accumulate,
    pad: usize,
}

impl Case {
    fn data(&self) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let (m, n, k) = self.shape;
        let room = |rows: usize, cols: usize| (rows + self.pad) * (cols + self.pad) + rows * cols;
        (values(room(m, k), 1), values(room(k, n), 2), values(m * (n + self.pad), 3))
    }

    fn run(&self, threads: usize) -> Vec<f32> {
        let (m, n, k) = self.shape;
        let (a, b, mut out) = self.data();
        let product = |out: &mut [f32]| {
            gemm(
                threads,
                stored(&a, m, k, self.ta, self.pad),
                self.ta,
                stored(&b, k, n, self.tb, self.pad),
                self.tb,
                self.how,
                Mat::with_stride(out, m, n, n + self.pad),
            )
            .expect("the shapes fit");
        };
        on(threads, || product(&mut out));
        out
    }

    fn check(&self) {
        let (m, n, k) = self.shape;
        let (a, b, before) = self.data();
        let at = |data: &[f32], rows, cols, t, i: usize, j: usize| {
            let mat = stored(data, rows, cols, t, self.pad);
            let (i, j) = if t == Yes { (j, i) } else { (i, j) };
            f64::from(mat.data[i * mat.stride + j])
        };
        let product = reference::dense::gemm(
            (m, n, k),
            |i, p| at(&a, m, k, self.ta, i, p),
            |p, j| at(&b, k, n, self.tb, p, j),
        );
        let got = self.run(1);
        for i in 0..m {
            for j in 0..n + self.pad {
                let at = i * (n + self.pad) + j;
                if j >= n {
                    assert_eq!(got[at], before[at], "padding of row {i} was written");
                    continue;
                }
                let before = if self.how == Add { f64::from(before[at]) } else { 0.0 };
                let want = before + product[i * n + j];
                let bound = 1e-6 * (k as f64 + 1.0).sqrt() * 4.0;
                let error = (f64::from(got[at]) - want).abs();
                assert!(error <= bound, "{:?} ({i}, {j}): {} vs {want}", self.shape, got[at]);
            }
        }
    }
}

fn cases(shapes: &[(usize, usize, usize)]) -> impl Iterator<Item = Case> {
    shapes.iter().flat_map(|&shape| {
        [(No, No), (No, Yes), (Yes, No), (Yes, Yes)].into_iter().flat_map(move |(ta, tb)| {
            [(Replace, 0), (Add, 3)].map(|(how, pad)| Case { shape, ta, tb, how, pad })
        })
    })
}

/// `(m, n, k)`: empty, single, below, at and above tiles and blocks, layers of real models.
const SHAPES: [(usize, usize, usize); 21] = [
    (0, 3, 4),
    (3, 0, 4),
    (5, 7, 0),
    (1, 1, 0),
    (1, 1, 1),
    (1, 1, 300),
    (1, 40, 300),
    (33, 1, 257),
    (40, 1, 1),
    (5, 15, 2),
    (6, 16, 3),
    (7, 17, 255),
    (12, 32, 256),
    (13, 33, 257),
    (96, 64, 64),
    (97, 65, 513),
    (3, 1025, 9),
    (128, 512, 13),
    (128, 256, 479),
    (64, 13, 128),
    (200, 415, 100),
];

#[test]
fn equals_the_reference_for_every_orientation() {
    cases(&SHAPES).for_each(|case| case.check());
}

#[test]
fn one_two_and_three_threads_give_the_same_bits() {
    for case in
        cases(&[(96, 64, 64), (97, 65, 513), (130, 512, 13), (64, 256, 640), (2048, 1, 256)])
    {
        let one = case.run(1);
        for threads in [2, 3] {
            let many = case.run(threads);
            assert!(same_bits(&one, &many), "{:?} with {threads} threads", case.shape);
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_every_batch() {
    for (n, k) in [(1, 256), (1, 7), (16, 32), (64, 256), (512, 13), (256, 1000)] {
        for tb in [No, Yes] {
            let (a, b) = (values(512 * k, 5), values(n * k, 6));
            let product = |first: usize, batch: usize| {
                let mut out = vec![0.0; batch * n];
                gemm(
                    1,
                    Mat::new(&a[first * k..], batch, k),
                    No,
                    stored(&b, k, n, tb, 0),
                    tb,
                    Replace,
                    Mat::new(&mut out, batch, n),
                )
                .expect("the shapes fit");
                out
            };
            let whole = product(0, 512);
            for (first, batch) in [(0, 1), (3, 2), (8, 8), (100, 64), (511, 1), (255, 256)] {
                let part = product(first, batch);
                let want = &whole[first * n..][..batch * n];
                assert!(same_bits(&part, want), "rows {first}.. of {batch}, n {n}, k {k}, {tb:?}");
            }
        }
    }
}

#[test]
fn replace_does_not_read_the_output() {
    for (m, n, k) in [(7, 17, 5), (9, 1, 40), (1, 20, 4), (4, 4, 0)] {
        let (a, b) = (values(m * k, 1), values(k * n, 2));
        let mut out = vec![f32::NAN; m * n];
        let out_mat = Mat::new(&mut out[..], m, n);
        gemm(1, Mat::new(&a, m, k), No, Mat::new(&b, k, n), No, Replace, out_mat)
            .expect("the shapes fit");
        assert!(out.iter().all(|x| x.is_finite()), "{m} x {n} x {k}");
    }
}

#[test]
fn a_wrong_shape_is_refused_with_the_operand_named_and_nothing_written() {
    let data = [1.0f32; 100];
    let refused = |a: Mat<&[f32]>, b: Mat<&[f32]>, rows: usize, cols: usize| {
        let mut out = [7.0f32; 100];
        let error = gemm(1, a, No, b, No, Replace, Mat::new(&mut out, rows, cols))
            .expect_err("the shapes do not fit");
        assert!(out.iter().all(|&x| x == 7.0), "{error}");
        let Error::Shape { operation: "gemm", what, expected, got } = error else {
            panic!("{error}")
        };
        (what, expected, got)
    };
    let mat = |rows, cols| Mat::new(&data[..], rows, cols);
    let inner = "inner dimension of b (that of a is expected)";
    assert_eq!(refused(mat(2, 3), mat(4, 5), 2, 5), (inner, 3, 4));
    assert_eq!(refused(mat(2, 3), mat(3, 5), 3, 5), ("rows of out", 2, 3));
    assert_eq!(refused(mat(2, 3), mat(3, 5), 2, 4), ("columns of out", 5, 4));
    assert_eq!(refused(mat(20, 30), mat(30, 5), 20, 5), ("elements of a at least", 600, 100));
    assert_eq!(refused(mat(1, 60), mat(60, 5), 1, 5), ("elements of b at least", 300, 100));
    let narrow = Mat::with_stride(&data[..], 2, 3, 2);
    assert_eq!(refused(narrow, mat(3, 5), 2, 5), ("stride of a at least", 3, 2));
}

#[test]
fn warm_up_reaches_every_thread() {
    warm_up(1);
    on(2, || warm_up(2));
}
