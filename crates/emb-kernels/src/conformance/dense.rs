//! The dense operations: products, interaction, cross layer, loss, updates.
//!
//! Every check takes `make(threads)`, which makes a backend of that parallelism (a device that has
//! no such notion ignores it), and panics with what differs. Results are compared with
//! [`reference`](crate::reference::dense), gradients also with central differences of it, and
//! bitwise between repeats and between one and two threads.

mod harness;

use crate::reference::dense as reference;
use crate::{Accumulate, Activation, Backend, Error, PairOrder, Transpose};
use emb_optim::{Optimizer, RowRule, RowState, RuleKind, RuleVisitor, Statistic};
use harness::{Host, On, assert_slope, differences, same_everywhere};

/// Runs every check of this module.
///
/// # Panics
/// When a result differs from its specification.
pub fn all<B: Backend>(make: impl Fn(usize) -> B) {
    gemm(&make);
    bias_activation(&make);
    interact(&make);
    cross(&make);
    bce_with_logits(&make);
    dense_update(&make);
}

/// Products of every orientation, with both ways to accumulate.
///
/// # Panics
/// When a result differs from its specification.
pub fn gemm<B: Backend>(make: impl Fn(usize) -> B) {
    const SHAPES: [(usize, usize, usize); 14] = [
        (0, 3, 2),
        (3, 0, 2),
        (3, 4, 0),
        (1, 1, 1),
        (2, 3, 1),
        (1, 33, 300),
        (257, 1, 65),
        (5, 17, 33),
        (13, 512, 64),
        (64, 13, 512),
        (97, 65, 513),
        (128, 256, 479),
        (31, 1, 1),
        (9, 300, 2),
    ];
    for (case, &(m, n, k)) in SHAPES.iter().enumerate() {
        for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
            for (accumulate, pad) in [(Accumulate::Replace, 0), (Accumulate::Add, 3)] {
                let what = format!("gemm {m}x{n}x{k}, transposed {ta} {tb}, {accumulate:?}");
                let a = Host::new(if ta { (k, m) } else { (m, k) }, pad, 3 * case as u64);
                let b = Host::new(if tb { (n, k) } else { (k, n) }, pad, 3 * case as u64 + 1);
                let before = Host::new((m, n), pad, 3 * case as u64 + 2);
                let transpose = |yes| if yes { Transpose::Yes } else { Transpose::No };
                let got = same_everywhere(&make, &what, |on| {
                    let (a, b) = (on.up(&a), on.up(&b));
                    on.write(&before, |backend, out| {
                        let (a, b) = (a.mat(), b.mat());
                        backend.gemm(a, transpose(ta), b, transpose(tb), accumulate, out)
                    })
                });
                let product = reference::gemm(
                    (m, n, k),
                    |i, p| if ta { a.at(p, i) } else { a.at(i, p) },
                    |p, j| if tb { b.at(j, p) } else { b.at(p, j) },
                );
                let keep = f64::from(u8::from(accumulate == Accumulate::Add));
                let tolerance = 4e-6 * (k as f64 + 1.0).sqrt();
                before.assert_close(&what, &got, tolerance, |i, j| {
                    keep * before.at(i, j) + product[i * n + j]
                });
            }
        }
    }
    let mut on = On(make(1));
    let (a, b) = (on.up(&Host::new((2, 3), 0, 1)), on.up(&Host::new((4, 2), 0, 2)));
    let refused = on.try_write(&Host::new((2, 2), 0, 3), |backend, out| {
        backend.gemm(a.mat(), Transpose::No, b.mat(), Transpose::No, Accumulate::Replace, out)
    });
    assert!(matches!(refused, Err(Error::Shape { operation: "gemm", .. })), "{refused:?}");
}

/// Bias and activation, forward and backward.
///
/// # Panics
/// When a result differs from its specification.
pub fn bias_activation<B: Backend>(make: impl Fn(usize) -> B) {
    for (rows, cols) in [(0, 3), (1, 1), (7, 64), (257, 65), (600, 1), (300, 129)] {
        for activation in [Activation::Linear, Activation::Relu] {
            let what = format!("bias_activation {rows}x{cols} {activation:?}");
            let (x, bias) = (Host::new((rows, cols), 2, 1), Host::new((1, cols), 0, 2));
            let y = same_everywhere(&make, &what, |on| {
                let bias = on.up(&bias);
                on.write(&x, |backend, x| backend.bias_activation(x, bias.all(), activation))
            });
            let want = reference::bias_activation(&x.wide(), &bias.wide(), activation);
            x.assert_close(&what, &y, 1e-6, |i, j| want[i * cols + j]);

            let y = Host { data: y, ..x };
            let upstream = Host::new((rows, cols), 1, 3);
            let mut sums = Vec::new();
            let masked = same_everywhere(&make, &what, |on| {
                let y = on.up(&y);
                let (masked, total) = on.write2(&upstream, &bias, |backend, g, sums| {
                    backend.bias_activation_backward(y.mat(), activation, g, sums.data)
                });
                sums.clone_from(&total);
                [masked, total].concat()
            });
            let (want, want_sums) =
                reference::bias_activation_backward(&y.wide(), cols, activation, &upstream.wide());
            let masked = &masked[..upstream.data.len()];
            upstream.assert_close(&what, masked, 0.0, |i, j| want[i * cols + j]);
            bias.assert_close(&what, &sums, 1e-5, |_, j| want_sums[j]);
        }
    }
}

