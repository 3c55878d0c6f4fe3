//! What users of comparable systems ran into, as tests: shapes, ids and lookups.

mod support;

use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{
    Backend, Error, Feature, FeatureMap, Jagged, Mat, Pooling, TableSpec, Window,
    offsets_from_lengths,
};
use emb_optim::RuleKind;
use support::{Group, batch, table};

fn three_tables() -> Group {
    let dims = [4, 8, 4];
    let specs: Vec<TableSpec> = dims
        .iter()
        .enumerate()
        .map(|(t, &dim)| {
            TableSpec::new(format!("t{t}"), 10, dim, table("", 1, 1, RuleKind::Adam).optimizer)
        })
        .collect();
    Group::new(&specs, Pooling::Sum)
}

#[test]
fn u01_a_batch_of_no_samples_gives_an_empty_output_and_changes_nothing() {
    let mut group = three_tables();
    let empty = Jagged::empty(&["t0", "t1", "t2"]);
    let before: Vec<_> = (0..3).map(|t| group.rows(t)).collect();
    assert_eq!(group.pool(&empty).expect("nothing to look up"), []);
    assert_eq!(group.map.width(), 16);
    group.update(&empty, &[]).expect("nothing to update");
    assert_eq!(before, (0..3).map(|t| group.rows(t)).collect::<Vec<_>>());
    for f in 0..3 {
        assert_eq!(empty.as_ref().feature_range(f), 0..0);
    }
}

#[test]
fn u01_a_batch_of_empty_bags_gives_zeros_and_changes_nothing() {
    let mut group = three_tables();
    let empty = batch(&["t0", "t1", "t2"], 5, &[0; 15], &[]);
    let before: Vec<_> = (0..3).map(|t| group.rows(t)).collect();
    assert_eq!(group.pool(&empty).expect("nothing to look up"), [0.0; 5 * 16]);
    group.update(&empty, &[1.0; 5 * 16]).expect("nothing to update");
    assert_eq!(before, (0..3).map(|t| group.rows(t)).collect::<Vec<_>>());
}

/// Tables, features and batch of one id mean of 1..=5.
fn means(offsets: &[i64], values: &[i64]) -> (Vec<f32>, Vec<f32>) {
    let mut group = Group::new(&[table("t", 5, 1, RuleKind::Sgd)], Pooling::Mean);
    group.fill(0, |i, _| i as f32 + 1.0);
    let samples = offsets.len() - 1;
    let bags =
        Jagged::from_offsets(&["t"], samples, offsets, values.to_vec(), None).expect("batch");
    let out = group.pool(&bags).expect("ids in range");
    let before = group.rows(0).0;
    group.update(&bags, &vec![1.0; samples]).expect("ids in range");
    let gradients = before.iter().zip(group.rows(0).0).map(|(b, a)| b - a).collect();
    (out, gradients)
}

#[test]
fn u03_an_empty_bag_has_the_mean_zero() {
    let (out, gradients) = means(&[0, 1, 1, 3, 3, 4, 5], &[0, 1, 2, 3, 4]);
    assert_eq!(out, [1.0, 0.0, 2.5, 0.0, 4.0, 5.0]);
    assert_eq!(gradients, [1.0, 0.5, 0.5, 1.0, 1.0]);
    assert_eq!(means(&[0, 1, 5, 5], &[0, 1, 2, 3, 4]).0, [1.0, 3.5, 0.0]);
    assert_eq!(means(&[0, 0], &[]), (vec![0.0], vec![0.0; 5]));
}

#[test]
fn u04_lengths_that_contradict_are_refused_by_name() {
    let names = ["a", "b"];
    let error = Jagged::from_lengths(&names, 5, &[1; 9], vec![0; 9], None).expect_err("9 lengths");
    assert_eq!(error.to_string(), "2 features, batch 5: expected 10 lengths, got 9");
    let error = Jagged::from_lengths(&names, 2, &[2; 4], vec![0; 7], None).expect_err("7 values");
    assert_eq!(error.to_string(), "lengths sum to 8 but there are 7 values");
    let counts = [5, 3];
    let error = Jagged::from_lengths_and_counts(&names, 1, &[3, 5], &counts, vec![0; 8], None);
    let error = error.expect_err("counts that contradict");
    assert_eq!(error.to_string(), "feature \"a\": 5 values given, its lengths sum to 3");
    let error = Jagged::from_lengths(&names, 2, &[1, 1, 1, -4], vec![0; 3], None);
    let error = error.expect_err("a negative length");
    assert_eq!(error.to_string(), "feature \"b\", sample 1: negative length -4");
}

