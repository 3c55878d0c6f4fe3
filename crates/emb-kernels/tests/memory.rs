//! What tables and steps cost in memory.
#![cfg(target_os = "linux")]

mod support;

use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{Backend, Init, Pages, Pooling, TableSpec};
use emb_optim::RuleKind;
use support::{Group, batch, table};

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = text.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<u64>().expect("a number") * 4096
}

#[test]
fn a_huge_table_costs_what_is_touched() {
    // 2^27 rows of 16 f32: 2^33 bytes of weights, and as many of state twice.
    let init = Init::Uniform { low: -0.1, high: 0.1 };
    let spec =
        TableSpec { pages: Pages::Small, init, ..table("huge", 1 << 27, 16, RuleKind::Adam) };
    let before = resident_bytes();
    let mut group = Group::new(&[spec], Pooling::Sum);
    assert!(resident_bytes() - before < 4 << 20, "creation touches nothing");
    let ids: Vec<i64> = (0..1000).map(|k| k * 134_217 + 5).collect();
    let bags = batch(&["huge"], 1000, &[1; 1000], &ids);
    let out = group.pool(&bags).expect("ids in range");
    assert!(out.iter().all(|w| (-0.1..0.1).contains(w) && *w != 0.0));
    group.update(&bags, &vec![1.0; 16_000]).expect("ids in range");
    let grown = resident_bytes() - before;
    assert!(grown < 48 << 20, "{grown} bytes for 1000 rows");
}

#[test]
fn five_thousand_million_rows_can_be_made_and_their_last_row_used() {
    let rows = 5_000_000_000;
    let spec =
        TableSpec { pages: Pages::Small, ..table("wide", rows, 16, RuleKind::RowWiseAdaGrad) };
    let mut group = Group::new(&[spec], Pooling::Sum);
    let last = rows as i64 - 1;
    let bags = batch(&["wide"], 2, &[2, 1], &[last, 0, last]);
    group.update(&bags, &[1.0; 32]).expect("ids in range");
    let mut weights = [0.0; 32];
    let mut state = [Vec::new()];
    group.cpu.read_rows(&mut group.tables, 0, rows - 2, &mut weights, &mut state).expect("rows");
    assert_eq!(weights[..16], [0.0; 16], "the row before is untouched");
    assert!(weights[16..].iter().all(|&w| w < -0.9), "{weights:?}");
    assert_eq!(state[0], [0.0, 4.0], "two bags of gradient 1");
}

#[test]
fn rows_of_forty_bits_sort_and_update() {
    let rows = 1_u64 << 40;
    let spec = TableSpec { pages: Pages::Small, ..table("wider", rows, 4, RuleKind::Sgd) };
    let mut group = Group::new(&[spec], Pooling::Sum);
    // More lookups than the comparison sort takes, each row twice.
    let ids: Vec<i64> = (0..4000_i64).map(|k| (k % 2000) * 549_755_813 + 3).collect();
    let bags = batch(&["wider"], 4000, &[1; 4000], &ids);
    group.update(&bags, &vec![0.5; 16_000]).expect("ids in range");
    assert_eq!(group.pool(&bags).expect("ids in range"), vec![-1.0; 16_000]);
}

#[test]
fn a_table_beyond_the_address_space_is_refused_by_name() {
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    let error = cpu.create_tables(&[table("t", 1 << 60, 1024, RuleKind::Sgd)], 1);
    let message = error.expect_err("2^72 bytes").to_string();
    assert!(message.starts_with("table \"t\": weights: cannot map"), "{message}");
}