/// The interaction, forward and backward, in both pair orders.
///
/// # Panics
/// When a result differs from its specification.
pub fn interact<B: Backend>(make: impl Fn(usize) -> B) {
    for (batch, features, dim) in
        [(0, 3, 4), (2, 1, 8), (3, 2, 1), (5, 6, 16), (4, 7, 15), (9, 27, 64), (2, 33, 130)]
    {
        for order in [PairOrder::Lower, PairOrder::Upper] {
            let what = format!("interact {batch}x{features}x{dim} {order:?}");
            let x = Host::new((batch, features * dim), 3, 1);
            let out = Host::new((batch, reference::interact_cols(features, dim)), 1, 2);
            let got = same_everywhere(&make, &what, |on| {
                let x = on.up(&x);
                on.write(&out, |backend, out| backend.interact(x.mat(), features, out, order))
            });
            let want: Vec<_> =
                (0..batch).map(|b| reference::interact(&x.row(b), features, order)).collect();
            out.assert_close(&what, &got, 1e-5, |b, j| want[b][j]);

            let gradient = out;
            let got = same_everywhere(&make, &what, |on| {
                let (x_view, gradient) = (on.up(&x), on.up(&gradient));
                on.write(&x, |backend, out| {
                    let (x, gradient) = (x_view.mat(), gradient.mat());
                    backend.interact_backward(x, features, gradient, out, order)
                })
            });
            let want: Vec<_> = (0..batch)
                .map(|b| {
                    let (x, upstream) = (x.row(b), gradient.row(b));
                    let want = reference::interact_backward(&x, features, &upstream, order);
                    let forward = |x: &[f64]| reference::interact(x, features, order);
                    assert_slope(&what, &want, &x, &upstream, forward);
                    want
                })
                .collect();
            x.assert_close(&what, &got, 1e-5, |b, j| want[b][j]);
        }
    }
}

/// The cross layer, forward and backward.
///
/// # Panics
/// When a result differs from its specification.
pub fn cross<B: Backend>(make: impl Fn(usize) -> B) {
    for (rows, cols) in [(0, 4), (1, 1), (5, 63), (300, 65), (3, 432)] {
        let what = format!("cross {rows}x{cols}");
        let [x0, u, x, gradient] = [1, 2, 3, 4].map(|salt| Host::new((rows, cols), 2, salt));
        let bias = Host::new((1, cols), 0, 5);
        let got = same_everywhere(&make, &what, |on| {
            let (x0, u, x_view, bias) = (on.up(&x0), on.up(&u), on.up(&x), on.up(&bias));
            on.write(&x, |backend, out| {
                backend.cross(x0.mat(), u.mat(), bias.all(), x_view.mat(), out)
            })
        });
        let want = reference::cross(&x0.wide(), &u.wide(), &bias.wide(), &x.wide());
        x.assert_close(&what, &got, 1e-6, |i, j| want[i * cols + j]);

        let mut sums = Vec::new();
        let got = same_everywhere(&make, &what, |on| {
            let (x0_view, u_view) = (on.up(&x0), on.up(&u));
            let (bias_view, gradient) = (on.up(&bias), on.up(&gradient));
            let mut of_bias = on.up(&bias);
            let (of_u, of_x0) = on.write2(&u, &x0, |backend, of_u, of_x0| {
                let (x0, u) = (x0_view.mat(), u_view.mat());
                let (bias, of_bias) = (bias_view.all(), of_bias.all_mut());
                backend.cross_backward(x0, u, bias, gradient.mat(), of_u, of_x0, of_bias)
            });
            sums = on.down(&of_bias);
            [of_u, of_x0, sums.clone()].concat()
        });
        let (of_u, of_x0) = got.split_at(u.data.len());
        let (x0_wide, u_wide) = (x0.wide(), u.wide());
        let (bias_wide, upstream) = (bias.wide(), gradient.wide());
        let (want_u, want_x0, want_bias) =
            reference::cross_backward(&x0_wide, &u_wide, &bias_wide, &upstream);
        let zero = vec![0.0; x0_wide.len()];
        let cross = |x0: &[f64], u: &[f64], bias: &[f64]| reference::cross(x0, u, bias, &zero);
        assert_slope(&what, &want_u, &u_wide, &upstream, |u| cross(&x0_wide, u, &bias_wide));
        assert_slope(&what, &want_x0, &x0_wide, &upstream, |x0| cross(x0, &u_wide, &bias_wide));
        assert_slope(&what, &want_bias, &bias_wide, &upstream, |b| cross(&x0_wide, &u_wide, b));
        u.assert_close(&what, of_u, 1e-6, |i, j| want_u[i * cols + j]);
        let of_x0 = &of_x0[..x0.data.len()];
        x0.assert_close(&what, of_x0, 1e-6, |i, j| x0.at(i, j) + want_x0[i * cols + j]);
        bias.assert_close(&what, &sums, 1e-5, |_, j| want_bias[j]);
    }
}

