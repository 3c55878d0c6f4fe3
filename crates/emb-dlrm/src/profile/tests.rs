use super::*;
use crate::config::{Config, ModelKind, Options, TableOptions};
use crate::data::Distinct;
use emb_shard::{Access, Bucket, Histogram, RowFrequencies, ValueType, Workload, WorkloadSpec};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Memory in which everything of these tests is counted exactly.
const PLENTY: u64 = 1 << 30;

fn naive(lookups: impl IntoIterator<Item = u64>) -> Histogram {
    let mut counts = HashMap::<u64, u64>::new();
    for row in lookups {
        *counts.entry(row).or_default() += 1;
    }
    Histogram::of_counts(counts.into_values()).expect("look-ups")
}

/// Rows looked up twice or more, by count, then by row.
fn naive_hot(lookups: &[u64], most: usize) -> Vec<u64> {
    let mut counts = HashMap::<u64, u64>::new();
    for &row in lookups {
        *counts.entry(row).or_default() += 1;
    }
    let mut rows: Vec<(u64, u64)> = counts.into_iter().map(|(row, count)| (count, row)).collect();
    rows.retain(|&(count, _)| count > 1);
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    rows.into_iter().map(|(_, row)| row).take(most).collect()
}

fn counted(rows: u64, bytes: u64, lookups: &[u64]) -> RowCounts {
    let mut counts = RowCounts::new(rows, bytes);
    for &row in lookups {
        counts.add(row);
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counts_with_room_equal_a_naive_count(
        lookups in proptest::collection::vec(0..700_u64, 1..3000),
        stride in prop_oneof![Just(1_u64), Just(1 << 28)],
    ) {
        // A table too large for a count of each row, and one that is small enough.
        let lookups: Vec<u64> = lookups.iter().map(|row| row * stride).collect();
        let counts = counted(700 * stride, RowCounts::LEAST_BYTES, &lookups);
        let expected = naive(lookups.iter().copied());
        prop_assert_eq!(counts.lookups(), lookups.len() as u64);
        prop_assert_eq!(counts.seen(), Distinct::Exact(expected.rows()));
        prop_assert_eq!(counts.histogram(), Some(expected));
        for most in [0, 1, 7, 10_000] {
            prop_assert_eq!(counts.hot(most), naive_hot(&lookups, most));
        }
    }

    #[test]
    fn estimates_never_have_more_rows_than_the_table_and_buckets_that_descend(
        rows in 9000..40_000_u64,
        often in 1..50_u64,
    ) {
        let lookups: Vec<u64> =
            (0..rows).flat_map(|row| std::iter::repeat_n(row, (1 + often / (row + 1)) as usize)).collect();
        let counts = counted(rows, RowCounts::LEAST_BYTES, &lookups);
        let histogram = counts.histogram().expect("buckets that descend");
        prop_assert!(histogram.rows() <= rows, "{} of {}", histogram.rows(), rows);
        prop_assert!(counts.seen().count() <= rows);
        let estimated = matches!(counts.seen(), Distinct::Estimate { .. });
        prop_assert!(estimated, "{} rows do not fit", rows);
        prop_assert_eq!(counts.lookups(), lookups.len() as u64);
        // What has a count of its own is in the order of the exact counts.
        let (hot, all) = (counts.hot(100), naive_hot(&lookups, lookups.len()));
        let places: Vec<usize> =
            hot.iter().map(|row| all.iter().position(|other| other == row).expect("hot")).collect();
        prop_assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn a_table_without_look_ups_has_no_histogram() {
    for rows in [10, 1 << 40] {
        let counts = RowCounts::new(rows, 0);
        assert_eq!((counts.histogram(), counts.seen()), (None, Distinct::Exact(0)));
        assert_eq!(counts.hot(10), Vec::<u64>::new());
    }
}

#[test]
fn rows_that_are_frequent_from_the_beginning_are_counted_exactly_in_little_memory() {
    // Ten frequent rows among 200,000 that come once or twice.
    let mut lookups = Vec::new();
    for step in 0..200_000_u64 {
        lookups.push(step % 10);
        lookups.push(1_000 + step * 7);
        if step % 2 == 0 {
            lookups.push(1_000 + step * 7);
        }
    }
    let counts = counted(1 << 40, RowCounts::LEAST_BYTES, &lookups);
    let histogram = counts.histogram().expect("look-ups");
    assert_eq!(histogram.buckets()[0], Bucket { rows: 10, lookups: 200_000 });
    assert_eq!(counts.hot(10), (0..10).collect::<Vec<_>>());
    let Distinct::Estimate { count, relative_error } = counts.seen() else {
        panic!("more rows than {} bytes can hold", RowCounts::LEAST_BYTES)
    };
    let error = (count as f64 / 200_010.0 - 1.0).abs();
    assert!(error < 4.0 * relative_error && relative_error < 0.08, "{error} {relative_error}");
    let tail = histogram.lookups() as f64 - 200_000.0;
    assert!((tail / 300_000.0 - 1.0).abs() < 4.0 * 0.08, "{tail} look-ups of rare rows");
}

fn table(name: &str, rows: u64) -> TableOptions {
    TableOptions {
        name: name.to_owned(),
        rows: Some(rows),
        dim: None,
        weight_type: None,
        init: None,
        optimizer: None,
        lr: None,
        placement: None,
        replicas: None,
    }
}

fn synthetic(rows: u64) -> Config {
    let options = Options {
        data: vec!["synthetic".into()],
        table: vec![table("large", rows), table("small", 50)],
        ..Options::default()
    };
    Config::resolve(options).expect("consistent")
}

fn measured(config: &Config, memory_bytes: u64, samples: u64) -> Profile {
    let options = ProfileOptions { memory_bytes, samples: Some(samples), hot_rows: 100 };
    let mut told = 0;
    let profile = profile(config, options, |samples| told = samples).expect("a profile");
    assert_eq!((profile.samples, told), (samples, samples));
    profile
}

#[test]
fn an_estimate_in_little_memory_is_near_the_exact_count_of_zipf_distributed_ids() {
    let config = synthetic(5_000_000);
    let exact = measured(&config, PLENTY, 300_000);
    let little = measured(&config, 4 * RowCounts::LEAST_BYTES, 300_000);
    assert_eq!(exact.tables[1], little.tables[1], "the small table has room in any case");
    let (exact, little) = (&exact.tables[0], &little.tables[0]);
    assert!(matches!(exact.seen, Distinct::Exact(_)));
    let Distinct::Estimate { count, relative_error } = little.seen else {
        panic!("{} rows do not fit", exact.seen.count())
    };
    let error = (count as f64 / exact.seen.count() as f64 - 1.0).abs();
    assert!(error < 4.0 * relative_error, "{count} for {}", exact.seen.count());
    assert!(relative_error < 0.05, "{relative_error}");
    assert_eq!(exact.lookups, little.lookups);
    for (exact, little) in
        [(exact.top_1_percent, little.top_1_percent), (exact.top_10_percent, little.top_10_percent)]
    {
        assert!((exact - little).abs() < 0.02, "{little} for {exact}");
    }
}

#[test]
fn a_profile_is_the_same_every_time() {
    let config = synthetic(1_000_000);
    let text = || {
        let profile = measured(&config, 2 * RowCounts::LEAST_BYTES, 50_000);
        workload_text(&profile.workload).expect("JSON")
    };
    assert_eq!(text(), text());
}

#[test]
fn a_profile_reads_back_as_the_workload_it_is() {
    let profile = measured(&synthetic(1000), PLENTY, 2000);
    let text = workload_text(&profile.workload).expect("JSON");
    let read: WorkloadSpec = serde_json::from_str(&text).expect("a workload");
    assert_eq!(read, profile.workload);
    let workload = Workload::new(read).expect("consistent");
    let config = synthetic(1000);
    let tables = config.planned_tables().expect("tables");
    for ((_, table), own) in workload.tables().tables().iter().zip(tables.tables().as_slice()) {
        assert_eq!(table, own, "as a run with these options has it");
    }
}

#[test]
fn the_dense_model_has_the_parameters_that_a_run_has() {
    for model in [ModelKind::Dlrm, ModelKind::DlrmDcn] {
        let options = Options {
            data: vec!["synthetic".into()],
            rows_per_table: Some(10),
            model: Some(model),
            dim: Some(8),
            bottom: Some(vec![32, 16]),
            top: Some(vec![24]),
            dcn_layers: (model == ModelKind::DlrmDcn).then_some(2),
            dcn_rank: (model == ModelKind::DlrmDcn).then_some(5),
            ..Options::default()
        };
        let config = Config::resolve(options).expect("consistent");
        let backend =
            emb_kernels::Cpu::new(emb_kernels::CpuOptions { threads: 1 }).expect("a backend");
        let trainer = crate::train::build(backend, &config).expect("a model");
        let count = dense::DenseCount::of(&config);
        assert_eq!(count.parameters, trainer.model.dense.total() as u64, "{model}");
        let workload = measured(&config, PLENTY, 100).workload;
        // AdaGrad keeps one value beside weight and gradient.
        assert_eq!(workload.dense_model.memory_bytes, 12 * count.parameters);
    }
}

#[test]
fn dense_gradients_have_the_bytes_of_their_format() {
    let bytes = |wire: &str| {
        let options = Options {
            data: vec!["synthetic".into()],
            rows_per_table: Some(10),
            world: Some(2),
            plan: Some("row-wise".into()),
            wire: Some(wire.parse().expect("a format")),
            ..Options::default()
        };
        let config = Config::resolve(options).expect("consistent");
        let parameters = dense::DenseCount::of(&config).parameters;
        let tables = config.planned_tables().expect("tables");
        let spec = super::workload_of(&config, &tables).expect("one kind of tables");
        (spec.dense_model, spec.outputs, parameters)
    };
    let (dense, outputs, parameters) = bytes("int8,dense=bf16");
    assert_eq!((dense.gradient_bytes, outputs), (2 * parameters, ValueType::Int8Rowwise));
    assert_eq!(dense.memory_bytes, 12 * parameters, "in memory they stay f32");
    assert_eq!(bytes("int8").0.gradient_bytes, 4 * parameters);
}

#[test]
fn memory_below_the_least_is_refused_with_the_least() {
    let options = ProfileOptions { memory_bytes: 1000, samples: Some(10), hot_rows: 0 };
    let error = profile(&synthetic(1000), options, |_| {}).expect_err("too little").to_string();
    assert!(error.contains("131072") && error.contains("2 tables"), "{error}");
}

#[test]
fn tables_of_two_types_are_refused_by_name() {
    let mut second = table("small", 50);
    second.weight_type = Some(crate::config::WeightType::Bf16);
    let options = Options {
        data: vec!["synthetic".into()],
        table: vec![table("large", 100), second],
        ..Options::default()
    };
    let config = Config::resolve(options).expect("consistent");
    let options = ProfileOptions { memory_bytes: PLENTY, samples: Some(10), hot_rows: 0 };
    let error = profile(&config, options, |_| {}).expect_err("two types").to_string();
    for word in ["\"small\"", "\"large\"", "Bf16", "F32"] {
        assert!(error.contains(word), "{word} is missing from: {error}");
    }
}

#[test]
fn real_clicks_have_the_histogram_of_a_naive_count() {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let file = folder.join("criteo8k_train.tsv");
    if !file.exists() {
        eprintln!("skipped: {} is absent; set EMB_DATA to its folder", file.display());
        return;
    }
    let text = std::fs::read_to_string(&file).expect("text");
    let rows = 1000;
    let options = Options { data: vec![file], rows_per_table: Some(rows), ..Options::default() };
    let config = Config::resolve(options).expect("consistent");
    let options = ProfileOptions { memory_bytes: PLENTY, samples: None, hot_rows: 1000 };
    let profile = profile(&config, options, |_| {}).expect("a profile");
    assert_eq!(profile.samples, 7200);
    for (number, table) in profile.tables.iter().enumerate() {
        let ids = text.lines().map(|line| {
            let field = line.split('\t').nth(14 + number).expect("40 fields");
            // A missing id has the last row.
            u64::from_str_radix(field, 16).map_or(rows, |id| id % rows)
        });
        let ids: Vec<u64> = ids.collect();
        let expected = naive(ids.iter().copied());
        let spec = &profile.workload.tables[number];
        assert_eq!(spec.access, Some(Access::Histogram(expected.clone())), "{}", table.table);
        assert_eq!((spec.rows, spec.pooling_factor), (rows + 1, 1.0));
        assert_eq!(spec.hot, Some(naive_hot(&ids, 1000)));
        assert_eq!((table.lookups, table.seen.count()), (7200, expected.rows()));
        let frequencies = RowFrequencies::new(&Access::Histogram(expected.clone()), rows + 1);
        let top = frequencies.expect("valid").share_of_top(expected.rows().div_ceil(10));
        assert_eq!(table.top_10_percent, top);
    }
}
