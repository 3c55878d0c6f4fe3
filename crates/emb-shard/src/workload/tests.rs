//! A published workload from its list, shares of batches, bytes, refusals.

use super::*;
use crate::{Access, Bucket, Bytes, Histogram, Pooling, Rank, StateBytes};

/// DLRM-DCNv2 of the `MLPerf` training benchmark: rows and multi-hot sizes of its 26 tables.
const DCNV2: [(u64, u32); 26] = [
    (40_000_000, 3),
    (39_060, 2),
    (17_295, 1),
    (7_424, 2),
    (20_265, 6),
    (3, 1),
    (7_122, 1),
    (1_543, 1),
    (63, 1),
    (40_000_000, 7),
    (3_067_956, 3),
    (405_282, 8),
    (10, 1),
    (2_209, 6),
    (11_938, 9),
    (155, 5),
    (4, 1),
    (976, 1),
    (14, 1),
    (40_000_000, 12),
    (40_000_000, 100),
    (40_000_000, 27),
    (590_152, 10),
    (12_973, 3),
    (108, 1),
    (36, 1),
];

fn dcnv2() -> Vec<WorkloadRow> {
    let row = |(table, &(rows, pooling)): (usize, &(u64, u32))| {
        let text = format!(
            r#"{{"workload":"dcnv2","table":{table},"rows":{rows},"dim":128,"pooling":{pooling}}}"#
        );
        serde_json::from_str(&text).expect("a row")
    };
    DCNV2.iter().enumerate().map(row).collect()
}

/// A small workload that passes.
fn small() -> WorkloadSpec {
    let mut spec = WorkloadSpec::new("small", Batch::PerRank(100));
    spec.tables = vec![TableSpec::new("a", 1000, 16), TableSpec::new("b", 10, 8)];
    spec
}

fn refused(change: impl FnOnce(&mut WorkloadSpec)) -> String {
    let mut spec = small();
    change(&mut spec);
    Workload::new(spec).expect_err("must be refused").to_string()
}

#[test]
fn a_published_list_of_tables_is_a_workload() {
    let mut rows = dcnv2();
    rows.insert(3, WorkloadRow { workload: "other".into(), ..rows[0].clone() });
    let mut spec = WorkloadSpec::from_rows("dcnv2", Batch::Global(65_536), rows).expect("there");
    spec.state = StateBytes { per_row: 0, per_element: 4 };
    let workload = Workload::new(spec).expect("valid");
    let tables = workload.tables().tables();
    assert_eq!(tables.len(), 26);
    assert_eq!(tables[TableId::new(25)].name(), "25");
    assert_eq!(tables.as_slice().iter().map(crate::Table::rows).sum::<u64>(), 204_184_588);
    let bytes = workload.tables().weight_bytes().expect("fits");
    assert_eq!(bytes.to_string(), "97.36 GiB");
    let state = tables[TableId::new(5)].part_bytes(3, 128).state;
    assert_eq!(state, Bytes::new(3 * 128 * 4));
    let lookups = (0..26).map(|table| workload.lookups(TableId::new(table), 2).expect("a table"));
    assert_eq!(lookups.sum::<f64>(), 2.0 * 214.0);
    assert!(workload.lookups(TableId::new(26), 1).is_err());
}

#[test]
fn an_unknown_workload_names_the_nearest() {
    let error = WorkloadSpec::from_rows("dcnv3", Batch::Global(1), dcnv2()).expect_err("unknown");
    let expected = r#"workload "dcnv3": unknown; did you mean "dcnv2"? one of: dcnv2"#;
    assert_eq!(error.to_string(), expected);
}

#[test]
fn batches_are_shared_out_whole() {
    for world in [1, 3, 8, 100] {
        let share = |batch: Batch, rank| batch.of_rank(Rank::new(rank), world).expect("a rank");
        for samples in [1, 7, 64, 1000] {
            let global = Batch::Global(samples);
            let shares: Vec<u64> = (0..world).map(|rank| share(global, rank)).collect();
            assert_eq!(shares.iter().sum::<u64>(), global.global(world).expect("ranks"));
            assert!(shares.is_sorted_by(|a, b| a >= b) && shares[0] - shares[shares.len() - 1] < 2);
            let each = Batch::PerRank(samples);
            assert_eq!(share(each, world - 1), samples);
            assert_eq!(each.global(world).expect("ranks"), samples * u64::from(world));
        }
    }
    let text = |error: Error| error.to_string();
    let huge = Batch::PerRank(u64::MAX).global(2).map_err(text);
    let expected = "18446744073709551615 samples of each of 2 ranks exceed 64 bits";
    assert_eq!(huge, Err(expected.into()));
    let none = Batch::Global(5).global(0).map_err(text);
    assert_eq!(none, Err("5 samples of all ranks, and there are no ranks".into()));
    let outside = Batch::Global(5).of_rank(Rank::new(2), 2).map_err(text);
    assert_eq!(outside, Err("rank 2 does not exist: there are 2".into()));
}

