//! A table in parts has the bits of the whole one.

use super::case::Random;
use super::cut::{Part, columns, cut, join};
use super::{Case, Values, run};
use crate::{Backend, Dtype, Error, Feature, Init, Jagged, Pooling, RowNumbers, TableSpec, Window};
use emb_optim::{Optimizer, RuleKind};

/// Rows of the table: a prime, so that multiplying permutes them.
const ROWS: u64 = 257;

/// Initial weights, and weights and state after an update with stochastic rounding, are those of
/// the whole table, row for row and bit for bit, however rows are numbered, strided and cut into
/// columns; and all parts live in one group under one name.
///
/// # Panics
/// When a bit differs, or when two equal parts are not refused.
pub fn parts_have_the_bits_of_the_whole<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for (kind, shares) in [
            (RuleKind::RowWiseAdaGrad, &[1][..]),
            (RuleKind::Adam, &[7, 13]),
            (RuleKind::AdaGrad, &[1, 8, 11]),
        ] {
            let case = case(dtype, kind);
            let parts = [parts(&case.specs[0], shares)];
            let whole = run(&mut backend, &case);
            let of_parts = run(&mut backend, &cut(&case, &parts));
            let Values { weights: before, .. } = join(
                &case,
                &parts,
                &Values { weights: of_parts.before, state: of_parts.state.clone() },
            );
            let after = Values { weights: of_parts.after, state: of_parts.state };
            let after = join(&case, &parts, &after);
            let what = format!("{dtype:?}, {kind:?}, columns {shares:?}");
            assert!(whole.before == before, "{what}: initial weights");
            assert!(whole.after != whole.before, "{what}: an update");
            assert!(whole.after == after.weights, "{what}: updated weights");
            assert!(whole.state == after.state, "{what}: updated state");
        }
    }
    refuses_equal_parts(&mut backend);
}

/// Rows numbered by a permutation, a range and every second one of them, in blocks of columns.
fn parts(spec: &TableSpec, shares: &[usize]) -> Vec<Part> {
    let permute = |place| (place * 101 + 7) % ROWS;
    let numbers = RowNumbers::new(permute);
    let mut parts = Vec::new();
    for (first_row, row_step, end) in [(0, 1, 100), (100, 2, ROWS), (101, 2, ROWS)] {
        let rows: Vec<u64> = (first_row..end).step_by(row_step as usize).map(permute).collect();
        parts.extend(columns(spec, shares).into_iter().map(|block| {
            let rows_of = Some(numbers.clone());
            let window = Window { first_row, row_step, rows: rows_of, ..block.window };
            Part { window, rows: rows.clone(), dim: block.dim }
        }));
    }
    parts
}

fn case(dtype: Dtype, kind: RuleKind) -> Case {
    let mut random = Random(9);
    let optimizer = Optimizer::new(kind);
    let spec = TableSpec::new("whole", ROWS, 20, optimizer);
    let spec = TableSpec { dtype, init: Init::Uniform { low: -1.0, high: 1.0 }, ..spec };
    let feature = |name: &str, pooling| Feature { name: name.to_owned(), table: 0, pooling };
    let features = vec![feature("bags", Pooling::Sum), feature("sequence", Pooling::None)];
    let lengths: Vec<i64> = (0..2 * 60).map(|_| random.below(5) as i64).collect();
    let count: i64 = lengths.iter().sum();
    let values: Vec<i64> = (0..count).map(|_| random.below(ROWS) as i64).collect();
    let of_sequence: i64 = lengths[60..].iter().sum();
    let batch = Jagged::from_lengths(&["bags", "sequence"], 60, &lengths, values, None);
    Case {
        seed: 4,
        specs: vec![spec],
        features,
        batch: batch.expect("consistent lengths"),
        pooled_gradient: random.values(60 * (2 + 20)),
        sequence_gradients: vec![(1, random.values(of_sequence as usize * 20))],
        step: 3,
    }
}

/// Two tables of one name are parts of one table; the same part twice, or parts of tables of
/// other widths, are a mistake.
fn refuses_equal_parts<B: Backend>(backend: &mut B) {
    let spec = case(Dtype::F32, RuleKind::Sgd).specs.remove(0);
    let twice = backend.create_tables(&[spec.clone(), spec.clone()], 1);
    let name = spec.name.clone();
    assert_eq!(twice.expect_err("one name"), Error::DuplicateName { kind: "table", name });
    let wider = TableSpec { window: Window::whole(21), ..spec.clone() };
    let refused = backend.create_tables(&[spec, wider], 1).expect_err("20 and 21 columns");
    assert!(matches!(&refused, Error::BadTable { table, .. } if table == "whole"), "{refused}");
}
