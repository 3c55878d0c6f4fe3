//! Single rows: what is read, what is refused and how it is named.

use super::*;

fn check_refused(text: &str, expected: &[&str]) {
    let message = message(good_rows(2) + text + "\n", CriteoOptions::default());
    for part in ["day.txt, line 3"].iter().chain(expected) {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn u36_values_are_read_as_the_format_says() {
    let line = format!(
        "1\t\t-1\t0\t1\t2147483647{}\t05DB9164\t05db9164\tf\t{}",
        "\t".repeat(8),
        "\t".repeat(22)
    );
    let all = read_text(line, CriteoOptions::default()).expect("a good row");
    assert_eq!(all.labels, [1.0]);
    let big = (2_147_483_648.0_f64).ln() as f32;
    assert_eq!(all.dense[..6], [0.0, 0.0, 0.0, 2.0_f32.ln(), big, 0.0]);
    let missing = 1_i64 << 33;
    assert_eq!(all.ids[0][..5], [0x05db_9164, 0x05db_9164, 15, missing, missing]);
}

#[test]
fn u21_every_32_bit_integer_becomes_a_finite_number() {
    let line =
        "0\t-3\t-2147483648\t\t0\t1\t1022\t2147483647\t\t\t\t\t\t".to_owned() + &"\t".repeat(26);
    let all = read_text(line, CriteoOptions::default()).expect("a good row");
    let expected = [0.0, 0.0, 0.0, 0.0, 0.693_147, 6.930_495, 21.487_562];
    for (value, expected) in all.dense.iter().zip(expected) {
        assert!(value.is_finite() && (value - expected).abs() < 1e-5, "{value}, not {expected}");
    }
}

#[test]
fn u36_crlf_equals_lf_and_the_last_line_needs_no_end() {
    let text = good_rows(7);
    let expected = read_text(&text, CriteoOptions::default()).expect("good rows");
    assert_eq!(expected.labels.len(), 7);
    for other in [
        text.replace('\n', "\r\n"),
        text.trim_end().to_owned(),
        text.trim_end().replace('\n', "\r\n"),
    ] {
        assert_eq!(read_text(other, CriteoOptions::default()).expect("good rows"), expected);
    }
}

#[test]
fn u36_bad_integers_and_ids_are_named() {
    check_refused(&row_with(3, "1.5"), &["column I3", "not an integer", "\"1.5\""]);
    check_refused(&row_with(13, "99999999999"), &["column I13", "32-bit", "\"99999999999\""]);
    check_refused(&row_with(1, "-2147483649"), &["column I1", "32-bit"]);
    check_refused(&row_with(1, &"9".repeat(400)), &["column I1", "32-bit", "999..."]);
    check_refused(&row_with(1, "-"), &["column I1", "not an integer"]);
    check_refused(&row_with(1, "+1"), &["column I1", "not an integer"]);
    check_refused(&row_with(2, " 1"), &["column I2", "not an integer"]);
    check_refused(&row_with(14, "zz"), &["column C1", "not a hexadecimal id", "\"zz\""]);
    check_refused(&row_with(39, "123456789"), &["column C26", "at most 8", "\"123456789\""]);
    check_refused(&row_with(20, "12345678g"), &["column C7", "not a hexadecimal id"]);
    check_refused(&row_with(20, "0x12"), &["column C7", "not a hexadecimal id"]);
}

#[test]
fn u36_a_comma_separated_row_says_so() {
    let commas = row("1", 5).replace('\t', ",");
    check_refused(&commas, &["1 field found, 40 expected", "39 commas seen", "tabs"]);
    check_refused("", &["1 field found, 40 expected"]);
    check_refused(&row("1", 5).replacen('\t', "", 1), &["39 fields found, 40 expected"]);
    check_refused(&(row("1", 5) + "\t"), &["41 fields found, 40 expected"]);
}

#[test]
fn u36_skipped_rows_are_counted_by_reason() {
    let folder = Folder::new();
    let bad =
        [row_with(3, "1.5"), row_with(4, "x"), row_with(20, "zz"), "1,2,3".into(), row_with(0, "")];
    let text: String =
        bad.iter().flat_map(|bad| [row("1", 1), bad.clone()]).map(|row| row + "\n").collect();
    let mut source = open(&[folder.write("day.txt", text)], skipping()).expect("a good file");
    for _ in 0..2 {
        assert_eq!(read_all(&mut source, 2).expect("bad rows are skipped").labels.len(), 5);
        assert_eq!(source.skipped().total(), 5);
        let counts: Vec<_> = source.skipped().counts().collect();
        assert_eq!(counts, [("fields", 1), ("label", 1), ("integer", 2), ("id", 1)]);
        let json = serde_json::to_string(&source.skipped()).expect("counts serialise");
        assert_eq!(json, r#"{"fields":1,"label":1,"integer":2,"id":1}"#);
        source.restart().expect("restart");
    }
}

#[test]
fn u36_a_file_of_bad_rows_only_is_refused_even_when_skipping() {
    let commas = good_rows(9).replace('\t', ",");
    let message = message(commas, skipping());
    for part in ["0 rows", "9 bad rows were skipped", "line 1", "1 field found", "commas seen"] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn u38_labels_other_than_0_and_1_are_refused_by_line() {
    for label in ["2", "-1", "NaN", "", "0.3", "1.0", "inf"] {
        check_refused(
            &row_with(0, label),
            &["column label", "must be 0 or 1", &format!("{label:?}")],
        );
    }
}

#[test]
fn u38_soft_labels_from_0_to_1_are_read_when_enabled() {
    let soft = CriteoOptions { soft_labels: true, ..CriteoOptions::default() };
    let text = format!("{}\n{}\n{}\n", row("0.3", 1), row("1", 1), row("1e-1", 1));
    assert_eq!(read_text(text, soft).expect("soft labels").labels, [0.3, 1.0, 0.1]);
    for label in ["2", "-1", "NaN", "", "1.01", "-0.1", "inf", "x"] {
        let message = message(row(label, 1), soft);
        assert!(message.contains("line 1, column label: a soft label must be"), "{message}");
    }
}

#[test]
fn rows_without_labels_are_read_for_prediction_and_cannot_be_mixed() {
    let optional = CriteoOptions { labels: Labels::Optional, ..CriteoOptions::default() };
    let with = good_rows(5).replacen('1', "no label", 1);
    let bare: String =
        with.lines().map(|line| line.split_once('\t').expect("tabs").1.to_owned() + "\n").collect();
    let all = read_text(&bare, optional).expect("rows without labels");
    assert!(all.labels.is_empty());
    assert_eq!(all, read_text(&with, optional).expect("the label is ignored"));
    assert_eq!(all.ids.len(), 5);

    let mixed = bare.clone() + &row("1", 3);
    let text = message(&mixed, optional);
    assert!(text.contains("line 6: 40 fields, but the rows before have 39"), "{text}");
    let skipping = CriteoOptions { labels: Labels::Optional, ..skipping() };
    assert!(matches!(read_text(mixed, skipping), Err(Error::MixedFields { .. })));
    let text = message(bare, CriteoOptions::default());
    assert!(text.contains("line 1: 39 fields found, 40 expected"), "{text}");

    // The layout of the first file holds for the second.
    let folder = Folder::new();
    let paths = [
        folder.write("a", good_rows(1)),
        folder.write("b", with.split_once('\t').expect("tabs").1),
    ];
    let mut source = open(&paths, optional).expect("good files");
    let error = read_all(&mut source, 9).expect_err("files of two kinds").to_string();
    assert!(error.contains("b, line 1: 39 fields, but the rows before have 40"), "{error}");
}

#[test]
fn after_an_error_a_source_fails_until_it_is_restarted() {
    let folder = Folder::new();
    let path = folder.write("day.txt", good_rows(4) + "bad\n");
    let mut source = open(&[path], CriteoOptions::default()).expect("a file");
    let mut batch = Batch::default();
    assert_eq!(source.next(3, &mut batch).expect("three good rows"), 3);
    assert!(matches!(source.next(3, &mut batch), Err(Error::BadRow(_))));
    assert_eq!((batch.rows, batch.labels.len(), batch.sparse.batch()), (0, 0, 0));
    assert!(matches!(source.next(3, &mut batch), Err(Error::Failed)));
    source.restart().expect("restart");
    assert_eq!(source.next(4, &mut batch).expect("four good rows"), 4);
}
