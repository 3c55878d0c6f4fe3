//! What must hold of the cost of any plan.

use crate::agree::near;
use crate::case::{Case, Random, plan_of_one_group, workload};
use emb_shard::{
    Batch, CostModel, CostOptions, GradientSum, Layout, Ledger, LevelSpec, Mesh, Overlap, Parts,
    Plan, PlanSpec, ReplicaSync, StepModel, TableId, Topology, TopologySpec, UnitRanks, Workload,
    WorkloadSpec,
};
use proptest::prelude::*;
use std::num::NonZeroU32;

fn assert_same(a: &mut Ledger<'_>, b: &mut Ledger<'_>, what: &str) {
    let (left, right) = (a.estimate(), b.estimate());
    let total = left.step_seconds();
    for ((name, a), (_, b)) in left.parts.named().iter().zip(right.parts.named()) {
        assert!(near(*a, b, total), "{what}: {name}: {a} and {b}");
    }
    assert_eq!(left.ranks.len(), right.ranks.len(), "{what}");
    let peaks: (u64, u64) = (a.peak_bytes().get(), b.peak_bytes().get());
    assert!(near(peaks.0 as f64, peaks.1 as f64, 1e13), "{what}: {peaks:?} bytes");
    let (a, b) = (a.inter_node_bytes(), b.inter_node_bytes());
    assert!(near(a, b, a * 1e3), "{what}: {a} and {b} bytes between nodes");
}

fn ledger<'a>(case: &'a Case, tables: &[usize]) -> Ledger<'a> {
    let (model, nodes) = (&case.model, case.plan.node_ranks());
    let mut ledger = Ledger::new(model, &case.workload, &case.topology, nodes).expect("a ledger");
    for &table in tables {
        add(case, &mut ledger, table);
    }
    ledger
}

fn add(case: &Case, ledger: &mut Ledger<'_>, table: usize) {
    let id = TableId::new(table as u32);
    ledger.add(id, &case.plan.placed()[id]).expect("its table");
}

