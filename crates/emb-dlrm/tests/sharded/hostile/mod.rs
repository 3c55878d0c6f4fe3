//! What nobody should do, and what nobody expects: faults, odd inputs, wrong calls.

mod ahead;
mod far;
mod faults;
mod faulty;
mod inputs;
mod misuse;
mod values;

use crate::replicas::{touched_rows, weights};
use crate::support::{Model, Outcome, Upstream, all_steps, cpu};
use crate::tiered::{Lives, POOLED, Tiers, UNIQUE, UNIQUE_BY_NODE};
use emb_comm::{Options, run};
use emb_dlrm::sharded::IdWire;
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{Exchange, Plan, ReplicaSync};

/// Exchanges that serve sequence features in groups of several ranks.
const SEQUENCES: [Exchange; 3] = [Exchange::Rows, UNIQUE, UNIQUE_BY_NODE];

/// A plan of a model whose tables are alike, by name.
struct Case {
    name: String,
    model: Model,
    plan: Plan,
}

/// Rows of the tables of [`every_exchange`].
const ROWS: u64 = 12;

/// Four ranks on two nodes: every exchange of pooled features and of sequences, with columns cut and
/// a statistic of whole rows; hot rows on every rank, in another order, kept equal in every way.
fn every_exchange() -> Vec<Case> {
    let syncs = [ReplicaSync::Gradients, touched_rows(2), weights(3)];
    let pooled = POOLED.map(|exchange| (exchange, Pooling::Mean));
    let sequences = SEQUENCES.map(|exchange| (exchange, Pooling::None));
    let all = pooled.into_iter().chain(sequences).enumerate();
    all.map(|(number, (exchange, pooling))| {
        let model = Model::new(&[(ROWS, 5, 2), (ROWS, 2, 1)], RuleKind::RowWiseAdaGrad, pooling);
        let sync = syncs[number % syncs.len()];
        let lives = Lives { sync, blocks: 2, ..Lives::new(4, exchange) };
        let mut tiers = Tiers::of_four(lives).with_hot(3);
        tiers.order = Some((0..ROWS).map(|row| (row * 5 + 1) % ROWS).collect());
        let name = format!("{exchange}, {pooling:?}, {sync}");
        Case { name, plan: tiers.plan(&model), model }
    })
    .collect()
}

/// All rows on every rank, without an exchange.
fn local(pooling: Pooling, sync: ReplicaSync) -> Case {
    let model = Model::new(&[(ROWS, 5, 2), (ROWS, 2, 1)], RuleKind::RowWiseAdaGrad, pooling);
    let lives = Lives { sync, blocks: 2, ..Lives::new(1, Exchange::Local) };
    let plan = Tiers::of_four(lives).plan(&model);
    Case { name: format!("local, {pooling:?}, {sync}"), model, plan }
}

/// Every exchange whose replicas are exact, and none.
fn exact() -> Vec<Case> {
    let mut all = every_exchange();
    for case in &mut all {
        let exchange = case.plan.placed().as_slice()[0].tiers.last().expect("a tier").exchange;
        let lives = Lives { blocks: 2, ..Lives::new(4, exchange) };
        let mut tiers = Tiers::of_four(lives).with_hot(3);
        tiers.order = Some((0..ROWS).rev().collect());
        case.plan = tiers.plan(&case.model);
    }
    all.extend([Pooling::Mean, Pooling::None].map(|p| local(p, ReplicaSync::Gradients)));
    all
}

/// What every rank ends with after these steps, with ids packed or not.
fn over_ranks(case: &Case, steps: &[Vec<Jagged>], upstream: Upstream, ids: IdWire) -> Vec<Outcome> {
    let Case { name, model, plan } = case;
    let ranks = run(plan.world() as usize, &Options::default(), |world| {
        let mut cpu = cpu();
        let mut sharded = model.shard(world, &mut cpu, plan)?;
        sharded.set_id_wire(ids);
        all_steps(world, &mut sharded, &mut cpu, model, steps, upstream)
    });
    ranks.unwrap_or_else(|failure| panic!("{name}, {ids:?}: {failure}"))
}

/// A batch whose bags are `bag_of(feature, sample)`.
fn batch(
    model: &Model,
    samples: usize,
    mut bag_of: impl FnMut(usize, usize) -> Vec<i64>,
) -> Jagged {
    let (mut lengths, mut ids) = (Vec::new(), Vec::new());
    for f in 0..model.features.len() {
        for b in 0..samples {
            let bag = bag_of(f, b);
            lengths.push(bag.len() as i64);
            ids.extend(bag);
        }
    }
    Jagged::from_lengths(&model.names(), samples, &lengths, ids, None).expect("a batch")
}
