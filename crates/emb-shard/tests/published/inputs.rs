//! Published lists of tables, and that fewer numbers are assumed than figures met.

use crate::data;
use emb_shard::{Preset, TableSpec, WorkloadRow};
use std::collections::BTreeSet;

const LISTED: [(&str, &str); 5] = [
    ("embark-dcnv2", "dcnv2_mlperf"),
    ("embark-t180", "t180_70B_hot80"),
    ("embark-t200", "t200_100B_hot20"),
    ("embark-t510", "t510_110B_hot5"),
    ("embark-t7", "t7_470B_hot20"),
];

/// Figures that the tests of this folder assert: 13 of `exfm` (the rate, four ratios in groups, two
/// in one group, memory on 1,024 and 2,048 GPUs and of replicas, the all-to-all, the sync, 4 and 8
/// replicas), seven of `ctr-256` (the rate, its gain, memory and its fall, two imbalances, 4 and 8
/// groups), five of `EMBark` (two shares, the mean and the largest gain, that of `lattice`).
const FIGURES: usize = 13 + 7 + 5;

#[test]
fn tables_of_embark_presets_are_the_published_ones() {
    let Some(text) = data::text("embark_hugectr_tables.csv") else { return };
    for (name, listed) in LISTED {
        let rows = text.lines().filter(|line| line.split(',').next() == Some(listed));
        let rows: Vec<TableSpec> = rows.map(|line| row(line).into()).collect();
        assert_eq!(Preset::named(name).expect("a preset").spec().tables, rows, "{name}");
    }
}

fn row(line: &str) -> WorkloadRow {
    let fields: Vec<&str> = line.split(',').collect();
    let [workload, table, rows, dim, pooling] = fields[..] else { panic!("line {line:?}") };
    WorkloadRow {
        workload: workload.to_owned(),
        table: table.to_owned(),
        rows: rows.parse().expect("whole"),
        dim: dim.parse().expect("whole"),
        pooling: pooling.parse().expect("a number"),
    }
}

/// An input that presets share counts once.
#[test]
fn fewer_numbers_are_assumed_than_figures_met() {
    let mut assumed = BTreeSet::new();
    for name in Preset::names() {
        let preset = Preset::named(name).expect("a preset");
        let hardware = Preset::hardware();
        let inputs = preset.inputs().iter().chain(&hardware);
        for input in inputs.filter(|input| input.assumed) {
            assumed.insert((input.name, input.value.to_bits()));
        }
    }
    assert!(assumed.len() < FIGURES, "{} assumed, {FIGURES} figures", assumed.len());
}
