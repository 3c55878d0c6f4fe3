//! What a look into files reports.

use super::inspect::{LabelReport, inspect};
use super::*;

#[test]
fn u35_rows_bytes_and_check_sum_are_those_of_the_stored_file() {
    let folder = Folder::new();
    let text = good_rows(6);
    let path = folder.write("day.gz", gzip(&text));
    let report = &inspect(&[&path]).expect("a good file")[0];
    assert_eq!((report.rows, report.fields, report.compression), (6, 40, Some("gzip")));
    assert_eq!(report.bytes, fs::metadata(&path).expect("metadata").len());
    // Known digests of SHA-256, FIPS 180-4: "abc" is no data file, so the sum is checked on a
    // plain row through another program's answer when there is one.
    if let Ok(output) = std::process::Command::new("sha256sum").arg(&path).output() {
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&report.sha256));
    } else {
        eprintln!("skipped the comparison of check sums: no sha256sum here");
    }
    assert_eq!(report.sha256.len(), 64);
}

#[test]
fn every_column_is_counted() {
    let folder = Folder::new();
    let rows = [row("1", 0), row_with(1, ""), row_with(1, "-3"), row_with(14, ""), row("0.5", 1)];
    let text = rows.join("\n") + "\nbad\n" + &row_with(15, "zz");
    let report = &inspect(&[folder.write("day.txt", text)]).expect("a good file")[0];
    assert_eq!((report.rows, report.bad_rows.total()), (5, 2));
    let first = report.first_bad_row.as_deref().expect("a bad row");
    assert!(first.contains("line 6") && first.contains("1 field found"), "{first}");
    let labels = LabelReport { zeros: 0, ones: 4, soft: 1, mean: 0.9 };
    assert_eq!(report.labels, Some(labels));
    let integer = &report.integers[0];
    assert_eq!((integer.column.as_str(), integer.missing, integer.negative), ("I1", 1, 1));
    assert_eq!((integer.min, integer.max), (Some(-3), Some(7)));
    let id = &report.ids[0];
    assert_eq!((id.column.as_str(), id.missing, id.max), ("C1", 1, Some(700)));
    assert_eq!(id.distinct, Distinct::Exact(3));
    let json = serde_json::to_value(report).expect("a report serialises");
    assert_eq!(json["ids"][0]["distinct"]["exact"], 3);
    assert_eq!(json["bad_rows"]["fields"], 1);
}

#[test]
fn files_without_labels_are_reported_as_such() {
    let folder = Folder::new();
    let bare = row("1", 0).split_once('\t').expect("tabs").1.to_owned();
    let report = &inspect(&[folder.write("day.txt", bare)]).expect("a good file")[0];
    assert_eq!((report.fields, report.labels), (39, None));
    let commas = folder.write("day.csv", good_rows(3).replace('\t', ","));
    let error = inspect(&[commas]).expect_err("no good row").to_string();
    assert!(error.contains("0 rows") && error.contains("commas seen"), "{error}");
}
