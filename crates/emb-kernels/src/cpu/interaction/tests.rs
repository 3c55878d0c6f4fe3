use super::{interact, interact_backward, out_cols};
use crate::cpu::testing::{assert_close, on, same_bits, values, wide};
use crate::reference::dense as reference;
use crate::{Error, Mat, PairOrder};
use PairOrder::{Lower, Upper};

const SHAPES: [(usize, usize, usize); 16] = [
    (0, 3, 4),
    (3, 1, 8),
    (2, 2, 1),
    (3, 4, 0),
    (5, 6, 16),
    (4, 7, 15),
    (3, 13, 17),
    (3, 16, 8),
    (2, 17, 32),
    (5, 27, 64),
    (2, 27, 128),
    (2, 33, 33),
    (2, 40, 10),
    (1, 65, 7),
    (1, 3, 300),
    (7, 12, 32),
];

fn forward(
    threads: usize,
    (batch, features, dim): (usize, usize, usize),
    order: PairOrder,
) -> Vec<f32> {
    let x = values(batch * (features * dim + 5), 7);
    let cols = out_cols(features, dim);
    let mut out = vec![9.0; batch * (cols + 2)];
    on(threads, || {
        interact(
            threads,
            Mat::with_stride(&x[..], batch, features * dim, features * dim + 5),
            features,
            Mat::with_stride(&mut out[..], batch, cols, cols + 2),
            order,
        )
    })
    .expect("the shapes fit");
    out
}

fn backward(
    threads: usize,
    (batch, features, dim): (usize, usize, usize),
    order: PairOrder,
) -> Vec<f32> {
    let x = values(batch * (features * dim + 5), 7);
    let cols = out_cols(features, dim);
    let gradient = values(batch * (cols + 1), 8);
    let mut out = vec![9.0; batch * (features * dim + 3)];
    on(threads, || {
        interact_backward(
            threads,
            Mat::with_stride(&x[..], batch, features * dim, features * dim + 5),
            features,
            Mat::with_stride(&gradient[..], batch, cols, cols + 1),
            Mat::with_stride(&mut out[..], batch, features * dim, features * dim + 3),
            order,
        )
    })
    .expect("the shapes fit");
    out
}

#[test]
fn both_directions_equal_the_reference() {
    for shape @ (batch, features, dim) in SHAPES {
        for order in [Lower, Upper] {
            let (width, cols) = (features * dim, out_cols(features, dim));
            let x = wide(&values(batch * (width + 5), 7));
            let gradient = wide(&values(batch * (cols + 1), 8));
            let (out, x_gradient) = (forward(1, shape, order), backward(1, shape, order));
            for b in 0..batch {
                let x = &x[b * (width + 5)..][..width];
                let want = reference::interact(x, features, order);
                let what = format!("{shape:?} {order:?} forward");
                assert_close(&what, &out[b * (cols + 2)..][..cols], &want, 1e-5);
                assert_eq!(out[b * (cols + 2) + cols..][..2], [9.0; 2], "padding was written");
                let gradient = &gradient[b * (cols + 1)..][..cols];
                let want = reference::interact_backward(x, features, gradient, order);
                let what = format!("{shape:?} {order:?} backward");
                assert_close(&what, &x_gradient[b * (width + 3)..][..width], &want, 1e-5);
                assert_eq!(x_gradient[b * (width + 3) + width..][..3], [9.0; 3], "padding");
            }
        }
    }
}

#[test]
fn one_two_and_three_threads_give_the_same_bits() {
    for shape in [(65, 27, 64), (31, 9, 20)] {
        for order in [Lower, Upper] {
            for threads in [2, 3] {
                assert!(same_bits(&forward(1, shape, order), &forward(threads, shape, order)));
                assert!(same_bits(&backward(1, shape, order), &backward(threads, shape, order)));
            }
        }
    }
}

#[test]
fn lower_and_upper_are_the_same_numbers_in_another_order() {
    let (features, dim) = (27, 64);
    let (lower, upper) =
        (forward(1, (1, features, dim), Lower), forward(1, (1, features, dim), Upper));
    let of_upper = reference::pairs(features, Upper);
    for (p, (i, j)) in reference::pairs(features, Lower).into_iter().enumerate() {
        let q = of_upper.iter().position(|&pair| pair == (j, i)).expect("every pair is there");
        assert_eq!(lower[dim + p].to_bits(), upper[dim + q].to_bits(), "pair ({i}, {j})");
    }
}

#[test]
fn a_wrong_shape_is_refused_with_the_operand_named_and_nothing_written() {
    let x = [1.0; 64];
    let mut out = [7.0; 64];
    let mut refused = |cols: usize, out_cols: usize| {
        let out_mat = Mat::new(&mut out[..], 2, out_cols);
        interact(1, Mat::new(&x[..], 2, cols), 3, out_mat, Lower).expect_err("refused")
    };
    let Error::Shape { operation: "interact", what, expected: 9, got: 10 } = refused(10, 6) else {
        panic!("another error")
    };
    assert!(what.starts_with("columns of x"), "{what}");
    let Error::Shape { what: "columns of out", expected: 7, got: 6, .. } = refused(12, 6) else {
        panic!("another error")
    };
    assert!(out.iter().all(|&o| o == 7.0));
}
