//! Levels and nodes, presets, refusals.

use super::*;
use proptest::prelude::*;

fn level(name: &str, ranks: UnitRanks) -> LevelSpec {
    LevelSpec {
        name: name.into(),
        ranks,
        bandwidth: 1e9,
        latency: 1e-6,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    }
}

fn spec(ranks: u32, levels: Vec<LevelSpec>) -> TopologySpec {
    TopologySpec {
        name: "lab".into(),
        ranks,
        memory_bytes: 1 << 30,
        memory_bandwidth: 1e11,
        flops: 1e12,
        levels,
    }
}

/// Sixteen ranks: nodes of 4, racks of 8 ranks, one cluster.
fn racks() -> TopologySpec {
    let equal = |name, ranks| level(name, UnitRanks::Equal(ranks));
    spec(16, vec![equal("node", 4), equal("rack", 8), equal("cluster", 16)])
}

fn refused(change: impl FnOnce(&mut TopologySpec)) -> String {
    let mut spec = racks();
    change(&mut spec);
    Topology::new(spec).expect_err("must be refused").to_string()
}

#[test]
fn two_ranks_talk_over_the_innermost_unit_that_has_both() {
    let topology = Topology::new(racks()).expect("valid");
    let between = |a, b| topology.level_of(Rank::new(a), Rank::new(b)).expect("ranks");
    assert_eq!(between(5, 5), None);
    assert_eq!(between(4, 7), Some(LevelId::new(0)));
    assert_eq!(between(3, 4), Some(LevelId::new(1)));
    assert_eq!(between(7, 8), Some(LevelId::new(2)));
    let peers = |level| topology.peers(Rank::new(9), LevelId::new(level)).expect("a level");
    assert_eq!([peers(0), peers(1), peers(2)], [3, 4, 8]);
    for (a, b) in [(0, 16), (16, 0), (16, 16)] {
        let error = topology.level_of(Rank::new(a), Rank::new(b)).expect_err("16 ranks");
        assert_eq!(error.to_string(), "rank 16 does not exist: there are 16");
    }
    let error = topology.peers(Rank::new(0), LevelId::new(3)).expect_err("three levels");
    assert_eq!(error.to_string(), "level 3 does not exist: there are 3");
}

#[test]
fn nodes_may_differ() {
    let nodes = level("node", UnitRanks::Each(vec![2, 4, 1]));
    let topology = Topology::new(spec(7, vec![nodes, level("cluster", UnitRanks::Equal(7))]));
    let topology = topology.expect("valid");
    assert_eq!((topology.nodes(), topology.node_ranks()), (3, None));
    let ranks = |node| topology.ranks_of_node(NodeId::new(node));
    let numbers = |node| ranks(node).expect("a node").map(Rank::get).collect::<Vec<_>>();
    assert_eq!([numbers(0), numbers(1), numbers(2)], [vec![0, 1], vec![2, 3, 4, 5], vec![6]]);
    let error = ranks(3).err().expect("three nodes");
    assert_eq!(error.to_string(), "node 3 does not exist: there are 3");
    let peers = |rank| topology.peers(Rank::new(rank), LevelId::new(1)).expect("a level");
    assert_eq!([peers(0), peers(2), peers(6)], [5, 3, 6]);
}

#[test]
fn an_all_to_all_slows_between_its_measured_points() {
    let mut spec = racks();
    spec.levels[2].all_to_all = vec![(4, 0.8), (16, 0.4)];
    let topology = Topology::new(spec).expect("valid");
    let cluster = topology.level(LevelId::new(2)).expect("a level");
    for (peers, part) in [(1, 0.8), (4, 0.8), (8, 0.6), (16, 0.4), (1000, 0.4)] {
        let found = cluster.all_to_all_bandwidth(peers) / cluster.bandwidth();
        assert!((found - part).abs() < 1e-12, "{peers}: {found}");
    }
    assert_eq!(topology.levels()[0].all_to_all_bandwidth(3), 1e9);
}