/// The loss and its gradient.
///
/// # Panics
/// When a result differs from its specification.
pub fn bce_with_logits<B: Backend>(make: impl Fn(usize) -> B) {
    let mut cases = vec![(1.0f32, 0.3f32), (-1000.0, 1.0), (1000.0, 0.0), (0.0, 0.5)];
    let random = Host::new((500, 2), 0, 1);
    cases.extend(random.data.chunks(2).map(|c| (c[0] * 20.0, f32::from(c[1] > 0.0))));
    for samples in [0, 1, 2, cases.len()] {
        let column = |data: Vec<f32>| Host { rows: 1, cols: samples, stride: samples, data };
        let logits = column(cases.iter().take(samples).map(|c| c.0).collect());
        let labels = column(cases.iter().take(samples).map(|c| c.1).collect());
        let mut total = f64::NAN;
        let scale = 0.25;
        let gradient = same_everywhere(&make, "bce_with_logits", |on| {
            let (logits_view, labels_view) = (on.up(&logits), on.up(&labels));
            on.write(&logits, |backend, out| {
                let (logits, labels) = (logits_view.all(), labels_view.all());
                total = backend.bce_with_logits(logits, labels, scale, out.data)?;
                Ok(())
            })
        });
        let (z, y) = (logits.wide(), labels.wide());
        let want: f64 = z.iter().zip(&y).map(|(&z, &y)| reference::bce(z, y)).sum();
        assert!((total - want).abs() <= 1e-6 * want.max(1.0), "bce: {total} vs {want}");
        for (k, &got) in gradient.iter().enumerate() {
            let slope = differences(&z[k..=k], &[0.25], |z| vec![reference::bce(z[0], y[k])]);
            let error = (f64::from(got) - slope[0]).abs();
            assert!(error < 1e-6, "bce gradient at {} {}: {got} vs {}", z[k], y[k], slope[0]);
        }
    }
}

/// Rules over a dense parameter: as if every element were a row of one; row-wise rules are refused.
///
/// # Panics
/// When a result differs from its specification.
pub fn dense_update<B: Backend>(make: impl Fn(usize) -> B) {
    for kind in [RuleKind::Sgd, RuleKind::AdaGrad, RuleKind::Adam] {
        let rule = Optimizer::new(kind).rule(0.1, 3);
        for len in [0, 1, 1000, 40_000] {
            let what = format!("dense_update {kind:?} of {len}");
            let [parameter, gradient] = [1, 2].map(|salt| Host::new((1, len), 0, salt));
            let mut state = Host::new((rule.slots().len(), len), 0, 3);
            state.data.iter_mut().for_each(|s| *s = s.abs());
            let got = same_everywhere(&make, &what, |on| {
                let gradient = on.up(&gradient);
                let (parameter, state) = on.write2(&parameter, &state, |backend, to, state| {
                    backend.dense_update(&rule, to.data, state.data, gradient.all())
                });
                [parameter, state].concat()
            });
            for k in 0..len {
                let mut parameter = parameter.data[k];
                let slots = 0..rule.slots().len();
                let mut state: Vec<f32> = slots.map(|slot| state.data[slot * len + k]).collect();
                rule.visit(Single {
                    parameter: &mut parameter,
                    state: &mut state,
                    gradient: gradient.data[k],
                });
                let got = got[k..].iter().step_by(len).map(|x| x.to_bits());
                let want = std::iter::once(&parameter).chain(&state).map(|x| x.to_bits());
                assert!(got.eq(want), "{what}, element {k}");
            }
        }
    }
    for kind in [RuleKind::RowWiseAdaGrad, RuleKind::RowWiseAdam] {
        let mut on = On(make(1));
        let one = Host::new((1, 4), 0, 4);
        let (gradient, mut state) = (on.up(&one), on.up(&one));
        let rule = Optimizer::new(kind).rule(0.1, 1);
        let refused = on.try_write(&one, |backend, out| {
            backend.dense_update(&rule, out.data, state.all_mut(), gradient.all())
        });
        assert!(matches!(refused, Err(Error::NotAvailable(..))), "{kind:?}: {refused:?}");
    }
}

/// One element as a row of one column.
struct Single<'a> {
    parameter: &'a mut f32,
    state: &'a mut [f32],
    gradient: f32,
}

impl RuleVisitor for Single<'_> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let state = RowState { row: &mut [], element: self.state };
        let statistic = Statistic { total: 0.0, dim: 1 };
        let row = std::slice::from_mut(self.parameter);
        rule.step(row, state, &[self.gradient], statistic);
    }
}
