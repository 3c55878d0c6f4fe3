//! What to try where a run could fare better: [`advice`].
//!
//! The thresholds are choices, not measurements: below them a change gains little, or figures differ
//! by chance.

use super::measure::Figures;
use super::slowest::{STANDS_OUT, mean_without};
use super::{Bytes, Health};
use emb_shard::{Layout, Plan, Rank, ReplicaSync, Shard, SyncClass};

/// Part of a step's time from which collectives are worth a change.
const WORTH_IT: f64 = 0.1;

/// Difference from the plan, as a part of it, from which the plan is of something else.
const PARTED: f64 = 0.1;

/// Bytes and look-ups below which differences are chance.
const A_FEW: f64 = 1000.0;

/// What advice is made from, beside the figures that people see.
pub(super) struct Situation<'a> {
    pub(super) plan: &'a Plan,
    /// Whether a file or a planner says where tables live, so that options do not.
    pub(super) planned: bool,
    pub(super) ranks: &'a [Figures],
    /// Look-ups of a sample by table, and what they were expected to be.
    pub(super) lookups: &'a [f64],
    pub(super) expected: &'a [f64],
    /// Samples of the steps looked at.
    pub(super) samples: f64,
}

/// Short sentences, the most important first.
pub(super) fn advice(health: &Health, at: &Situation<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let busy = busiest(at);
    match (&health.slowest, busy) {
        (Some(slow), Some(owner)) if owner == slow.rank => all.push(other_plan(at, owner)),
        (Some(slow), _) => all.push(format!("rank {} is slow: check that machine", slow.rank)),
        (None, Some(owner)) if health.exposed.total() >= WORTH_IT => {
            all.push(other_plan(at, owner));
        }
        (None, _) => {}
    }
    all.extend(parted(health, at));
    let (exchange, sync) = (health.exposed.exchange, health.exposed.sync);
    if sync >= WORTH_IT && sync > exchange {
        all.extend(rarer_sync(at));
    } else if exchange >= WORTH_IT && health.slowest.is_none() {
        all.extend(inside_nodes(health, at));
    }
    all
}

/// The rank whose tables move more bytes than those of the others, if one stands out.
fn busiest(at: &Situation<'_>) -> Option<usize> {
    let bytes = |rank: &usize| at.ranks[*rank].bytes();
    let most = (0..at.ranks.len()).max_by(|a, b| bytes(a).total_cmp(&bytes(b)).then(b.cmp(a)))?;
    let others = mean_without(at.ranks, most, Figures::bytes);
    (bytes(&most) >= A_FEW && bytes(&most) > STANDS_OUT * others).then_some(most)
}

fn other_plan(at: &Situation<'_>, owner: usize) -> String {
    let ratio = at.ranks[owner].bytes() / mean_without(at.ranks, owner, Figures::bytes);
    let most =
        heaviest(at, owner).map_or_else(String::new, |table| format!(", most for {table:?}"));
    let how = if at.planned { "plan anew" } else { "try --plan row-wise, or --planner lattice" };
    format!("rank {owner} moves {ratio:.1} x the bytes of the others{most}: {how}")
}

/// The table with the most bytes on a rank that owns parts of it: ids of 8 bytes in, and rows of 4
/// bytes a column out, of each sample's bags.
fn heaviest<'a>(at: &Situation<'a>, owner: usize) -> Option<&'a str> {
    let tables = at.plan.tables().tables().as_slice();
    let number = |shard: &Shard| shard.table.get() as usize;
    let bytes = |shard: &Shard| {
        let table = &tables[number(shard)];
        let ids = at.lookups.get(number(shard))? * shard.rows as f64 / table.rows() as f64;
        Some(8.0 * ids + 4.0 * (table.features().len() * shard.columns.columns()) as f64)
    };
    let shards = at.plan.shards_of(Rank::new(owner as u32)).ok()?;
    let travels = |shard: &Shard| {
        let tier = at.plan.tier(shard.table, shard.tier);
        tier.is_ok_and(|tier| tier.mesh.group_ranks() > 1)
    };
    let owned = shards.filter(travels).filter_map(|shard| Some((bytes(&shard)?, number(&shard))));
    let most = owned.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    Some(tables[most.1].name())
}