#[test]
fn types_have_their_bytes_and_dense_time_its_seconds() {
    assert_eq!(ValueType::F32.row_bytes(10), 40);
    assert_eq!(ValueType::Bf16.row_bytes(10), 20);
    assert_eq!(ValueType::Int8Rowwise.row_bytes(10), 18);
    assert_eq!(ValueType::Fp8E5m2.row_bytes(10), 14);
    // Half a byte each, and 4 bytes for every 32 of them.
    assert_eq!([1, 32, 33, 128].map(|dim| ValueType::Int4.row_bytes(dim)), [5, 20, 25, 80]);
    assert_eq!(ValueType::F32.row_bytes(usize::MAX), u64::MAX);
    assert_eq!((IdType::I32.bytes(), IdType::I64.bytes()), (4, 8));
    assert_eq!(DenseTime::SecondsPerSample(0.5).seconds_of(3.0, 1e9), 1.5);
    assert_eq!(DenseTime::FlopsPerSample(2e9).seconds_of(3.0, 1e9), 6.0);
    let mut spec = small();
    spec.rows = ValueType::F16;
    let workload = Workload::new(spec).expect("valid");
    assert_eq!(workload.tables().weight_bytes(), Some(Bytes::new((1000 * 16 + 10 * 8) * 2)));
}

#[test]
fn tables_have_their_own_access_features_and_pooling() {
    let mut spec = small();
    spec.access = Access::Zipf { exponent: 1.0 };
    let buckets = vec![Bucket { rows: 1, lookups: 9 }, Bucket { rows: 9, lookups: 1 }];
    spec.tables[1].access = Some(Access::Histogram(Histogram::new(buckets).expect("valid")));
    spec.tables[1].features = Some(vec!["x".into(), "y".into()]);
    spec.tables[1].pooling = Pooling::Mean;
    spec.tables[1].pooling_factor = 2.5;
    let workload = Workload::new(spec).expect("valid");
    let (a, b) = (TableId::new(0), TableId::new(1));
    let frequencies = workload.frequencies();
    assert!(
        (frequencies[a].probability(0).expect("a row") - 1.0 / 7.485_470_860_550_345).abs() < 1e-12
    );
    assert_eq!(frequencies[b].probability(0).expect("a row"), 0.9);
    assert_eq!(workload.lookups(b, 10).expect("a table"), 50.0);
    assert_eq!(workload.tables().feature_names(), ["a", "x", "y"]);
}

#[test]
fn impossible_workloads_are_refused_by_name() {
    assert_eq!(refused(|w| w.name.clear()), r#"workload "": needs a name"#);
    assert_eq!(refused(|w| w.tables.clear()), r#"workload "small": has no tables"#);
    for batch in [Batch::Global(0), Batch::PerRank(0)] {
        assert!(refused(|w| w.batch = batch).contains("a batch of 0 samples"));
    }
    assert!(refused(|w| w.rows = ValueType::Int8Rowwise).contains("stored as f32, f16 or bf16"));
    assert!(refused(|w| w.synced = Some(ValueType::Fp8E4m3)).contains("synced of fp8_e4m3"));
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        for dense in [DenseTime::SecondsPerSample(value), DenseTime::FlopsPerSample(value)] {
            assert!(refused(|w| w.dense = dense).contains("must be finite and at least 0"));
        }
    }
    assert!(refused(|w| w.tables[1].rows = 0).starts_with(r#"table "b": 0 rows"#));
    assert!(
        refused(|w| w.tables[1].pooling_factor = -1.0).contains(r#"table "b": pooling factor"#)
    );
    assert_eq!(refused(|w| w.tables[1].name = "a".into()), r#"two tables are named "a""#);
    let steep = refused(|w| w.tables[0].access = Some(Access::Zipf { exponent: -1.0 }));
    assert_eq!(steep, r#"table "a": access: a Zipf exponent of -1: must be in 0..=15"#);
    let buckets = vec![Bucket { rows: 11, lookups: 9 }];
    let histogram = Access::Histogram(Histogram::new(buckets).expect("valid"));
    let large = refused(|w| w.tables[1].access = Some(histogram));
    assert_eq!(large, r#"table "b": access: a histogram of 11 rows for a table of 10"#);
}

#[test]
fn files_are_checked_as_they_are_read() {
    let workload = Workload::new(small()).expect("valid");
    let text = serde_json::to_string(&workload).expect("writes");
    assert_eq!(serde_json::from_str::<Workload>(&text).expect("reads"), workload);
    let short = r#"{"name":"w","batch":{"global":8},"tables":[{"name":"t","rows":2,"dim":3}]}"#;
    let read = |text: &str| serde_json::from_str::<Workload>(text);
    assert_eq!(read(short).expect("the rest has a default").batch(), Batch::Global(8));
    let error = |text: String| read(&text).expect_err("bad").to_string();
    let typo = error(short.replace("rows", "row"));
    assert!(typo.contains("unknown field `row`"), "{typo}");
    let none = error(short.replace(r#""rows":2"#, r#""rows":0"#));
    assert!(none.contains(r#"table "t": 0 rows"#), "{none}");
    let row = r#"{"workload":"w","table":true,"rows":1,"dim":1,"pooling":1}"#;
    let error = serde_json::from_str::<WorkloadRow>(row).expect_err("no name").to_string();
    assert!(error.contains("a name: text, or a whole number"), "{error}");
}
