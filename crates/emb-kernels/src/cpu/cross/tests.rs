use super::{cross, cross_backward};
use crate::cpu::testing::{assert_close, on, same_bits, values, wide};
use crate::reference::dense as reference;
use crate::{Error, Mat};

const SHAPES: [(usize, usize); 5] = [(0, 4), (1, 1), (5, 63), (300, 65), (257, 432)];

/// Output, gradients of `u`, `x0` (added to values of salt 6) and `bias`.
fn run(threads: usize, rows: usize, cols: usize) -> [Vec<f32>; 4] {
    let [x0, u, x, gradient] = [1, 2, 3, 4].map(|salt| values(rows * cols, salt));
    let bias = values(cols, 5);
    let (mut out, mut of_u) = (vec![0.0; rows * cols], vec![0.0; rows * cols]);
    let (mut of_x0, mut of_bias) = (values(rows * cols, 6), vec![0.0; cols]);
    let mat = |data| Mat::new(data, rows, cols);
    on(threads, || {
        let to = Mat::new(&mut out[..], rows, cols);
        cross(threads, mat(&x0[..]), mat(&u), &bias, mat(&x), to).expect("fits");
        cross_backward(
            threads,
            mat(&x0[..]),
            mat(&u),
            &bias,
            mat(&gradient),
            Mat::new(&mut of_u[..], rows, cols),
            Mat::new(&mut of_x0[..], rows, cols),
            &mut of_bias,
        )
        .expect("fits");
    });
    [out, of_u, of_x0, of_bias]
}

#[test]
fn both_directions_equal_the_reference() {
    for (rows, cols) in SHAPES {
        let [x0, u, x, gradient] = [1, 2, 3, 4].map(|salt| wide(&values(rows * cols, salt)));
        let bias = wide(&values(cols, 5));
        let [out, of_u, of_x0, of_bias] = run(1, rows, cols);
        assert_close("out", &out, &reference::cross(&x0, &u, &bias, &x), 1e-6);
        let (want_u, added, want_bias) = reference::cross_backward(&x0, &u, &bias, &gradient);
        let before = wide(&values(rows * cols, 6));
        let want_x0: Vec<f64> = before.iter().zip(&added).map(|(a, b)| a + b).collect();
        assert_close("u gradient", &of_u, &want_u, 1e-6);
        assert_close("x0 gradient", &of_x0, &want_x0, 1e-6);
        assert_close("bias gradient", &of_bias, &want_bias, 1e-5);
    }
}

#[test]
fn threads_change_no_bit() {
    for (rows, cols) in SHAPES {
        let one = run(1, rows, cols);
        for threads in [2, 3] {
            let many = run(threads, rows, cols);
            assert!(one.iter().zip(&many).all(|(a, b)| same_bits(a, b)), "{rows} x {cols}");
        }
    }
}

#[test]
fn a_wrong_shape_is_refused_with_the_operand_named_and_nothing_written() {
    let data = [1.0f32; 6];
    let mut out = [7.0f32; 6];
    let mat = |rows, cols| Mat::new(&data[..], rows, cols);
    let to = Mat::new(&mut out[..], 2, 3);
    let error = cross(1, mat(2, 3), mat(2, 3), &[0.0; 3], mat(3, 2), to).expect_err("x");
    let Error::Shape { operation: "cross", what: "rows of x", expected: 2, got: 3 } = error else {
        panic!("{error}")
    };
    assert_eq!(out, [7.0; 6]);
}
