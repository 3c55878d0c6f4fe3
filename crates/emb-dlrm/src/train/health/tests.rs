//! Judgements over figures made up, and windows over meters made up.

use super::advice::{Situation, advice};
use super::measure::{Figures, Reading, Window};
use super::slowest::slowest;
use super::{Bytes, Exposed, Health, Levels, SlowRank};
use emb_comm::Meter;
use emb_shard::{
    Layout, Mesh, PlaceOptions, Placement, Plan, PlanBuilder, ReplicaSync, RowCut, Table,
    TableOptions, Tables,
};
use std::num::NonZeroU32;

/// A rank that computes so long, steadily, and waits until all have taken a second.
fn rank(median: f64) -> Figures {
    let wait = 1.0 - median;
    Figures { step: 1.0, exchange: wait, wait, median, quartile: median, ..Figures::default() }
}

#[test]
fn the_rank_that_computes_longest_is_named_with_the_waiting_it_causes() {
    let named = slowest(&[rank(0.2), rank(0.2), rank(0.2), rank(0.6)]).expect("a slow rank");
    assert_eq!(named.rank, 3);
    assert!((named.compute_ratio - 3.0).abs() < 1e-12);
    // 1.2 seconds of 2.8.
    assert!((named.waiting_caused - 3.0 / 7.0).abs() < 1e-12);
}

#[test]
fn ranks_that_differ_a_little_or_now_and_then_are_not_named() {
    assert_eq!(slowest(&[rank(0.2), rank(0.2), rank(0.2), rank(0.23)]), None);
    // A rank that lost its core in more than half of the steps.
    let disturbed = Figures { median: 0.5, ..rank(0.2) };
    assert_eq!(slowest(&[rank(0.2), rank(0.2), disturbed, rank(0.2)]), None);
    // Three times as long as nearly nothing.
    assert_eq!(slowest(&[rank(0.001), rank(0.001), rank(0.003)]), None);
    assert_eq!(slowest(&[rank(0.0), rank(0.0)]), None);
    assert_eq!(slowest(&[rank(0.3)]), None);
}

fn tables() -> Tables {
    let table = |name| Table::new(name, 100, 4, TableOptions::default()).expect("a table");
    Tables::new(vec![table("a"), table("b")]).expect("tables")
}

/// Four ranks on two nodes.
fn plan(group_ranks: u32, layout: Layout, sync: Option<ReplicaSync>) -> Plan {
    let mesh = Mesh::new(4, group_ranks, layout).expect("a mesh");
    let cut = Placement::RowWise { cut: RowCut::Even };
    let all = PlaceOptions { sync, ..cut.into() };
    PlanBuilder::new(mesh).node_ranks(2).all(all).build(&tables()).expect("a plan")
}

fn health(exchange: f64, sync: f64) -> Health {
    let levels = Levels { intra_node: 1e4, inter_node: 2e4 };
    Health {
        step: 20,
        steps: 20,
        step_seconds: 1.0,
        exposed: Exposed { exchange, sync, ..Exposed::default() },
        waiting: 0.0,
        slowest: None,
        exchange_bytes: Bytes { counted: Some(levels), planned: Some(levels) },
        sync_bytes: Bytes { counted: Some(levels), planned: Some(levels) },
        advice: Vec::new(),
    }
}

fn advised(health: &Health, plan: &Plan, bytes: [f64; 4], lookups: [f64; 2]) -> Vec<String> {
    let with = |bytes: f64| Figures { exchange_bytes: [bytes, 0.0], ..Figures::default() };
    let ranks = bytes.map(with);
    let (ranks, expected) = (&ranks[..], &[1.0, 1.0][..]);
    let situation =
        Situation { plan, planned: false, ranks, lookups: &lookups, expected, samples: 1e4 };
    advice(health, &situation)
}

#[track_caller]
fn says(advice: &[String], words: &[&str]) {
    let text = advice.join("; ");
    assert_eq!(advice.is_empty(), words.is_empty(), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing from: {text}");
    }
}

const EVEN: [f64; 4] = [3e4; 4];
const AS_PLANNED: [f64; 2] = [1.0, 1.0];

#[test]
fn a_run_that_fares_well_gets_no_advice() {
    let plan = plan(4, Layout::Strided, None);
    says(&advised(&health(0.05, 0.0), &plan, EVEN, AS_PLANNED), &[]);
}

#[test]
fn exchanges_that_cross_nodes_ask_for_groups_inside_nodes() {
    let whole = plan(4, Layout::Strided, None);
    let words = ["--replicas 2 --layout contiguous"];
    says(&advised(&health(0.4, 0.1), &whole, EVEN, AS_PLANNED), &words);
    let sync = Some(ReplicaSync::Gradients);
    says(&advised(&health(0.4, 0.1), &plan(2, Layout::Strided, sync), EVEN, AS_PLANNED), &words);
    let inside = plan(2, Layout::Contiguous, sync);
    says(&advised(&health(0.4, 0.1), &inside, EVEN, AS_PLANNED), &[]);
}

