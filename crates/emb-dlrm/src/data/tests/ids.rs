//! How ids become rows of tables.

use super::*;

fn column(feature: &str, column: usize, table: &str, rows: u64) -> SparseColumn {
    SparseColumn { feature: feature.into(), column, table: table.into(), rows }
}

#[test]
fn u37_ids_beyond_the_rows_are_taken_modulo_or_refused_by_name() {
    let folder = Folder::new();
    // 9,999,999 in hexadecimal.
    let path = folder.write("day.txt", row("0", 1) + "\n" + &row_with(16, "98967f"));
    let read = |ids| {
        let columns = vec![column("item", 2, "items", 1_000_000)];
        let options = CriteoOptions { ids, ..CriteoOptions::default() };
        read_all(&mut Criteo::open(&[&path], columns, options).expect("a good file"), 8)
    };
    assert_eq!(read(IdPolicy::Modulo).expect("modulo").ids, [[102], [999_999]]);
    let error = read(IdPolicy::Error).expect_err("an id out of range").to_string();
    for part in ["day.txt, line 2, column C3", "\"items\"", "9999999", "0..1000000", "modulo"] {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
    let json = serde_json::to_string(&CriteoOptions::default()).expect("options serialise");
    assert!(json.contains(r#""ids":"modulo""#), "{json}");
}

#[test]
fn u37_a_whole_file_can_be_checked_before_a_run() {
    let folder = Folder::new();
    let bad = folder.write("day.txt", good_rows(20_000) + &row_with(16, "98967f"));
    let options = CriteoOptions { ids: IdPolicy::Error, ..CriteoOptions::default() };
    let mut source =
        Criteo::open(&[&bad], vec![column("item", 2, "items", 9_999_999)], options).expect("open");
    let error = check(&mut source).expect_err("the last id").to_string();
    assert!(error.contains("line 20001"), "{error}");
    let mut source =
        Criteo::open(&[&bad], vec![column("item", 2, "items", 10_000_000)], options).expect("open");
    assert_eq!(check(&mut source).expect("all ids are valid"), 20_001);
    assert_eq!(read_all(&mut source, 4096).expect("from the first row again").ids.len(), 20_001);
}

#[test]
fn u37_a_million_hashes_lie_within_the_table_and_use_every_row() {
    for rows in [1, 7, 1000, 99_991] {
        let column = column("item", 0, "items", rows);
        let mut used = vec![false; column.table_rows() as usize];
        used[column.row(None, IdPolicy::Modulo).expect("missing has a row") as usize] = true;
        for id in 0..1_000_000_u32 {
            let hash = id.wrapping_mul(0x9e37_79b1);
            let row = column.row(Some(hash), IdPolicy::Modulo).expect("modulo always has a row");
            assert_eq!(row as u64, u64::from(hash) % rows);
            used[row as usize] = true;
        }
        assert!(used.iter().all(|&used| used), "{rows} rows: one is never used");
    }
    let huge = column("item", 0, "items", 5_000_000_000);
    assert_eq!(huge.row(Some(u32::MAX), IdPolicy::Error), Some(4_294_967_295));
    assert_eq!(huge.row(None, IdPolicy::Error), Some(5_000_000_000));
}

#[test]
fn features_may_share_columns_and_tables_in_any_order() {
    let columns =
        vec![column("b", 25, "t", 100), column("a", 0, "t", 100), column("c", 25, "u", 7)];
    let folder = Folder::new();
    let path = folder.write("day.txt", row("1", 3));
    let mut source = Criteo::open(&[path], columns, CriteoOptions::default()).expect("open");
    assert_eq!(read_all(&mut source, 8).expect("one row").ids, [[25, 0, 325 % 7]]);
}

#[test]
fn columns_that_contradict_each_other_are_refused_by_name() {
    let check = |columns: &[SparseColumn], expected: &str| {
        let error = check_columns(columns).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    };
    check(&[column("a", 26, "t", 1)], "feature \"a\": column 26 does not exist");
    check(&[column("a", 0, "t", 0)], "table \"t\" cannot have 0 rows");
    check(&[column("a", 0, "t", 1), column("a", 1, "u", 1)], "two features of this name");
    check(
        &[column("a", 0, "t", 1), column("b", 1, "t", 2)],
        "feature \"b\": table \"t\" has 2 rows here and 1 for feature \"a\"",
    );
}

#[test]
fn a_share_of_a_batch_holds_the_same_rows() {
    let folder = Folder::new();
    let path = folder.write("day.txt", good_rows(11));
    let mut source = open(&[path], CriteoOptions::default()).expect("open");
    let mut batch = Batch::default();
    source.next(11, &mut batch).expect("all rows");
    let mut share = Batch::default();
    for range in [0..4, 4..11, 5..5, 0..11] {
        batch.copy_rows(range.clone(), &mut share).expect("a share");
        assert_eq!(share.rows, range.len());
        assert_eq!(share.labels, batch.labels[range.clone()]);
        assert_eq!(share.dense, batch.dense[range.start * DENSE..range.end * DENSE]);
        for (to, from) in range.enumerate() {
            assert!((0..SPARSE).all(|f| share.sparse.bag(f, to) == batch.sparse.bag(f, from)));
        }
    }
}

#[test]
fn batches_keep_their_memory_after_the_first() {
    let folder = Folder::new();
    let path = folder.write("day.txt", good_rows(1000));
    let features = vec![synthetic::Feature::new("item", 1000)];
    let options = synthetic::Options { rows: Some(1000), ..synthetic::Options::default() };
    let sources: [Box<dyn Source>; 2] = [
        Box::new(open(&[path], CriteoOptions::default()).expect("open")),
        Box::new(synthetic::Synthetic::new(features, options).expect("options")),
    ];
    for mut source in sources {
        let mut batch = Batch::default();
        source.next(100, &mut batch).expect("the first batch");
        let places = |batch: &Batch| {
            let jagged = batch.sparse.as_ref();
            (
                batch.dense.as_ptr(),
                batch.labels.as_ptr(),
                jagged.values.as_ptr(),
                jagged.offsets.as_ptr(),
            )
        };
        let first = places(&batch);
        for _ in 0..2 {
            while source.next(100, &mut batch).expect("a batch") > 0 {
                assert_eq!(places(&batch), first);
            }
            source.restart().expect("restart");
        }
    }
}