fn remove(case: &Case, ledger: &mut Ledger<'_>, table: usize) {
    let id = TableId::new(table as u32);
    ledger.remove(id, &case.plan.placed()[id]).expect("its table");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tables_taken_away_are_as_if_never_added_and_order_does_not_matter(seed in any::<u64>()) {
        let case = Case::new(seed);
        let mut random = Random(!seed);
        let mut order: Vec<usize> = (0..case.workload.tables().tables().len()).collect();
        let mut all = ledger(&case, &order);
        random.shuffle(&mut order);
        let mut other = ledger(&case, &order);
        let count = random.below(order.len() + 1);
        // The cost is asked for in between, so that nothing stays from before.
        all.step_seconds();
        assert_same(&mut all, &mut other, "order");
        let (kept, gone) = order.split_at(count);
        for &table in gone {
            remove(&case, &mut all, table);
        }
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        let estimate = all.estimate();
        let mut never = ledger(&case, &kept);
        // Meshes that are no longer used may make more ranks be asked, never other answers.
        for ((name, got), (_, want)) in estimate.parts.named().iter().zip(never.parts().named()) {
            let total = never.step_seconds();
            prop_assert!(near(*got, want, total * 1e3), "{name}: {got}, not {want}");
        }
        for &table in gone {
            add(&case, &mut all, table);
        }
        assert_same(&mut all, &mut other, "back again");
    }

    #[test]
    fn a_ledger_that_is_emptied_costs_what_a_new_one_costs(seed in any::<u64>()) {
        let case = Case::new(seed);
        let order: Vec<usize> = (0..case.workload.tables().tables().len()).collect();
        let mut all = ledger(&case, &order);
        for &table in &order {
            remove(&case, &mut all, table);
        }
        let mut none = ledger(&case, &[]);
        prop_assert_eq!(all.parts(), none.parts());
        prop_assert_eq!(all.peak_bytes(), none.peak_bytes());
        prop_assert_eq!(all.inter_node_bytes().to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn more_samples_never_cost_less(seed in any::<u64>(), fewer in 1_u64..200, more in 1_u64..200) {
        let mut case = Case::new(seed);
        case.model.options.overlap = Overlap::None;
        // Fewer bytes of all levels together may take longer over the slowest of them.
        case.model.options.gradient_sum = GradientSum::Gathered;
        let parts = |samples| {
            let workload = case.with_samples(samples);
            let estimate = case.model.estimate(&case.plan, &workload, &case.topology);
            let estimate = estimate.expect("an estimate");
            (estimate.parts, estimate.fullest().expect("a rank").peak.total())
        };
        let ((less, less_bytes), (most, most_bytes)) = (parts(fewer), parts(fewer + more));
        for ((name, less), (_, most)) in less.named().iter().zip(most.named()) {
            prop_assert!(*less <= most * (1.0 + 1e-9), "{name}: {less} {most}");
        }
        prop_assert!(less_bytes <= most_bytes * (1.0 + 1e-9));
    }

    #[test]
    fn groups_on_machines_of_their_own_exchange_as_one_of_them_alone(
        seed in any::<u64>(),
        group in 1_u32..12,
        replicas in 1_u32..5,
        nodes in 1_u32..4,
    ) {
        let mut random = Random(seed);
        let workload = workload(&mut random, 64);
        let mut spec = WorkloadSpec::from(workload);
        spec.batch = Batch::PerRank(64);
        spec.dense_model.gradient_bytes = 0;
        let workload = Workload::new(spec).expect("a workload");
        let ranks = group * nodes;
        // One group's machines are nodes; around them all groups.
        let alone = topology(&[group, ranks, ranks]);
        let one = plan_of_one_group(&mut random, &workload, &alone);
        let together = topology(&[group, ranks, ranks * replicas]);
        let many = widened(&one, &workload, ranks, replicas);
        let model = StepModel::default();
        let (one, many) = (
            model.estimate(&one, &workload, &alone).expect("an estimate"),
            model.estimate(&many, &workload, &together).expect("an estimate"),
        );
        let exchange = |parts: &Parts| [parts.id_exchange, parts.output_exchange, parts.lookup];
        for (a, b) in exchange(&one.parts).into_iter().zip(exchange(&many.parts)) {
            prop_assert!(near(a, b, a), "{a} {b}");
        }
        for (a, b) in one.ranks.iter().zip(&many.ranks) {
            prop_assert_eq!(a.rank, b.rank);
            for (a, b) in a.exchanged.iter().zip(&b.exchanged) {
                prop_assert!(near(a.sent, b.sent, a.sent), "{} {}", a.sent, b.sent);
            }
            prop_assert!(near(a.peak.total(), b.peak.total(), 1e12));
        }
    }
}

/// Every level has units of so many ranks.
fn topology(levels: &[u32]) -> Topology {
    let level = |(number, &ranks): (usize, &u32)| LevelSpec {
        name: format!("level {number}"),
        ranks: UnitRanks::Equal(ranks),
        bandwidth: 1e10,
        latency: 1e-6,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    let spec = TopologySpec {
        name: "equal".into(),
        ranks: levels[levels.len() - 1],
        memory_bytes: 1 << 40,
        memory_bandwidth: 1e12,
        flops: 1e14,
        levels: levels.iter().enumerate().map(level).collect(),
    };
    Topology::new(spec).expect("a topology")
}

/// The tables over groups of all `ranks` of a plan, in each of `replicas` groups.
fn widened(plan: &Plan, workload: &Workload, ranks: u32, replicas: u32) -> Plan {
    let mesh = Mesh::new(ranks * replicas, ranks, Layout::Contiguous).expect("a mesh");
    let weights = ReplicaSync::Weights { every: NonZeroU32::MIN };
    let tables = plan.placed().as_slice().iter().map(|table| {
        let mut table = table.clone();
        for tier in &mut table.tiers {
            tier.mesh = mesh;
            tier.sync = if replicas == 1 { ReplicaSync::None } else { weights };
        }
        table
    });
    let spec = PlanSpec {
        world: ranks * replicas,
        node_ranks: plan.node_ranks(),
        tables: tables.collect(),
    };
    Plan::new(workload.tables(), spec).expect("a plan")
}

#[test]
fn parts_of_peaks_that_cannot_be_are_refused_by_name() {
    let case = Case::new(0);
    let refused = |change: fn(&mut CostOptions)| {
        let mut model = case.model;
        change(&mut model.options);
        let ledger = Ledger::new(&model, &case.workload, &case.topology, case.plan.node_ranks());
        ledger.expect_err("cannot be").to_string()
    };
    assert!(refused(|options| options.memory_efficiency = 0.0).contains("memory_efficiency 0"));
    assert!(refused(|options| options.link_efficiency = 1.5).contains("link_efficiency 1.5"));
    assert!(refused(|options| options.compute_efficiency = f64::NAN).contains("NaN"));
    assert!(refused(|options| options.straggling = -0.1).contains("straggling -0.1"));
}
