//! A table whose elements 32 bits cannot count.

use crate::trial::{Trial, listed, rows};
use crate::{bits, case, cpu, device, on, same};
use emb_kernels::conformance::embedding::Case;
use emb_kernels::{Backend, Dtype, Init, Pages, Pooling, RowTransfer, TableSpec};
use emb_optim::{Optimizer, RuleKind};

const DIM: usize = 128;

/// Rows that begin at elements 2^31 and 2^32, the second five from the table's end.
const MIDDLE: u64 = (1 << 31) / DIM as u64;
const FAR: u64 = (1 << 32) / DIM as u64;
const ROWS: u64 = FAR + 5;

/// Weights, state, and as much again for what else is there.
const BYTES: u64 = ROWS * (DIM as u64 * 2 + 4) + (1 << 30);

/// Rows around both, ends, and rows that an address of 32 bits would take for one another.
fn numbers() -> Vec<u64> {
    let around = |row: u64| row - 2..row + 3;
    (0..4).chain(around(MIDDLE)).chain(around(FAR)).chain(ROWS - 2..ROWS).collect()
}

fn huge() -> Case {
    let spec = TableSpec {
        dtype: Dtype::F16,
        init: Init::Constant(0.0),
        // What is not touched costs no memory of this machine either.
        pages: Pages::Small,
        ..TableSpec::new("huge", ROWS, DIM, Optimizer::new(RuleKind::RowWiseAdaGrad))
    };
    let ids = [0, MIDDLE - 1, MIDDLE, MIDDLE + 1, FAR - 1, FAR, ROWS - 1, ROWS - 1, FAR + 1];
    let ids = ids.map(|row| row as i64).to_vec();
    case(vec![spec], &[(0, Pooling::Sum), (0, Pooling::None)], 2, &[3, 2, 2, 2], ids)
}

/// Two steps, then rows by number, written and read again: everything that was looked up or read.
fn used<B: Backend>(backend: &mut B, case: &Case) -> Vec<Vec<u32>> {
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("a table");
    let mut trial = Trial::new(backend, case);
    let steps = trial.steps(backend, &mut tables).expect("ids in range");
    let mut out: Vec<Vec<u32>> = steps.into_iter().flatten().collect();
    out.push(rows(backend, &mut tables, 0, &numbers()));
    let (mut weights, mut state) = (vec![f32::NAN; 2 * DIM], [Vec::new()]);
    backend.read_rows(&mut tables, 0, ROWS - 2, &mut weights, &mut state).expect("rows");
    out.extend([bits(&weights), bits(&state[0])]);

    let written = [ROWS - 1, MIDDLE, FAR + 1, ROWS - 1, 5];
    let count = written.len() * listed::<B>(&tables, 0);
    // Halves below 256 are exact in 16 bits.
    let values: Vec<f32> = (0..count).map(|i| (i % 512) as f32 / 2.0).collect();
    let write = RowTransfer::Write(&values);
    backend.transfer_rows(&mut tables, 0, &written, write).expect("rows of the table");
    let read = rows(backend, &mut tables, 0, &written);
    let width = listed::<B>(&tables, 0);
    assert_eq!(read[width..], bits(&values)[width..], "what was written is not there");
    out.push(rows(backend, &mut tables, 0, &numbers()));
    out
}

#[test]
fn a_table_of_more_than_2_to_the_32_elements_has_the_bits_of_the_cpu() {
    let Some(device) = device(0) else { return };
    let (free, _) = device.memory().expect("the size of its memory");
    if free < BYTES {
        return eprintln!("skipped: the device has {free} bytes free");
    }
    let case = huge();
    let (expected, got) = (used(&mut cpu(), &case), used(&mut on(&device), &case));
    assert_ne!(expected[0], expected[2], "rows moved");
    same(&expected, &got, "a huge table");
}
