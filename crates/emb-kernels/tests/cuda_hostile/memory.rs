//! Memory that grows, that several backends or devices share, and that goes in any order.

use crate::trial::{Trial, all_rows};
use crate::{case, cpu, cuda, device, on, table};
use emb_kernels::conformance::embedding::{Case, DeviceBatch};
use emb_kernels::{Backend, Cuda, Dtype, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};

const OF: [(usize, Pooling); 2] = [(0, Pooling::Mean), (0, Pooling::None)];

/// One batch over a table of 16-bit weights.
fn small() -> Case {
    let spec = table("a", 6, 12, Optimizer::new(RuleKind::RowWiseAdaGrad));
    let spec = TableSpec { dtype: Dtype::F16, ..spec };
    case(vec![spec], &OF, 2, &[3, 1, 0, 2], vec![0, 2, 2, 1, 3, 0])
}

/// What the CPU makes of a case's tables by a number of double steps: all lookups, then the rows.
fn expected(case: &Case, times: usize) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut cpu = cpu();
    let mut tables = cpu.create_tables(&case.specs, case.seed).expect("tables");
    let mut trial = Trial::new(&mut cpu, case);
    let mut looked = Vec::new();
    for _ in 0..times {
        looked.extend(
            trial.steps(&mut cpu, &mut tables).expect("ids in range").into_iter().flatten(),
        );
    }
    (looked, all_rows(&mut cpu, &mut tables))
}

#[test]
fn batches_may_grow_and_shrink_from_step_to_step() {
    let Some(mut cuda) = cuda() else { return };
    let mut cpu = cpu();
    let specs = vec![table("a", 50, 12, Optimizer::new(RuleKind::Adam))];
    let mut own = cpu.create_tables(&specs, 5).expect("tables");
    let mut tables = cuda.create_tables(&specs, 5).expect("tables");
    // Below, at and beyond what was asked for before, and nothing between.
    for count in [1, 40, 3, 900, 5000, 2, 0, 9000_i64] {
        let ids = (0..count).map(|i| i * i % 50).collect();
        let lengths = [count / 2, count - count / 2];
        let case = case(specs.clone(), &OF, 1, &lengths, ids);
        let expected = Trial::new(&mut cpu, &case).steps(&mut cpu, &mut own);
        let got = Trial::new(&mut cuda, &case).steps(&mut cuda, &mut tables);
        assert!(got.expect("ids in range") == expected.expect("ids in range"), "{count} ids");
    }
    assert!(all_rows(&mut cuda, &mut tables) == all_rows(&mut cpu, &mut own));
}

/// Each on a thread that ends with its turn, without a wait between one's work and the other's.
#[test]
fn two_backends_take_turns_with_one_table() {
    let Some(mut one) = cuda() else { return };
    let mut two = one.another().expect("another stream");
    let case = small();
    let (looked, rows) = expected(&case, 12);
    let mut tables = one.create_tables(&case.specs, case.seed).expect("tables");
    let mut trial = Trial::new(&mut one, &case);
    let mut got = Vec::new();
    for turn in 0..12 {
        let backend = if turn % 3 == 0 { &mut one } else { &mut two };
        let (trial, tables) = (&mut trial, &mut tables);
        let steps = std::thread::scope(|scope| {
            scope.spawn(move || trial.steps(backend, tables)).join().expect("no panic")
        });
        got.extend(steps.expect("ids in range").into_iter().flatten());
    }
    assert!(got == looked, "lookups");
    assert!(all_rows(&mut two, &mut tables) == rows, "rows");
}

/// The batch, its gradients and what is looked up on one device, the tables on either, the work on
/// either.
#[test]
fn tables_and_batches_may_be_on_other_devices_than_the_work() {
    let (Some(near), Some(far)) = (device(0), device(1)) else { return };
    let mut backends = [on(&near), on(&far)];
    let case = small();
    let (looked, rows) = expected(&case, 1);
    for places in 0..8 {
        let [table, batch, work] = [places & 1, places >> 1 & 1, places >> 2];
        let what = format!("table on {table}, batch on {batch}, work on {work}");
        let mut tables = backends[table].create_tables(&case.specs, case.seed).expect("tables");
        let mut trial = Trial::new(&mut backends[batch], &case);
        let got = trial.steps(&mut backends[work], &mut tables).expect("ids in range");
        assert!(got.as_flattened() == looked, "{what}: lookups");
        assert!(all_rows(&mut backends[table], &mut tables) == rows, "{what}: rows");
    }
}

/// Ids are checked when they are used, so a batch that never is may hold anything.
#[test]
fn batches_foreseen_and_never_updated_with_are_forgotten() {
    let Some(mut cuda) = cuda() else { return };
    let case = small();
    let (looked, rows) = expected(&case, 1);
    let mut tables = cuda.create_tables(&case.specs, case.seed).expect("tables");
    let mut trial = Trial::new(&mut cuda, &case);
    for number in 0..20 {
        let ids = vec![number % 4, -9, 0, i64::MAX, 1, number];
        let other = self::case(case.specs.clone(), &OF, 2, &[3, 1, 0, 2], ids);
        let batch = DeviceBatch::new(&mut cuda, &other.batch);
        cuda.foresee(&mut tables, &trial.map, batch.view()).expect("foresight");
    }
    let got = trial.steps(&mut cuda, &mut tables).expect("ids in range");
    assert!(got.as_flattened() == looked, "lookups");
    assert!(all_rows(&mut cuda, &mut tables) == rows, "rows");
}

#[test]
fn memory_may_be_dropped_in_any_order_while_work_is_under_way() {
    let Some(mut one) = cuda() else { return };
    let case = small();
    let (looked, _) = expected(&case, 1);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut two = one.another().expect("another stream");
        let mut tables = one.create_tables(&case.specs, case.seed).expect("tables");
        let mut out = Trial::new(&mut one, &case);
        let batch = Trial::new(&mut two, &case);
        two.foresee(&mut tables, &batch.map, batch.batch.view()).expect("foresight");
        let got = out.look_up(&mut one, &mut tables).expect("ids in range");
        assert!(got == looked[..2], "{order:?}");
        batch.update(&mut two, &mut tables, 1).expect("ids in range");
        out.update(&mut one, &mut tables, 2).expect("ids in range");
        drop_in(order, tables, batch, two);
        let mut tables = one.create_tables(&case.specs, case.seed).expect("tables");
        let got = out.look_up(&mut one, &mut tables).expect("ids in range");
        assert!(got == looked[..2], "{order:?}, in memory that was given back");
    }
}

/// Drops each in its turn.
fn drop_in(
    order: [usize; 3],
    tables: <Cuda as Backend>::Tables,
    batch: Trial<Cuda>,
    backend: Cuda,
) {
    let (mut tables, mut batch, mut backend) = (Some(tables), Some(batch), Some(backend));
    for which in order {
        match which {
            0 => drop(tables.take()),
            1 => drop(batch.take()),
            _ => drop(backend.take()),
        }
    }
}
