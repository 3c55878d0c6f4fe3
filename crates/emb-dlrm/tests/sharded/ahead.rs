//! Several batches under way at once, and batches that end without a backward pass.

use crate::equality::steps;
use crate::support::{Model, Random, Upstream, bits, cpu, over_ranks};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::Error;
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Layout, Mesh, PlaceOptions, Placement, PlanBuilder, ReplicaSync, RowCut};

/// Every batch is routed while the one before is still pooled, and pooled once more in between, as
/// an evaluation does.
#[test]
fn batches_under_way_at_once_keep_what_is_theirs() {
    let model = Model::new(&[(37, 10, 2), (3, 3, 1)], RuleKind::RowWiseAdaGrad, Pooling::Mean);
    let mesh = Mesh::new(4, 2, Layout::Strided).expect("a mesh");
    for placement in [
        Placement::TableWise { owner: None },
        Placement::RowWise { cut: RowCut::Modulo },
        Placement::ColumnWise { parts: None },
        Placement::DataParallel,
    ] {
        let case = format!("{placement:?}");
        let options = PlaceOptions { sync: Some(ReplicaSync::Gradients), ..placement.into() };
        let plan = PlanBuilder::new(mesh).all(options).build(&model.tables()).expect("a plan");
        let steps = steps(&model, &mut Random::new(5), 4, 8, true);
        let expected = over_ranks(&model, &plan, &steps, Upstream::Output);
        let ranks = run(4, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            let me = world.rank();
            let mut outputs = Vec::new();
            let mut next = Some(sharded.route(steps[0][me].as_ref())?);
            for (number, batches) in steps.iter().enumerate() {
                let step = number as u64 + 1;
                let Some(routed) = next.take() else { break };
                let pooled = routed.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                if let Some(batches) = steps.get(number + 1) {
                    next = Some(sharded.route(batches[me].as_ref())?);
                    let again = sharded.route(batches[me].as_ref())?;
                    let again = again.exchange(&mut sharded)?.pool(&mut sharded, &mut cpu)?;
                    assert_eq!(again.batch(), batches[me].batch());
                }
                let total = batches.iter().map(Jagged::batch).sum();
                let first = batches[..me].iter().map(Jagged::batch).sum();
                let (output, place) = (pooled.output(), (step, first, total));
                let gradient = Upstream::Output.gradient(output, model.width(), place);
                outputs.push(output.to_vec());
                pooled.backward(&mut sharded, &mut cpu, &gradient, 1.0, step)?;
            }
            let tables = (0..2).map(|t| sharded.gather_table(&mut cpu, t));
            Ok::<_, Error>((outputs, tables.collect::<Result<Vec<_>, _>>()?))
        });
        let ranks = ranks.unwrap_or_else(|failure| panic!("{case}: {failure}"));
        for ((outputs, tables), expected) in ranks.iter().zip(&expected) {
            assert!(*outputs == expected.outputs, "{case}: outputs");
            assert!(tables.iter().map(bits).eq(expected.tables.iter().map(bits)), "{case}: tables");
        }
    }
}
