//! A table costs what is touched; alone in its process, for it reads the process's memory.
#![cfg(target_os = "linux")]

use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{
    Backend, Feature, FeatureMap, Gradients, Init, Jagged, JaggedView, Mat, Pages, Pooling,
    TableSpec,
};
use emb_optim::{Optimizer, RuleKind};

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = text.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<u64>().expect("a number") * 4096
}

#[test]
fn a_huge_table_costs_what_is_touched() {
    // 2^27 rows of 16 f32: 2^33 bytes of weights, and as many of state twice.
    let init = Init::Uniform { low: -0.1, high: 0.1 };
    let spec = TableSpec {
        pages: Pages::Small,
        init,
        ..TableSpec::new("huge", 1 << 27, 16, Optimizer::new(RuleKind::Adam))
    };
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    let feature = Feature { name: "huge".into(), table: 0, pooling: Pooling::Sum };
    let map = FeatureMap::new(vec![feature], std::slice::from_ref(&spec), 0).expect("a map");
    let before = resident_bytes();
    let mut tables = cpu.create_tables(&[spec], 1).expect("a table");
    assert!(resident_bytes() - before < 4 << 20, "creation touches nothing");
    let ids: Vec<i64> = (0..1000).map(|k| k * 134_217 + 5).collect();
    let bags = Jagged::from_lengths(&["huge"], 1000, &[1; 1000], ids, None).expect("a batch");
    let bags = bags.as_ref();
    let view = JaggedView {
        names: bags.names,
        batch: bags.batch,
        len: bags.values.len(),
        offsets: bags.offsets,
        values: bags.values,
        weights: None,
    };
    let mut out = vec![0.0; 16_000];
    cpu.pool(&mut tables, &map, view, Mat::new(&mut out[..], 1000, 16)).expect("ids in range");
    assert!(out.iter().all(|w| (-0.1..0.1).contains(w) && *w != 0.0));
    let ones = vec![1.0; 16_000];
    let gradients = Gradients { pooled: Mat::new(&ones[..], 1000, 16), sequences: &[] };
    let rule = Optimizer::new(RuleKind::Adam).rule(0.01, 1);
    cpu.scatter_update(&mut tables, &map, view, &gradients, &[rule], 1).expect("ids in range");
    let grown = resident_bytes() - before;
    assert!(grown < 48 << 20, "{grown} bytes for 1000 rows");
}
