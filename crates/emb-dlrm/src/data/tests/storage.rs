//! Files as they are stored: compressed, cut off, damaged, empty, missing, many.

use proptest::prelude::*;

use super::*;

fn default_message(path: &Path) -> String {
    read_file(path, CriteoOptions::default()).expect_err("a bad file").to_string()
}

#[test]
fn u35_a_truncated_gzip_is_an_error_with_offset_and_rows() {
    let folder = Folder::new();
    let stored = gzip(good_rows(20_000));
    let cut = &stored[..stored.len() * 6 / 10];
    let path = folder.write("day_0.gz", cut);
    match read_file(&path, CriteoOptions::default()) {
        Err(Error::Truncated { path: named, compression, offset, rows }) => {
            assert_eq!((named, compression), (path.clone(), "gzip"));
            assert_eq!(offset, cut.len() as u64);
            assert!((10_000..14_000).contains(&rows), "{rows}");
        }
        other => panic!("{other:?}"),
    }
    let message = default_message(&path);
    assert!(message.contains("day_0.gz") && message.contains("compressed byte"), "{message}");
}

#[test]
fn u35_a_gzip_cut_anywhere_is_never_the_end_of_the_data() {
    let folder = Folder::new();
    let member = gzip(good_rows(2));
    let two = [member.clone(), member.clone()].concat();
    for cut in 1..two.len() {
        let read = read_file(&folder.write("day.gz", &two[..cut]), CriteoOptions::default());
        if cut == member.len() {
            assert_eq!(read.expect("one whole member").labels.len(), 2);
            continue;
        }
        let named = matches!(
            read,
            Err(Error::Truncated { .. } | Error::Magic { .. } | Error::Corrupt { .. })
        );
        assert!(named, "cut at {cut}: {read:?}");
    }
}

#[test]
fn u35_a_truncated_zstd_is_an_error() {
    let folder = Folder::new();
    let stored = zstd(good_rows(20_000));
    for cut in [5, stored.len() / 2, stored.len() - 1] {
        let read = read_file(&folder.write("day.zst", &stored[..cut]), CriteoOptions::default());
        assert!(matches!(read, Err(Error::Truncated { compression: "zstd", .. })), "{read:?}");
    }
}

