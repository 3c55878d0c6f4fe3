//! Files that want to hurt: none may panic, hang or fill the memory.

use super::*;

/// Both policies: a named error, or the good rows around the bad ones.
fn check(bad: &[u8], reason: &str) {
    let (before, after) = (good_rows(2), good_rows(3));
    let text = [before.as_bytes(), bad, b"\n", after.as_bytes()].concat();
    let message = message(&text, CriteoOptions::default());
    assert!(message.contains("line 3") && message.contains(reason), "{message}");
    assert!(message.len() < 512, "a message of {} bytes", message.len());
    assert!(message.is_ascii(), "{message}");
    let read = read_text(&text, skipping()).expect("bad rows are skipped");
    assert_eq!(read.labels.len(), 5);
}

#[test]
fn very_long_lines_are_refused_and_passed_over() {
    check(&vec![b'1'; 1 << 20], "longer than 65536 bytes");
    check(&vec![b'\t'; 1_000_000], "longer than 65536 bytes");
    check(&vec![b'1'; (64 << 10) + 1], "longer than 65536 bytes");
    check(&vec![b'\t'; 64 << 10], "65537 fields found");
    check(&vec![b'1'; 64 << 10], "1 field found");
    check(&vec![b'1'; 3 << 20], "longer than 65536 bytes");
}

#[test]
fn a_long_last_line_without_end_is_refused() {
    for bytes in [1 << 20, (64 << 10) + 2, 100_000] {
        let text = good_rows(1) + &"1".repeat(bytes);
        assert!(message(&text, CriteoOptions::default()).contains("line 2: the line is longer"));
        assert_eq!(read_text(&text, skipping()).expect("skipped").labels.len(), 1);
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    check(b"\0", "1 field found");
    check(&[0; 5000], "1 field found");
    check(row_with(5, "\0").as_bytes(), "column I5: not an integer: \"\\x00\"");
    check(row_with(20, "\u{fffd}").as_bytes(), "column C7: not a hexadecimal id");
    let mut invalid = row("1", 1).into_bytes();
    invalid[0] = 0xff;
    check(&invalid, "column label: the label must be 0 or 1: \"\\xff\"");
    check(b"\r\r", "1 field found");
    check("\u{feff}".as_bytes(), "1 field found");
    let byte_order_mark = format!("\u{feff}{}", row("1", 1));
    check(byte_order_mark.as_bytes(), "column label");
}

#[test]
fn a_soft_label_of_strange_bytes_is_refused() {
    let soft = CriteoOptions { soft_labels: true, ..CriteoOptions::default() };
    for label in ["0x1", "1e999", "nan", "-0.0000001", "0.5 ", "\u{661}"] {
        assert!(message(row(label, 1), soft).contains("column label"), "{label}");
    }
}

#[test]
fn compressed_bombs_are_read_in_bounded_memory() {
    // Other tests run at the same time and may add to the peak, but not as much as the whole file has.
    // 512 MiB of one byte without a line end, half a MiB and less when compressed.
    const BYTES: usize = 512 << 20;
    let folder = Folder::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut frames = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    let block = vec![b'1'; 1 << 20];
    for _ in 0..BYTES / block.len() {
        encoder.write_all(&block).expect("writing to memory");
        frames.write_all(&block).expect("writing to memory");
    }
    let gz = folder.write("bomb.gz", encoder.finish().expect("a gzip"));
    let zst = folder.write("bomb.zst", frames.finish().expect("a zstd"));
    for path in [gz, zst] {
        let message = read_file(&path, CriteoOptions::default()).expect_err("a bomb").to_string();
        assert!(message.contains("line 1: the line is longer than 65536 bytes"), "{message}");
        let before = peak_kib();
        let error = read_file(&path, skipping()).expect_err("no good row").to_string();
        assert!(error.contains("0 rows (1 bad rows were skipped"), "{error}");
        // The system sums its counters of threads lazily: the peak may be read lower than before.
        let grown = peak_kib().zip(before).map(|(after, before)| after.saturating_sub(before));
        assert!(grown.is_none_or(|kib| kib < 384 << 10), "{grown:?} KiB more");
    }
}

/// Peak memory of this process in KiB, where the system tells.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