#[test]
fn u05_offsets_of_a_wrong_count_or_order_are_refused() {
    let make = |offsets: &[i64], values| {
        Jagged::from_offsets(&["a", "b"], 4, offsets, vec![0; values], None)
            .expect_err("bad offsets")
            .to_string()
    };
    assert!(make(&[0; 8], 0).contains("expected features*batch+1 = 9 offsets, got 8"));
    assert!(make(&[0, 3, 2, 3, 4, 5, 5, 5, 5], 5).contains("index 2: 3 then 2"));
    assert!(make(&[1, 3, 3, 3, 4, 5, 5, 5, 5], 5).contains("begin at 1"));
    assert_eq!(
        make(&[0, 1, 2, 3, 4, 5, 6, 6, 6], 7),
        "the last offset is 6 but there are 7 values"
    );
}

#[test]
fn u05_a_view_with_too_few_offsets_is_refused_before_anything_is_written() {
    let mut group = Group::new(
        &[table("a", 4, 2, RuleKind::Sgd), table("b", 4, 2, RuleKind::Sgd)],
        Pooling::Sum,
    );
    let bags = batch(&["a", "b"], 4, &[1; 8], &[0, 1, 2, 3, 0, 1, 2, 3]);
    let mut view = bags.as_ref().view::<Cpu>();
    view.offsets = &view.offsets[..8];
    let mut out = [5.0; 16];
    let to = Mat::new(&mut out[..], 4, 4);
    let error = group.cpu.pool(&mut group.tables, &group.map, view, to).expect_err("8 offsets");
    assert_eq!(error.to_string(), "pool: offsets: expected 9, got 8");
    assert_eq!(out, [5.0; 16]);
}

#[test]
fn u06_index_out_of_range_names_everything() {
    let mut group = Group::new(
        &[table("user", 10, 4, RuleKind::Adam), table("item", 4, 4, RuleKind::Adam)],
        Pooling::Sum,
    );
    group.fill(0, |i, j| (i * 10 + j as u64) as f32);
    let before = [group.rows(0), group.rows(1)];
    let cases = [
        (
            0,
            10,
            "table \"user\", feature \"user\", sample 2, position 1 in the bag: id 10 is outside 0..=9",
        ),
        (
            0,
            -1,
            "table \"user\", feature \"user\", sample 2, position 1 in the bag: id -1 is outside 0..=9",
        ),
        (
            1,
            1_i64 << 40,
            "table \"item\", feature \"item\", sample 2, position 1 in the bag: id 1099511627776 is outside 0..=3",
        ),
    ];
    for (feature, id, message) in cases {
        let mut values = vec![0; 12];
        values[feature * 6 + 5] = id;
        let bags = batch(&["user", "item"], 3, &[2; 6], &values);
        assert_eq!(group.pool(&bags).expect_err("a bad id").to_string(), message);
        assert_eq!(group.update(&bags, &[1.0; 24]).expect_err("a bad id").to_string(), message);
        assert_eq!(before, [group.rows(0), group.rows(1)], "nothing was changed");
    }
}

#[test]
fn u06_of_several_bad_ids_the_first_is_named_whatever_the_threads() {
    let specs = [table("t", 100, 2, RuleKind::Sgd)];
    let names = ["f"];
    let mut values = vec![1; 200_000];
    values[70_000] = 100;
    values[199_999] = -5;
    let bags = batch(&names, 100_000, &[2; 100_000], &values);
    for threads in [1, 2, 5] {
        let mut group = Group::new(&specs, Pooling::Sum);
        group.cpu = Cpu::new(CpuOptions { threads }).expect("threads");
        let error = group.pool(&bags).expect_err("bad ids");
        assert!(matches!(error, Error::IdOutOfRange { sample: 35_000, position: 0, id: 100, .. }));
    }
}

#[test]
fn u07_a_table_of_one_row_takes_only_id_zero() {
    let mut group = Group::new(&[table("t", 1, 3, RuleKind::Sgd)], Pooling::Sum);
    group.fill(0, |_, j| j as f32 + 1.0);
    let bad = batch(&["t"], 1, &[3], &[0, 1, 2]);
    let forward = group.pool(&bad).expect_err("id 1").to_string();
    let backward = group.update(&bad, &[1.0; 3]).expect_err("id 1").to_string();
    assert_eq!(forward, backward);
    assert!(forward.contains("position 1 in the bag: id 1 is outside 0..=0"));
    let good = batch(&["t"], 1, &[3], &[0, 0, 0]);
    assert_eq!(group.pool(&good).expect("id 0"), [3.0, 6.0, 9.0]);
}