#[test]
fn presets_print_as_aligned_tables() {
    let text = |name| Topology::preset(name).expect("known").to_string();
    let h100 = "dgx-h100:16: ranks 128, nodes 16\n\
        level    units  ranks  bandwidth  latency  all-to-all\n\
        node        16      8   450 GB/s   3.4 us  full\n\
        cluster      1    128  50.0 GB/s  14.0 us  full\n\
        a rank: 74.51 GiB of memory at 3.35 TB/s, 989 TFLOP/s";
    assert_eq!(text("dgx-h100:16"), h100);
    let a100 = Topology::preset("dgx-a100:2").expect("known");
    assert_eq!((a100.world(), a100.node_ranks()), (16, Some(8)));
    assert_eq!(a100.levels()[0].bandwidth() / a100.levels()[1].bandwidth(), 12.0);
    // One node has no link beyond it.
    assert_eq!(Topology::preset("dgx-a100:1").expect("known").levels().len(), 1);
    let cpu = "cpu:4: ranks 4, nodes 1\n\
        level  units  ranks  bandwidth  latency  all-to-all\n\
        node       1      4  6.85 GB/s  10.0 us  full\n\
        a rank: 32.00 GiB of memory at 13.7 GB/s, 64.0 GFLOP/s";
    assert_eq!(text("cpu:4"), cpu);
}

