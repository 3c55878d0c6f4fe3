//! Rows, batches and groups of tables as small and as large as they may be.

use crate::{case, check, cpu, cuda, limited, table, with_gradients, with_weights};
use emb_kernels::conformance::embedding::run;
use emb_kernels::{Dtype, Init, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};

#[test]
fn dims_from_one_to_the_largest_have_the_bits_of_the_cpu() {
    let Some(mut cuda) = cuda() else { return };
    let of = [(0, Pooling::Mean), (1, Pooling::Sum), (0, Pooling::None)];
    // Ends of what a thread, a block and its shared memory hold, and of what there may be.
    let dims = [1, 2, 3, 511, 512, 513, 516, 1025, TableSpec::MAX_DIM - 1, TableSpec::MAX_DIM];
    for dim in dims {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for kind in [RuleKind::RowWiseAdaGrad, RuleKind::Adam] {
                let optimizer = limited(kind);
                let first = TableSpec { dtype, ..table("a", 3, dim, optimizer) };
                let specs = vec![first, table("b", 4, 5, optimizer)];
                let ids = vec![0, 2, 2, 1, 3, 0, 2, 2, 1];
                let case = case(specs, &of, 2, &[3, 1, 0, 2, 2, 1], ids);
                check(&mut cuda, &case, &format!("dim {dim}, {dtype:?}, {kind:?}"));
            }
        }
    }
}

#[test]
fn batches_groups_and_bags_may_be_empty() {
    let Some(mut cuda) = cuda() else { return };
    let one = || vec![table("a", 3, 4, Optimizer::new(RuleKind::Adam))];
    let three = [(0, Pooling::Sum), (0, Pooling::None), (0, Pooling::Mean)];
    let sequence = [(0, Pooling::None)];
    let none = Vec::new;
    for (case, what) in [
        (case(one(), &three, 0, &[], none()), "no samples"),
        (case(one(), &[], 3, &[], none()), "no features"),
        (case(one(), &[], 0, &[], none()), "no features and no samples"),
        (case(Vec::new(), &[], 3, &[], none()), "no tables"),
        (case(one(), &three, 3, &[0; 9], none()), "no ids"),
        (case(one(), &sequence, 3, &[0; 3], none()), "a sequence without ids"),
        (case(one(), &sequence, 3, &[2, 0, 1], vec![0, 2, 1]), "a sequence alone"),
    ] {
        check(&mut cuda, &case, what);
    }
}

/// More tables than a block has threads, and than fit into a kernel's parameters.
#[test]
fn two_thousand_features_over_as_many_tables_have_the_bits_of_the_cpu() {
    const COUNT: usize = 2000;
    let Some(mut cuda) = cuda() else { return };
    let optimizer = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let specs = (0..COUNT)
        .map(|t| TableSpec {
            dtype: [Dtype::F32, Dtype::F16, Dtype::Bf16][t % 3],
            ..table(&format!("table {t}"), 2 + t as u64 % 3, 1 + t % 6, optimizer)
        })
        .collect();
    let poolings = [Pooling::Sum, Pooling::Mean, Pooling::None];
    let of: Vec<_> = (0..COUNT).map(|f| (f * 7 % COUNT, poolings[f % 5 % 3])).collect();
    let lengths: Vec<i64> = (0..COUNT as i64 * 3).map(|bag| bag % 3).collect();
    let ids = (0..lengths.iter().sum::<i64>()).map(|place| place * place % 2).collect();
    check(&mut cuda, &case(specs, &of, 3, &lengths, ids), "many features");
}

/// Gradients are few and small, so that their sums are exact in whatever order they are taken.
#[test]
fn fifty_thousand_lookups_of_one_row_are_all_in_its_sum() {
    let Some(mut cuda) = cuda() else { return };
    let init = Init::Constant(0.5);
    let spec = TableSpec { init, ..table("a", 3, 5, Optimizer::new(RuleKind::Sgd)) };
    for (pooling, weighted) in [(Pooling::Sum, false), (Pooling::Sum, true), (Pooling::None, false)]
    {
        let count = 50_000;
        let mut ids = vec![1; count + 3];
        ids[count + 1] = 2;
        let lengths = [count as i64, 3];
        let mut case = case(vec![spec.clone()], &[(0, pooling)], 2, &lengths, ids);
        case = with_gradients(case, |i| (i % 7) as f32 / 64.0);
        if weighted {
            case = with_weights(case, vec![1.0; count + 3]);
        }
        check(&mut cuda, &case, &format!("{pooling:?}, weighted: {weighted}"));
    }
    // Each bag's lookups have a share of its gradient, and shares are rounded.
    let mean = case(vec![spec], &[(0, Pooling::Mean)], 2, &[50_000, 3], vec![1; 50_003]);
    let (expected, got) = (run(&mut cpu(), &mean), run(&mut cuda, &mean));
    for (expected, got) in expected.after[0].iter().zip(&got.after[0]) {
        assert!((expected - got).abs() < 1e-4, "{got} instead of {expected}");
    }
}