/// Where counts and the plan part, and why, if that is known.
fn parted(health: &Health, at: &Situation<'_>) -> Option<String> {
    let again = "profile again (emb profile) and plan anew";
    let pairs = at.lookups.iter().zip(at.expected).enumerate();
    // Of `n` look-ups that are drawn, one part in `sqrt(n)` is chance: four deviations are not.
    let drifts = pairs.filter_map(|(table, (&counted, &expected))| {
        let chance = 4.0 / (expected * at.samples).max(1.0).sqrt();
        let apart = (counted - expected).abs() / expected.max(f64::MIN_POSITIVE);
        (apart > PARTED.max(chance)).then_some((table, counted / expected))
    });
    let largest = drifts.max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()));
    if let Some((table, ratio)) = largest {
        let name = at.plan.tables().tables().as_slice()[table].name();
        return Some(format!(
            "table {name:?} is looked up {ratio:.2} x as often as planned: {again}"
        ));
    }
    let kinds = [("exchanges", &health.exchange_bytes), ("syncs", &health.sync_bytes)];
    let (name, apart) = kinds.into_iter().find_map(|(name, bytes)| Some((name, apart(bytes)?)))?;
    let how = if apart > 0.0 { "above" } else { "below" };
    Some(format!("{name} move {:.0} % {how} the plan: {again}", 100.0 * apart.abs()))
}

/// How far counted bytes are from planned ones, as a part of these, if that is far.
fn apart(bytes: &Bytes) -> Option<f64> {
    let (counted, planned) = (bytes.counted?, bytes.planned?);
    let levels =
        [(counted.intra_node, planned.intra_node), (counted.inter_node, planned.inter_node)];
    levels.into_iter().find_map(|(counted, planned)| {
        let apart = (counted - planned) / planned.max(1.0);
        (counted.max(planned) >= A_FEW && apart.abs() > PARTED).then_some(apart)
    })
}

/// What makes syncs cost less, by their kind.
fn rarer_sync(at: &Situation<'_>) -> Option<String> {
    let plan = at.plan;
    let replicated = |class: &&SyncClass| class.mesh.replicas() > 1;
    let classes = || plan.sync_classes().iter().filter(replicated);
    let averaged = classes().find_map(|class| match class.sync {
        ReplicaSync::Weights { every } => Some((every.get(), ", or --sync touched-rows")),
        ReplicaSync::TouchedRows { every } => Some((every.get(), "")),
        _ => None,
    });
    let grouped = classes().any(|class| class.mesh.group_ranks() > 1);
    let fewer = if grouped { ", or fewer --replicas" } else { "" };
    if at.planned && !plan.sync_classes().is_empty() {
        let what = "plan anew with a rarer sync, or with fewer replicas";
        return Some(format!("what replicas tell each other takes most of it: {what}"));
    }
    if let Some((every, rows)) = averaged {
        let twice = u64::from(every) * 2;
        return Some(format!("syncs take most of it: try --sync-every {twice}{rows}{fewer}"));
    }
    let summed = classes().next().is_some();
    let instead = if grouped {
        "try --sync touched-rows, or fewer --replicas"
    } else {
        "try --plan row-wise, which stores them once"
    };
    summed.then(|| format!("sums of replicas' gradients take most of it: {instead}"))
}

/// Groups inside nodes, where exchanges cross nodes and that could be otherwise.
fn inside_nodes(health: &Health, at: &Situation<'_>) -> Option<String> {
    let plan = at.plan;
    let nodes = plan.world() / plan.node_ranks().max(1);
    let counted = health.exchange_bytes.counted?;
    if nodes == 1 || plan.node_ranks() == 1 || counted.inter_node <= counted.intra_node {
        return None;
    }
    let spans = |class: &emb_shard::ExchangeClass| {
        let mesh = class.mesh;
        mesh.group_ranks() > plan.node_ranks()
            || (mesh.group_ranks() > 1 && mesh.layout() == Layout::Strided)
    };
    plan.exchange_classes().iter().any(spans).then(|| {
        let how = if at.planned { "plan anew with" } else { "try" };
        format!(
            "most exchanged bytes cross nodes: {how} --replicas {nodes} --layout contiguous, a \
             group inside each node"
        )
    })
}
