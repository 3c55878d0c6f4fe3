use super::{bias_activation, bias_activation_backward};
use crate::cpu::testing::{assert_close, on, same_bits, values, wide};
use crate::reference::dense as reference;
use crate::{Activation, Error, Mat};
use Activation::{Linear, Relu};

const SHAPES: [(usize, usize); 8] =
    [(0, 3), (3, 0), (1, 1), (7, 64), (257, 65), (2048, 1), (513, 130), (600, 256)];

#[test]
fn forward_and_backward_equal_the_reference() {
    for (rows, cols) in SHAPES.into_iter().filter(|&(_, cols)| cols > 0) {
        for activation in [Linear, Relu] {
            let x = values(rows * cols, 1);
            let bias = values(cols, 2);
            let mut y = x.clone();
            bias_activation(1, Mat::new(&mut y[..], rows, cols), &bias, activation).expect("fits");
            let want = reference::bias_activation(&wide(&x), &wide(&bias), activation);
            assert_close("y", &y, &want, 1e-6);
            let upstream = values(rows * cols, 3);
            let (mut gradient, mut sums) = (upstream.clone(), vec![f32::NAN; cols]);
            let of = Mat::new(&mut gradient[..], rows, cols);
            let y_mat = Mat::new(&y[..], rows, cols);
            bias_activation_backward(1, y_mat, activation, of, &mut sums).expect("fits");
            let (masked, total) =
                reference::bias_activation_backward(&wide(&y), cols, activation, &wide(&upstream));
            assert_eq!(wide(&gradient), masked);
            assert_close("sums", &sums, &total, 1e-5);
        }
    }
}

#[test]
fn threads_and_strides_change_no_bit() {
    for (rows, cols) in SHAPES {
        let run = |threads: usize, pad: usize| {
            let stride = cols + pad;
            let spread = |data: Vec<f32>| {
                let mut out = vec![5.0; rows * stride];
                for (i, value) in data.into_iter().enumerate() {
                    out[i / cols * stride + i % cols] = value;
                }
                out
            };
            let (mut x, mut g) = (spread(values(rows * cols, 1)), spread(values(rows * cols, 3)));
            let (bias, mut sums) = (values(cols, 2), vec![0.0; cols]);
            on(threads, || {
                let mat = Mat::with_stride(&mut x[..], rows, cols, stride);
                bias_activation(threads, mat, &bias, Relu).expect("fits");
                let y = Mat::with_stride(&x[..], rows, cols, stride);
                let of = Mat::with_stride(&mut g[..], rows, cols, stride);
                bias_activation_backward(threads, y, Relu, of, &mut sums).expect("fits");
            });
            let rows_of = |data: Vec<f32>| -> Vec<f32> {
                data.chunks(stride.max(1)).flat_map(|row| row[..cols].to_vec()).collect()
            };
            [rows_of(x), rows_of(g), sums]
        };
        let one = run(1, 0);
        for (threads, pad) in [(1, 3), (2, 0), (3, 1)] {
            let other = run(threads, pad);
            assert!(one.iter().zip(&other).all(|(a, b)| same_bits(a, b)), "{rows} x {cols}");
        }
    }
}

#[test]
fn nan_survives_the_activation() {
    let mut x = [f32::NAN, -1.0, 2.0];
    bias_activation(1, Mat::new(&mut x[..], 1, 3), &[0.0; 3], Relu).expect("fits");
    assert!(x[0].is_nan());
    assert_eq!(x[1..], [0.0, 2.0]);
}

#[test]
fn a_wrong_shape_is_refused_with_the_operand_named_and_nothing_written() {
    let mut x = [7.0f32; 6];
    let error = bias_activation(1, Mat::new(&mut x[..], 2, 3), &[0.0; 2], Relu).expect_err("bias");
    let Error::Shape { what: "elements of bias", expected: 3, got: 2, .. } = error else {
        panic!("{error}")
    };
    let y = [0.0f32; 6];
    let of = Mat::new(&mut x[..], 2, 3);
    let error = bias_activation_backward(1, Mat::new(&y[..], 3, 2), Relu, of, &mut [0.0; 2])
        .expect_err("gradient");
    let Error::Shape { what: "rows of gradient", expected: 3, got: 2, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(x, [7.0; 6]);
}