#[test]
fn unknown_presets_name_the_nearest_and_counts_are_checked() {
    let refused = |text| Topology::preset(text).expect_err("must be refused").to_string();
    let near = refused("dgx_h100:16");
    assert!(near.contains(r#"did you mean "dgx-h100"? one of: dgx-h100, dgx-a100, cpu"#), "{near}");
    for text in ["cpu", "cpu:", "cpu:0", "cpu:-1", "cpu:1.5", "cpu:1048577", "dgx-h100:131073"] {
        assert!(refused(text).contains("must be a whole number in 1..="), "{text}");
    }
    assert_eq!(Topology::preset("dgx-h100:131072").expect("known").world(), crate::MAX_WORLD);
}

#[test]
fn impossible_topologies_are_refused_by_name() {
    assert!(refused(|t| t.name.clear()).contains("needs a name"));
    assert_eq!(refused(|t| t.ranks = 0), r#"topology "lab": 0 ranks: must be in 1..=1048576"#);
    assert!(refused(|t| t.ranks = u32::MAX).contains("must be in 1..=1048576"));
    assert!(refused(|t| t.memory_bytes = 0).contains("a rank without memory"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(|t| t.memory_bandwidth = rate).contains("must be finite and above 0"));
        assert!(refused(|t| t.flops = rate).contains("a compute rate"));
        let text = refused(|t| t.levels[1].bandwidth = rate);
        assert!(text.starts_with(r#"topology "lab": level "rack": a bandwidth of"#), "{text}");
    }
    assert!(refused(|t| t.levels[0].latency = -1e-6).contains("a latency of -0.000001 seconds"));
    assert!(refused(|t| t.levels[0].name.clear()).contains(r#"level "": needs a name"#));
    assert!(refused(|t| t.levels.clear()).contains("needs at least one level"));
    let last = refused(|t| drop(t.levels.pop()));
    assert!(last.contains(r#"the last level "rack" has 2 units: must be one"#), "{last}");
}

#[test]
fn impossible_units_are_refused_by_level() {
    let with = |units: UnitRanks| refused(|t| t.levels[0].ranks = units);
    assert!(with(UnitRanks::Equal(0)).contains(r#"level "node": a unit without ranks"#));
    assert!(with(UnitRanks::Equal(5)).contains("16 ranks do not split into units of 5"));
    assert!(with(UnitRanks::Each(vec![4, 0, 12])).contains("unit 1 has no ranks"));
    assert!(with(UnitRanks::Each(vec![8, 9, 1])).contains("units 0..=1 have 17 ranks"));
    let overflow = with(UnitRanks::Each(vec![1, u32::MAX, 1]));
    assert!(overflow.contains("have 4294967296 ranks, there are 16"), "{overflow}");
    assert!(with(UnitRanks::Each(vec![8, 7])).contains("have 15 ranks together"));
    assert!(with(UnitRanks::Each(vec![])).contains("have 0 ranks together"));
    let across = with(UnitRanks::Each(vec![6, 6, 4]));
    assert!(across.contains(r#"level "rack": a unit begins at rank 8, inside a node"#), "{across}");
}

#[test]
fn impossible_points_of_an_all_to_all_are_refused() {
    let with = |points: &[(u32, f64)]| refused(|t| t.levels[2].all_to_all = points.to_vec());
    assert!(with(&[(0, 1.0)]).contains("0 peers after 0: must ascend from 1"));
    assert!(with(&[(8, 1.0), (8, 0.9)]).contains("8 peers after 8"));
    for part in [0.0, -0.5, 1.1, f64::NAN] {
        assert!(with(&[(4, part)]).contains("must be above 0 and at most 1"));
    }
    assert!(with(&[(4, 0.5), (8, 0.6)]).contains("at most 0.5"));
}

#[test]
fn files_are_checked_as_they_are_read() {
    let topology = Topology::new(racks()).expect("valid");
    let text = serde_json::to_string(&topology).expect("writes");
    assert_eq!(serde_json::from_str::<Topology>(&text).expect("reads"), topology);
    let read = |text: &str| serde_json::from_str::<Topology>(text).expect_err("bad").to_string();
    let typo = read(&text.replacen("latency", "latncy", 1));
    assert!(typo.contains("unknown field `latncy`"), "{typo}");
    let zero = read(&text.replacen("1000000000.0", "0.0", 1));
    assert!(zero.contains(r#"level "node": a bandwidth of 0"#), "{zero}");
    let words = read(&text.replacen(r#""ranks":4"#, r#""ranks":"four""#, 1));
    assert!(words.contains("a list with one for each unit"), "{words}");
}

proptest! {
    #[test]
    fn every_rank_is_in_one_node_and_every_pair_meets_once(
        nodes in prop::collection::vec(1_u32..9, 1..12),
    ) {
        let world = nodes.iter().sum();
        let levels = vec![
            level("node", UnitRanks::Each(nodes.clone())),
            level("cluster", UnitRanks::Equal(world)),
        ];
        let topology = Topology::new(spec(world, levels)).expect("valid");
        let mut seen = Vec::new();
        for node in 0..topology.nodes() {
            for rank in topology.ranks_of_node(NodeId::new(node)).expect("a node") {
                prop_assert_eq!(topology.node_of(rank).expect("a rank").get(), node);
                seen.push(rank.get());
            }
        }
        prop_assert_eq!(seen, (0..world).collect::<Vec<_>>());
        for rank in (0..world).map(Rank::new) {
            let level = |other| topology.level_of(rank, Rank::new(other)).expect("ranks");
            for number in 0..2 {
                let id = LevelId::new(number);
                let over = (0..world).filter(|&other| level(other) == Some(id)).count();
                prop_assert_eq!(topology.peers(rank, id).expect("a level") as usize, over);
            }
        }
    }
}

#[test]
fn transfers_bend_the_bandwidth_and_bound_it() {
    let bent = |transfers: Vec<(u64, f64)>| {
        let mut spec = racks();
        spec.levels[0].transfers = transfers;
        spec.levels[0].all_to_all = vec![(1, 1.0), (3, 0.5)];
        Topology::new(spec)
    };
    let topology = bent(vec![(1000, 1e-7), (100_000, 1e-4)]).expect("valid");
    let node = &topology.levels()[0];
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(near(node.bandwidth_of(1, 10.0), 1e10), "in proportion before the first");
    let between = 1e-7 + 9.0 / 99.0 * (1e-4 - 1e-7);
    assert!(near(node.bandwidth_of(1, 10_000.0), 10_000.0 / between));
    assert!(near(node.bandwidth_of(3, 1e7), 0.5e9), "in proportion behind the last, peers count");
    assert!(near(node.best_bandwidth(1), 1e10));
    assert!(near(node.exchange_seconds(1, 1e7), 1e-6 + 1e-2));
    assert_eq!(node.exchange_seconds(1, 0.0), 1e-6);
    let straight = bent(Vec::new()).expect("valid");
    let node = &straight.levels()[0];
    assert_eq!(node.bandwidth_of(3, 77.0), node.all_to_all_bandwidth(3));
    assert_eq!(node.best_bandwidth(3), node.all_to_all_bandwidth(3));
    for (points, words) in [
        (vec![(8, 1e-6), (8, 2e-6)], "a transfer of 8 bytes after 8"),
        (vec![(8, 1e-6), (16, 1e-6)], "a transfer of 16 bytes in 0.000001 seconds"),
        (vec![(8, f64::INFINITY)], "a transfer of 8 bytes in inf seconds"),
    ] {
        let error = bent(points).expect_err("refused").to_string();
        assert!(error.contains(words) && error.contains("level \"node\""), "{error}");
    }
}
