//! What replicas tell each other in 16 bits: they are equal bit by bit, and near what they were.

use super::over_ranks;
use crate::equality::steps;
use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Random, Upstream, assert_replicas_equal, bits};
use emb_comm::Wire;
use emb_dlrm::sharded::Wires;
use emb_kernels::Pooling;
use emb_optim::RuleKind;
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut};

fn plan(model: &Model, (world, group): (u32, u32), sync: ReplicaSync) -> Plan {
    let mesh = Mesh::new(world, group, Layout::Strided).expect("a mesh");
    let placements = [
        Placement::TableWise { owner: None },
        Placement::RowWise { cut: RowCut::Modulo },
        Placement::ColumnWise { parts: None },
    ];
    let mut builder = PlanBuilder::new(mesh);
    for (spec, placement) in model.specs.iter().zip(placements) {
        let options = PlaceOptions { sync: Some(sync), ..placement.into() };
        builder = builder.table(spec.name.clone(), options);
    }
    builder.build(&model.tables()).expect("a plan")
}

#[test]
fn replicas_that_sync_in_16_bits_are_equal_bit_by_bit_and_near_those_in_32() {
    for (number, sync) in
        [weights(1), touched_rows(2), ReplicaSync::Gradients].into_iter().enumerate()
    {
        for (world, group) in [(4, 2), (3, 1), (6, 2)] {
            let kind = [RuleKind::Sgd, RuleKind::RowWiseAdaGrad, RuleKind::Adam][number];
            let model = Model::new(&[(9, 10, 2), (40, 3, 1), (17, 33, 1)], kind, Pooling::Mean);
            let plan = plan(&model, (world, group), sync);
            let count = world as usize;
            let steps = steps(&model, &mut Random::new(number as u64), count, 6, false);
            let exact = over_ranks(&model, &plan, &steps, Upstream::Given, Wires::default());
            for wire in [Wire::F16, Wire::Bf16] {
                let wires = Wires { sync: wire, batch: 8, ..Wires::default() };
                let case = format!("{sync}, {wire}, {world} ranks");
                let ranks = over_ranks(&model, &plan, &steps, Upstream::Given, wires);
                assert_replicas_equal(&ranks, &case);
                let (mut changed, mut most) = (false, 0.0_f64);
                for (got, exact) in ranks[0].tables.iter().zip(&exact[0].tables) {
                    changed |= bits(got) != bits(exact);
                    for (got, exact) in got.weights.iter().zip(&exact.weights) {
                        most = most.max(f64::from((got - exact).abs()));
                    }
                    if sync != ReplicaSync::Gradients && kind == RuleKind::RowWiseAdaGrad {
                        assert_eq!(got.state, exact.state, "{case}: state travels unchanged");
                    }
                }
                // Weights are below 1, and are rounded in each of six steps; Adam's steps have the
                // size of the rate.
                let limit =
                    6.0 * wire.max_error(&[1.0]) * if kind == RuleKind::Adam { 5.0 } else { 1.0 };
                assert!(changed && most <= limit, "{case}: {most:e} of {limit:e}");
            }
        }
    }
}
