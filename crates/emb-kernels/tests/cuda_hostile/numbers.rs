//! Gradients and weights of lookups that are not numbers, or have no square.

use crate::trial::{Trial, all_rows};
use crate::{case, check, cpu, cuda, limited, table, with_gradients, with_weights};
use emb_kernels::conformance::embedding::Case;
use emb_kernels::{Backend, Dtype, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};

const GRADIENTS: [f32; 11] =
    [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38, -3e38, 1e-45, 0.0, -0.0, 1.0, 7e4, 2.0];

const WEIGHTS: [f32; 8] = [f32::NAN, 0.0, -1.0, f32::INFINITY, 1e-40, 1.0, 1.0, -1.0];

/// Two steps, so that rows that are no longer numbers are looked up and updated as well.
fn twice<B: Backend>(backend: &mut B, case: &Case) -> Vec<Vec<u32>> {
    let mut tables = backend.create_tables(&case.specs, case.seed).expect("a table");
    let steps = Trial::new(backend, case).steps(backend, &mut tables).expect("ids in range");
    let mut out: Vec<Vec<u32>> = steps.into_iter().flatten().collect();
    out.extend(all_rows(backend, &mut tables));
    out
}

#[test]
fn what_is_no_number_goes_through_every_rule_as_on_the_cpu() {
    let Some(mut cuda) = cuda() else { return };
    for kind in RuleKind::ALL {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for optimizer in [Optimizer::new(kind), limited(kind)] {
                let spec = TableSpec { dtype, ..table("a", 6, 9, optimizer) };
                let of = [(0, Pooling::Mean), (0, Pooling::Sum)];
                let (lengths, ids) = ([1, 1, 1, 1, 1, 0, 1, 2], vec![0, 1, 2, 3, 4, 5, 0, 0]);
                let plain = case(vec![spec], &of, 4, &lengths, ids);
                let plain = with_gradients(plain, |i| GRADIENTS[i % GRADIENTS.len()]);
                let weighted = with_weights(plain.clone(), WEIGHTS.to_vec());
                for case in [plain, weighted] {
                    let weighted = case.batch.as_ref().weights.is_some();
                    let what = format!("{optimizer}, {dtype:?}, weighted: {weighted}");
                    check(&mut cuda, &case, &what);
                    assert!(twice(&mut cpu(), &case) == twice(&mut cuda, &case), "{what}");
                }
            }
        }
    }
}
