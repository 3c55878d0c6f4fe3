//! What cannot be is refused before anything is written, and work goes on.

use crate::trial::{Trial, all_rows};
use crate::{case, check, cpu, cuda, device, on, table};
use emb_kernels::{Backend, Error, JaggedView, Mat, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};

/// Refusals of lookup and update with a bad id at one place.
fn refusals<B: Backend>(backend: &mut B, bad: i64, place: usize) -> [Error; 2] {
    let optimizer = Optimizer::new(RuleKind::Adam);
    let specs = vec![table("a", 3, 4, optimizer), table("b", 9, 4, optimizer)];
    let mut ids = vec![0, 1, 2, 1, 2];
    ids[place] = bad;
    let case = case(specs, &[(0, Pooling::Sum), (0, Pooling::None)], 2, &[0, 2, 0, 3], ids);
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("tables");
    let before = all_rows(backend, &mut tables);
    let mut trial = Trial::new(backend, &case);
    let lookup = trial.look_up(backend, &mut tables).expect_err("a bad id");
    let update = trial.update(backend, &mut tables, 1).expect_err("a bad id");
    assert!(all_rows(backend, &mut tables) == before, "{bad} at {place}: written to");
    [lookup, update]
}

#[test]
fn a_bad_id_at_any_place_is_refused_by_lookup_and_update_as_on_the_cpu() {
    let Some(mut cuda) = cuda() else { return };
    for bad in [i64::MIN, -1, 3, 4, 1 << 32, 1 << 40, i64::MAX] {
        for place in 0..5 {
            let expected = refusals(&mut cpu(), bad, place);
            assert_eq!(refusals(&mut cuda, bad, place), expected, "{bad} at {place}");
        }
    }
}

#[test]
fn an_offset_that_lies_of_no_samples_is_refused() {
    let Some(mut cuda) = cuda() else { return };
    let specs = vec![table("a", 3, 4, Optimizer::new(RuleKind::Sgd))];
    let case = case(specs, &[(0, Pooling::Sum)], 1, &[3], vec![0, 1, 2]);
    let mut tables = cuda.create_tables(&case.specs, case.seed).expect("a table");
    let trial = Trial::new(&mut cuda, &case);
    let mut offsets = cuda.zeros::<u64>(1).expect("memory");
    cuda.upload(&[3], offsets.whole_mut()).expect("a copy");
    let lying = JaggedView { batch: 0, offsets: offsets.whole(), ..trial.batch.view() };
    let mut out = cuda.zeros::<f32>(0).expect("memory");
    let matrix = Mat::new(out.whole_mut(), 0, trial.map.width());
    let refusal = cuda.pool(&mut tables, &trial.map, lying, matrix).expect_err("a lie");
    assert_eq!(refusal, Error::OffsetsStart { first: 3 });
}

/// On a device that no other test uses where there is one, for its free memory is compared.
#[test]
fn tables_that_do_not_fit_are_refused_and_give_back_what_was_taken_before() {
    const FIRST: u64 = 1 << 30;
    let alone = device(2);
    let Some(device) = alone.clone().or_else(|| device(0)) else { return };
    let mut cuda = on(&device);
    let optimizer = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let small = table("small", 6, 12, optimizer);
    let of = [(0, Pooling::Mean), (0, Pooling::None)];
    let case = case(vec![small], &of, 2, &[3, 1, 0, 2], vec![0, 2, 2, 1, 3, 0]);
    check(&mut cuda, &case, "before");
    let (free, bytes) = device.memory().expect("the size of its memory");
    if free < 2 * FIRST {
        return eprintln!("skipped: {free} bytes of the device are free");
    }
    let first = table("first", FIRST / 64, 16, Optimizer::new(RuleKind::Sgd));
    let large = table("large", bytes / 64 + 1, 16, Optimizer::new(RuleKind::Sgd));
    let endless = table("endless", u64::MAX, TableSpec::MAX_DIM, Optimizer::new(RuleKind::Adam));
    for specs in [[first.clone(), large], [first, endless]] {
        for _ in 0..3 {
            let refusal = cuda.create_tables(&specs, 5).expect_err("more than there is");
            assert!(matches!(refusal, Error::Memory { .. }), "{refusal:?}");
            assert!(refusal.to_string().contains(&specs[1].name), "{refusal}");
        }
        check(&mut cuda, &case, "after");
    }
    if alone.is_some() {
        // A driver may keep one for its next use.
        let (left, _) = device.memory().expect("the size of its memory");
        assert!(left + 2 * FIRST > free, "{left} bytes are free, and {free} were");
    }
}
