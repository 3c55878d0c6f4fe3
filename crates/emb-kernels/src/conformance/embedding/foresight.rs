//! Batches that a backend is told of ahead of their update.

use super::host::{DeviceBatch, DeviceGradients};
use super::{Case, Values, cases, values_of};
use crate::{Backend, Gradients, Jagged};

/// Updates have the same bits with and without foresight, from the same stream and from another,
/// several batches ahead, and where a batch that was foreseen is never updated with: its memory is
/// another batch's then, of the same size.
///
/// # Panics
/// When they have not.
pub fn foresight_changes_no_bit<B: Backend>(make: impl Fn() -> B) {
    for case in cases().step_by(7) {
        let mut backend = make();
        let mut other = backend.another().expect("another stream");
        let plain = updates(&mut backend, None, &case);
        assert!(updates(&mut backend, Some(&mut other), &case) == plain, "case {}", case.seed);
    }
}

/// Three updates of one case's tables; `other` prepares each while the one before is to come.
fn updates<B: Backend>(backend: &mut B, other: Option<&mut B>, case: &Case) -> Values {
    let map = case.map();
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("tables");
    let gradients = DeviceGradients::new(backend, case);
    let (pooled, sequences) = gradients.views();
    let gradients = Gradients { pooled, sequences: &sequences };
    let reversed = reversed(&case.batch);
    let order = [&case.batch, &reversed, &case.batch];
    let mut batches: Vec<DeviceBatch<B>> = Vec::new();
    match other {
        None => batches.extend(order.map(|batch| DeviceBatch::new(backend, batch))),
        Some(other) => {
            // Foreseen as another batch first: never updated with, then overwritten.
            for batch in [&reversed, &case.batch] {
                let mut lying = DeviceBatch::new(other, batch);
                other.foresee(&mut tables, &map, lying.view()).expect("foresight");
                lying.overwrite(other, order[batches.len()]);
                other.foresee(&mut tables, &map, lying.view()).expect("foresight");
                batches.push(lying);
            }
            let last = DeviceBatch::new(backend, order[2]);
            backend.foresee(&mut tables, &map, last.view()).expect("foresight");
            batches.push(last);
        }
    }
    for (number, batch) in batches.iter().enumerate() {
        let (rules, step) = (case.rules(), case.step + number as u64);
        let batch = batch.view();
        backend.scatter_update(&mut tables, &map, batch, &gradients, &rules, step).expect("update");
    }
    values_of(backend, &mut tables)
}

/// The same bags with their ids in the other order: other rows where bags differ in their ids.
fn reversed(batch: &Jagged) -> Jagged {
    let view = batch.as_ref();
    let mut values = view.values.to_vec();
    for f in 0..view.features() {
        values[view.feature_range(f)].reverse();
    }
    let offsets: Vec<i64> = view.offsets.iter().map(|&offset| offset as i64).collect();
    let weights = view.weights.map(<[f32]>::to_vec);
    Jagged::from_offsets(batch.names(), batch.batch(), &offsets, values, weights)
        .expect("as many ids as before")
}