#[test]
fn u07_a_table_without_rows_is_refused_by_name() {
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    let error = cpu.create_tables(&[table("empty", 0, 4, RuleKind::Sgd)], 1).expect_err("0 rows");
    assert_eq!(error.to_string(), "table \"empty\": 0 rows, at least 1 needed");
}

#[test]
fn u08_any_dim_pools_and_updates_exactly() {
    for dim in [1, 2, 3, 5, 7, 10, 33, 1023, 1024, 1025, 1280, 2048] {
        let mut group = Group::new(&[table("t", 7, dim, RuleKind::Sgd)], Pooling::Sum);
        let value = |i: u64, j: usize| (i * 1000 + j as u64) as f32;
        group.fill(0, value);
        let bags = batch(&["t"], 3, &[1, 2, 0], &[6, 1, 2]);
        let out = group.pool(&bags).expect("ids in range");
        for j in 0..dim {
            assert_eq!(out[j], value(6, j), "dim {dim}");
            assert_eq!(out[dim + j], value(1, j) + value(2, j), "dim {dim}");
            assert_eq!(out[2 * dim + j], 0.0, "dim {dim}");
        }
        group.update(&bags, &vec![1.0; 3 * dim]).expect("ids in range");
        let weights = group.rows(0).0;
        for i in 0..7 {
            let step = if [1, 2, 6].contains(&i) { 1.0 } else { 0.0 };
            for j in 0..dim {
                assert_eq!(weights[i as usize * dim + j], value(i, j) - step, "dim {dim}");
            }
        }
    }
}

#[test]
fn u08_a_dim_beyond_the_limit_is_refused_with_the_limit() {
    let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
    for dim in [0, 16_385] {
        let spec = TableSpec { window: Window::whole(dim), ..table("t", 2, dim, RuleKind::Sgd) };
        let error = cpu.create_tables(&[spec], 1).expect_err("a bad dim");
        assert_eq!(error.to_string(), format!("table \"t\": dim {dim} is outside 1..=16384"));
    }
}

#[test]
fn u11_one_id_in_two_tables_and_two_features_of_one_table() {
    let mut group = Group::new(
        &[table("t1", 5, 1, RuleKind::Sgd), table("t2", 5, 1, RuleKind::Sgd)],
        Pooling::Sum,
    );
    group.fill(0, |i, _| i as f32);
    group.fill(1, |i, _| 100.0 + i as f32);
    let both = batch(&["t1", "t2"], 1, &[1, 1], &[3, 3]);
    assert_eq!(group.pool(&both).expect("ids in range"), [3.0, 103.0]);

    let specs = [table("t", 7, 1, RuleKind::Sgd)];
    let feature = |name: &str| Feature { name: name.into(), table: 0, pooling: Pooling::Sum };
    let mut group = Group::with_features(&specs, vec![feature("p"), feature("q")]);
    group.fill(0, |i, _| i as f32 * 10.0);
    let bags = batch(&["p", "q"], 1, &[2, 6], &[1, 2, 2, 2, 3, 4, 5, 6]);
    assert_eq!(group.pool(&bags).expect("ids in range"), [30.0, 220.0]);
    group.update(&bags, &[0.5, 0.5]).expect("ids in range");
    assert_eq!(group.rows(0).0, [0.0, 9.5, 18.5, 29.5, 39.5, 49.5, 59.5], "row 2 moves by 3 g");
}

#[test]
fn u25_offsets_beyond_two_to_the_31_need_no_values() {
    let mut offsets = Vec::new();
    offsets_from_lengths(&["f".to_owned()], 2, &[2_147_483_647, 2], &mut offsets).expect("lengths");
    assert_eq!(offsets, [0, 2_147_483_647, 2_147_483_649]);
}

#[test]
fn two_features_of_one_name_and_unknown_tables_are_refused() {
    let specs = [table("t", 1, 1, RuleKind::Sgd)];
    let feature = |table| Feature { name: "f".into(), table, pooling: Pooling::Sum };
    let twice = FeatureMap::new(vec![feature(0), feature(0)], &specs, 0).expect_err("one name");
    assert_eq!(twice.to_string(), "two features are named \"f\"");
    let unknown = FeatureMap::new(vec![feature(1)], &specs, 0).expect_err("no table 1");
    assert_eq!(unknown.to_string(), "feature \"f\" looks up table 1, but there are 1 tables");
}
