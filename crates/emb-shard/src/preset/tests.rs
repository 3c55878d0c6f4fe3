//! Names, sources, and that published lists are what they were.

use super::*;
use crate::{Batch, Bytes};

fn preset(name: &str) -> Preset {
    Preset::named(name).expect("a preset")
}

#[test]
fn every_name_is_a_valid_workload_with_sources() {
    for name in Preset::names() {
        let preset = preset(name);
        assert_eq!(preset.workload().expect("valid").name(), name);
        assert!(!preset.title().is_empty() && !preset.gpus().is_empty());
        assert!(preset.inputs().iter().any(|input| input.assumed));
        for input in preset.inputs().iter().chain(&Preset::hardware()) {
            assert!(!input.source.is_empty() && input.value.is_finite(), "{name}: {input}");
        }
    }
    let error = Preset::named("exfn").expect_err("unknown").to_string();
    assert!(error.contains(r#"did you mean "exfm"?"#), "{error}");
}

#[test]
fn totals_of_published_models_are_the_published_ones() {
    // Weights in 10^9, to as many digits as were published; ids of a sample; columns.
    let totals = [
        ("embark-dcnv2", 26.136, 214.0, 3328),
        ("embark-t180", 66.33, 14450.0, 19200),
        ("embark-t200", 103.86, 4550.0, 24320),
        ("embark-t510", 114.57, 2670.0, 65280),
        ("embark-t7", 446.08, 163.0, 800),
    ];
    for (name, weights, ids, columns) in totals {
        let tables = &preset(name).spec;
        let sum = |of: fn(&crate::TableSpec) -> u64| tables.tables.iter().map(of).sum::<u64>();
        let all = sum(|table| table.rows * table.dim as u64) as f64 / 1e9;
        assert!((all - weights).abs() < 0.005, "{name}: {all}");
        assert_eq!(sum(|table| table.dim as u64), columns, "{name}");
        let all = tables.tables.iter().map(|table| table.pooling_factor).sum::<f64>();
        assert_eq!(all, ids, "{name}");
    }
}

#[test]
fn exfm_has_its_bytes_and_groups() {
    let exfm = preset("exfm");
    let bytes = exfm.workload().expect("valid").tables().weight_bytes().expect("fits");
    assert!((bytes.get() as f64 / 1.7e12 - 1.0).abs() < 1e-6);
    assert_eq!([256, 1024, 32_768].map(|gpus| exfm.replicas(gpus)), [1, 4, 128]);
    assert_eq!(preset("ctr-256").replicas(256), 1);
    assert_eq!(exfm.spec().batch, Batch::PerRank(1024));
}

#[test]
fn hardware_is_what_the_inputs_say() {
    let machines = Preset::machines(1024).expect("whole nodes");
    let value = |name: &str| {
        let inputs = Preset::hardware();
        inputs.iter().find(|input| input.name == name).expect("listed").value
    };
    assert_eq!(machines.memory(), Bytes::new(value("memory of a GPU") as u64));
    assert_eq!(machines.flops(), value("operations of a GPU"));
    assert_eq!(machines.memory_bandwidth(), value("memory bandwidth"));
    let [node, network] = machines.levels() else { panic!("two levels") };
    assert_eq!(node.bandwidth(), value("NVLink, one direction"));
    assert_eq!(network.bandwidth(), value("network, one direction"));
    assert_eq!(node.latency(), value("latency of NVLink"));
    assert_eq!(network.latency(), value("latency of the network"));
    for (others, name) in [(15, "15 others"), (1023, "1,023 others")] {
        let left = value(&format!("network left to an all-to-all of {name}"));
        assert_eq!(network.all_to_all_bandwidth(others), left * network.bandwidth());
    }
    let error = Preset::machines(12).expect_err("half a node").to_string();
    assert!(error.contains("12 ranks are no whole nodes of 8"), "{error}");
}
