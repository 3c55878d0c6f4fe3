use super::{Part, SLOTS, dense_update, part};
use crate::Error;
use crate::cpu::testing::{on, same_bits, values};
use emb_optim::{Extent, Optimizer, OptimizerConfig, RowRule, RowState, RuleKind, Slot, Statistic};

/// A rule with as many element slots as there are in `NAMES[..N]`, each with its own recurrence.
#[derive(Clone, Copy)]
struct Recurrence<const N: usize>;

const NAMES: [Slot; 3] = [
    Slot { name: "a", extent: Extent::Element },
    Slot { name: "b", extent: Extent::Element },
    Slot { name: "c", extent: Extent::Element },
];

impl<const N: usize> RowRule for Recurrence<N> {
    fn slots(&self) -> &'static [Slot] {
        &NAMES[..N]
    }
    fn uses_statistic(&self) -> bool {
        false
    }
    fn max_gradient(&self) -> Option<f32> {
        None
    }
    fn statistic(&self, _row: &[f32], _grad: &[f32]) -> f64 {
        0.0
    }
    #[inline(always)]
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], _statistic: Statistic) {
        let len = row.len();
        for (k, (w, &g)) in row.iter_mut().zip(grad).enumerate() {
            for slot in 0..N {
                let s = &mut state.element[slot * len + k];
                *s = *s * 0.5 + g * (slot + 1) as f32;
                *w -= 0.1 * *s;
            }
        }
    }
}

fn run<const N: usize>(threads: usize, len: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut parameter, mut state) = (values(len, 1), values(N * len, 2));
    let gradient = values(len, 3);
    let mut rest = &mut state[..];
    let slots: [&mut [f32]; SLOTS] = std::array::from_fn(|slot| {
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(if slot < N { len } else { 0 });
        rest = tail;
        head
    });
    let whole = Part { parameter: &mut parameter, state: slots, slots: N, gradient: &gradient };
    on(threads, || part(threads, Recurrence::<N>, whole));
    (parameter, state)
}

fn check<const N: usize>() {
    for len in [0, 1, 255, 1025, 20_000] {
        let (mut parameter, mut state) = (values(len, 1), values(N * len, 2));
        for (k, &g) in values(len, 3).iter().enumerate() {
            for slot in 0..N {
                let s = &mut state[slot * len + k];
                *s = *s * 0.5 + g * (slot + 1) as f32;
                parameter[k] -= 0.1 * *s;
            }
        }
        for threads in [1, 2, 3] {
            let (got, got_state) = run::<N>(threads, len);
            assert!(same_bits(&got, &parameter), "{N} slots, {len} elements, {threads} threads");
            assert!(same_bits(&got_state, &state), "{N} slots, {len} elements, {threads} threads");
        }
    }
}

#[test]
fn any_number_of_slots_and_threads_equals_one_element_after_the_other() {
    check::<0>();
    check::<1>();
    check::<2>();
    check::<3>();
}

#[test]
fn sgd_steps_every_element() {
    let mut parameter = [1.0f32, 2.0, -4.0];
    let rule = Optimizer::new(RuleKind::Sgd).rule(0.5, 1);
    dense_update(1, &rule, &mut parameter, &mut [], &[1.0, 0.0, -2.0]).expect("same lengths");
    assert_eq!(parameter, [0.5, 2.0, -3.0]);
}

#[test]
fn a_row_wise_rule_and_wrong_lengths_are_refused_and_nothing_written() {
    let mut parameter = [7.0f32; 3];
    let row_wise = Optimizer::new(RuleKind::RowWiseAdaGrad).rule(0.1, 1);
    let error =
        dense_update(1, &row_wise, &mut parameter, &mut [0.0], &[1.0; 3]).expect_err("rule");
    assert!(error.to_string().contains("\"sum\""), "{error}");
    let config = OptimizerConfig { max_norm: Some(1.0), ..OptimizerConfig::new(RuleKind::Sgd) };
    let limited = config.build().expect("a valid configuration").rule(0.1, 1);
    let error = dense_update(1, &limited, &mut parameter, &mut [], &[1.0; 3]).expect_err("norm");
    assert!(error.to_string().contains("whole rows"), "{error}");
    let sgd = Optimizer::new(RuleKind::Sgd).rule(0.1, 1);
    let error = dense_update(1, &sgd, &mut parameter, &mut [], &[1.0; 2]).expect_err("gradient");
    let Error::Shape { what: "elements of gradient", expected: 3, got: 2, .. } = error else {
        panic!("{error}")
    };
    let error = dense_update(1, &sgd, &mut parameter, &mut [0.0], &[1.0; 3]).expect_err("state");
    let Error::Shape { what: "elements of state", expected: 0, got: 1, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(parameter, [7.0; 3]);
}