#[test]
fn syncs_that_dominate_ask_for_rarer_ones() {
    let every = NonZeroU32::new(4).expect("not 0");
    let of = |sync| plan(2, Layout::Contiguous, Some(sync));
    let costly = health(0.1, 0.4);
    let touched = of(ReplicaSync::TouchedRows { every });
    says(&advised(&costly, &touched, EVEN, AS_PLANNED), &["--sync-every 8", "fewer --replicas"]);
    let weights = of(ReplicaSync::Weights { every });
    says(&advised(&costly, &weights, EVEN, AS_PLANNED), &["--sync-every 8", "--sync touched-rows"]);
    let gradients = of(ReplicaSync::Gradients);
    says(&advised(&costly, &gradients, EVEN, AS_PLANNED), &["gradients", "--sync touched-rows"]);
}

#[test]
fn a_slow_rank_with_most_bytes_is_the_plans_fault_and_one_without_the_machines() {
    let plan = plan(4, Layout::Strided, None);
    let slow = SlowRank { rank: 1, compute_ratio: 2.0, waiting_caused: 0.5 };
    let slow = Health { slowest: Some(slow), ..health(0.4, 0.0) };
    says(&advised(&slow, &plan, EVEN, AS_PLANNED), &["rank 1 is slow: check that machine"]);
    let uneven = [2e4, 6e4, 2e4, 2e4];
    let words = ["rank 1 moves 3.0 x the bytes", "most for \"b\"", "--planner"];
    says(&advised(&slow, &plan, uneven, [1.0, 1.05]), &words);
}

#[test]
fn figures_that_part_from_the_plan_ask_for_another_profile() {
    let plan = plan(4, Layout::Strided, None);
    let well = health(0.0, 0.0);
    let words = ["\"b\" is looked up 1.50 x as often as planned", "profile again"];
    says(&advised(&well, &plan, EVEN, [1.0, 1.5]), &words);
    let more = Levels { intra_node: 1.2e4, inter_node: 2e4 };
    let planned = well.exchange_bytes.planned;
    let parted = Health { exchange_bytes: Bytes { counted: Some(more), planned }, ..well.clone() };
    let words = ["exchanges move 20 % above the plan", "profile again"];
    says(&advised(&parted, &plan, EVEN, AS_PLANNED), &words);
    let unknown =
        Health { exchange_bytes: Bytes { planned: None, ..parted.exchange_bytes }, ..parted };
    says(&advised(&unknown, &plan, EVEN, AS_PLANNED), &[]);
}

/// A meter of so many bytes in the node and seconds of waiting.
fn meter(bytes: u64, seconds: f64) -> Meter {
    let mut meter = Meter::default();
    (meter.intra_node_bytes, meter.wait_seconds) = (bytes, seconds);
    meter
}

fn reading(exchanged: u64, synced: u64) -> Reading {
    Reading { exchanges: meter(exchanged, 0.0), syncs: meter(synced, 0.0), ..Reading::default() }
}

#[test]
fn bytes_of_syncs_are_of_whole_periods() {
    // A sync of 300 bytes every third step, windows of two steps.
    let mut window = Window::new(3, reading(0, 0));
    let mut means = Vec::new();
    for step in 1..=10 {
        let at = reading(step * 10, step / 3 * 300);
        window.step(step, &at);
        if step.is_multiple_of(2) {
            let figures = window.figures();
            assert_eq!(figures.exchange_bytes, [10.0, 0.0]);
            means.push(figures.sync_bytes[0]);
            window.restart(&at);
        }
    }
    assert!(means[..2].iter().all(|mean| mean.is_nan()), "no whole period is over: {means:?}");
    assert_eq!(means[2..], [100.0; 3]);
}

#[test]
fn what_happens_in_a_pause_does_not_count() {
    let pause = std::time::Duration::from_millis(50);
    let begin = std::time::Instant::now();
    let mut window = Window::new(1, reading(0, 0));
    window.step(1, &reading(10, 20));
    window.pause(reading(10, 20));
    std::thread::sleep(pause);
    window.resume(&reading(1010, 2020));
    window.step(2, &reading(1020, 2040));
    let all = begin.elapsed();
    let figures = window.figures();
    assert_eq!((figures.exchange_bytes[0], figures.sync_bytes[0]), (10.0, 20.0));
    // Two steps, and the pause beside.
    let most = all.as_secs_f64() - pause.as_secs_f64();
    assert!(2.0 * figures.step <= most + 1e-9, "{figures:?}, {most} s");
    window.restart(&reading(1020, 2040));
    window.step(3, &reading(1025, 2040));
    assert_eq!(window.figures().exchange_bytes[0], 5.0);
}

#[test]
fn figures_survive_their_journey() {
    let figures = Figures { exchange_bytes: [1.0, 2.0], sync_bytes: [3.0, 4.0], ..rank(0.25) };
    assert_eq!(Figures::from_array(figures.to_array()), figures);
}