#[test]
fn u35_a_flipped_check_sum_or_content_is_an_error() {
    let folder = Folder::new();
    let good = gzip(good_rows(500));
    for at in [good.len() - 8, good.len() - 4, good.len() / 2] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let read = read_file(&folder.write("day.gz", bad), CriteoOptions::default());
        // Damage inside the stream may show as an impossible code, a bad row or a bad sum.
        match read {
            Err(Error::Corrupt { compression: "gzip", .. }) => {}
            Err(Error::BadRow(_) | Error::Truncated { .. }) if at == good.len() / 2 => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
    let mut tail = good;
    tail.extend(b"more");
    let message = default_message(&folder.write("day.gz", tail));
    assert!(message.contains("day.gz") && message.contains("after 500 rows"), "{message}");
}

#[test]
fn u35_all_members_and_frames_are_read() {
    let folder = Folder::new();
    let text = good_rows(1000);
    // Cut in the middle of a line: members are parts of one text.
    let (a, b) = text.as_bytes().split_at(50_001);
    let expected = read_text(&text, CriteoOptions::default()).expect("plain");
    for (name, stored) in [
        ("day.gz", [gzip(a), gzip(b""), gzip(b)].concat()),
        ("day.zst", [zstd(a), zstd(b""), zstd(b)].concat()),
    ] {
        let read = read_file(&folder.write(name, stored), CriteoOptions::default());
        assert_eq!(read.expect(name), expected, "{name}");
    }
}

#[test]
fn u35_empty_and_missing_files_are_refused_before_the_first_batch() {
    let folder = Folder::new();
    let good = folder.write("a.txt", good_rows(2));
    for path in [
        folder.write("empty.txt", ""),
        folder.write("empty0.gz", ""),
        folder.write("empty.gz", gzip("")),
        folder.write("empty.zst", zstd("")),
    ] {
        let error = open(&[&good, &path], CriteoOptions::default()).expect_err("an empty file");
        assert!(matches!(error, Error::Empty { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{}: 0 rows", path.display()));
    }
    let missing = folder.0.join("missing.txt");
    let error = open(&[&good, &missing], CriteoOptions::default()).expect_err("a missing file");
    assert!(error.to_string().starts_with(&missing.display().to_string()), "{error}");
    let none: [PathBuf; 0] = [];
    assert!(matches!(open(&none, CriteoOptions::default()), Err(Error::NoFiles)));
}

#[test]
fn the_content_decides_on_the_compression_and_a_false_suffix_is_refused() {
    let folder = Folder::new();
    let text = good_rows(5);
    let expected = read_text(&text, CriteoOptions::default()).expect("plain");
    for (name, stored) in [("day_0", gzip(&text)), ("day_1", zstd(&text)), ("d.gz", zstd(&text))] {
        let read = read_file(&folder.write(name, stored), CriteoOptions::default());
        assert_eq!(read.expect(name), expected, "{name}");
    }
    for (name, kind) in [("a.gz", "gzip"), ("a.zst", "zstd"), ("A.GZ", "gzip")] {
        let message = default_message(&folder.write(name, &text));
        assert!(message.contains(&format!("named as a {kind} file")), "{message}");
        assert!(message.contains("[31, 09"), "{message} shows the bytes found");
    }
}

#[test]
fn patterns_give_files_in_order_and_directories_are_refused() {
    let folder = Folder::new();
    for day in [10, 2, 1] {
        folder.write(&format!("day_{day}.txt"), row("0", day) + "\n");
    }
    let text = |name: &str| folder.0.join(name);
    let options = CriteoOptions::default();
    let mut source = open(&[text("day_*.txt")], options).expect("three files");
    let first_ids = |all: All| all.ids.iter().map(|ids| ids[0]).collect::<Vec<_>>();
    assert_eq!(first_ids(read_all(&mut source, 2).expect("rows")), [100, 200, 1000]);
    assert_eq!(source.describe().files.len(), 3);
    // The order given is kept, and a batch runs across files.
    let mut source = open(&[text("day_10.txt"), text("day_?.txt")], options).expect("three files");
    let mut batch = Batch::default();
    assert_eq!(source.next(9, &mut batch).expect("rows"), 3);
    assert_eq!(batch.sparse.as_ref().values[..3], [1000, 100, 200]);

    let error = open(&[text("week_*.txt")], options).expect_err("no match").to_string();
    assert!(error.contains("no file matches") && error.contains("week_*.txt"), "{error}");
    let error = open(&[&folder.0], options).expect_err("a directory").to_string();
    assert!(error.contains("is a directory"), "{error}");
    let device = open(&["/dev/null"], options).expect_err("a device").to_string();
    assert!(device.contains("/dev/null is a pipe or a device"), "{device}");
    // A name that looks like a pattern but exists is taken as it is.
    let odd = folder.write("odd_*.txt", row("0", 5));
    assert_eq!(first_ids(read_file(&odd, options).expect("one row")), [500]);
}

#[test]
fn epochs_repeat_and_begin_anywhere() {
    let folder = Folder::new();
    let paths = [folder.write("a.gz", gzip(good_rows(100))), folder.write("b", good_rows(50))];
    let mut source = open(&paths, CriteoOptions::default()).expect("two files");
    let first = read_all(&mut source, 7).expect("an epoch");
    assert_eq!(first.labels.len(), 150);
    let mut batch = Batch::default();
    assert_eq!(source.next(7, &mut batch).expect("still the end"), 0);
    for start in [0, 3, 99, 100, 149, 150, 1000] {
        source.restart_at(start).expect("restart");
        let rest = read_all(&mut source, 7).expect("the rest");
        assert_eq!(rest.ids[..], first.ids[(start as usize).min(150)..], "from row {start}");
    }
    assert!(matches!(source.next(0, &mut batch), Err(Error::Option { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_rows_come_back_from_every_kind_of_file(
        rows in proptest::collection::vec(
            (
                any::<bool>(),
                proptest::array::uniform13(proptest::option::of(any::<i32>())),
                proptest::array::uniform26(proptest::option::of(any::<u32>())),
            ),
            1..60,
        ),
        limit in 1..70_usize,
        upper in any::<bool>(),
    ) {
        let mut text = String::new();
        let mut expected = All::default();
        for (label, integers, ids) in &rows {
            text += if *label { "1" } else { "0" };
            expected.labels.push(f32::from(*label));
            for integer in integers {
                text.push('\t');
                text += &integer.map(|x| x.to_string()).unwrap_or_default();
                expected.dense.push((1.0 + f64::from(integer.unwrap_or(0).max(0))).ln() as f32);
            }
            for id in ids {
                text.push('\t');
                let hex = id.map(|id| if upper { format!("{id:X}") } else { format!("{id:08x}") });
                text += &hex.unwrap_or_default();
            }
            text.push('\n');
            expected.ids.push(ids.iter().map(|id| id.map_or(1 << 33, i64::from)).collect());
        }
        let folder = Folder::new();
        for (name, stored) in [("p", text.clone().into_bytes()), ("g", gzip(&text)), ("z", zstd(&text))] {
            let mut source = open(&[folder.write(name, stored)], CriteoOptions::default()).expect(name);
            let read = read_all(&mut source, limit).expect(name);
            prop_assert_eq!(&read.labels, &expected.labels);
            prop_assert_eq!(&read.ids, &expected.ids);
            for (got, want) in read.dense.iter().zip(&expected.dense) {
                prop_assert!((got - want).abs() <= want * f32::EPSILON, "{} {}", got, want);
            }
        }
    }
}
