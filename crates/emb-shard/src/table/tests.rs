//! Refusals and names.

use super::*;

fn refusal(rows: u64, dim: usize, options: TableOptions) -> String {
    Table::new("ads", rows, dim, options).expect_err("must be refused").to_string()
}

#[test]
fn impossible_tables_are_refused_by_name() {
    let plain = TableOptions::default;
    assert_eq!(
        refusal(0, 8, plain()),
        r#"table "ads": 0 rows of 8 columns: both must be at least 1"#
    );
    let eight = TableOptions { element_bytes: 8, ..plain() };
    assert!(refusal(1, 8, eight).contains("elements of 8 bytes"));
    for factor in [f64::NAN, f64::INFINITY, -0.5] {
        let options = TableOptions { pooling_factor: factor, ..plain() };
        assert!(refusal(1, 1, options).contains("pooling factor"));
    }
    let nothing = TableOptions { features: Some(vec![]), ..plain() };
    assert!(refusal(1, 1, nothing).contains("at least one feature"));
    let twice = TableOptions { features: Some(vec!["x".into(), "x".into()]), ..plain() };
    assert_eq!(refusal(1, 1, twice), r#"two features are named "x""#);
    assert!(refusal(1 << 61, 1, plain()).contains("exceed 2^63 bytes"));
    assert!(refusal(u64::MAX, usize::MAX, plain()).contains("exceed 2^63 bytes"));
}

#[test]
fn names_are_unique_over_all_tables_and_features_find_theirs() {
    let named = |name: &str, features: &[&str]| {
        let features = Some(features.iter().map(ToString::to_string).collect());
        let options = TableOptions { features, ..TableOptions::default() };
        Table::new(name, 10, 4, options).expect("valid table")
    };
    let tables = Tables::new(vec![named("a", &["x", "y"]), named("b", &["z"])]).expect("valid");
    assert_eq!(tables.feature_names(), ["x", "y", "z"]);
    assert_eq!(tables.table_of()[FeatureId::new(1)], TableId::new(0));
    assert_eq!(tables.table_of()[FeatureId::new(2)], TableId::new(1));
    assert_eq!(tables.weight_bytes(), Some(Bytes::new(320)));

    let error = Tables::new(vec![named("a", &["x"]), named("a", &["y"])]);
    assert_eq!(error.expect_err("twice").to_string(), r#"two tables are named "a""#);
    let error = Tables::new(vec![named("a", &["x"]), named("b", &["x"])]);
    assert_eq!(error.expect_err("twice").to_string(), r#"two features are named "x""#);
}
