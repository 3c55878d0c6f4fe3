//! Numbers and tables for people.

use emb_dlrm::data::Distinct;

/// `1234567` as `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 step`, `2 steps`.
pub(crate) fn counted(value: u64, word: &str) -> String {
    format!("{} {word}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Bytes with a binary unit.
pub(crate) fn bytes(value: u64) -> String {
    let mut scaled = value as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if scaled < 1024.0 {
            return if unit == "B" { format!("{value} B") } else { format!("{scaled:.1} {unit}") };
        }
        scaled /= 1024.0;
    }
    format!("{scaled:.1} PiB")
}

/// Seconds with a unit in which three digits count.
pub(crate) fn seconds(value: f64) -> String {
    let (scaled, unit) = match value {
        0.0 => return "0 s".to_owned(),
        _ if value < 1e-3 => (value * 1e6, "us"),
        _ if value < 1.0 => (value * 1e3, "ms"),
        _ => (value, "s"),
    };
    let digits = (2 - scaled.log10().floor() as i32).clamp(0, 3) as usize;
    format!("{scaled:.digits$} {unit}")
}

/// Part of a whole as percent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Distinct ids, `about` where they are estimated.
pub(crate) fn distinct(ids: Distinct) -> String {
    match ids {
        Distinct::Exact(ids) => count(ids),
        Distinct::Estimate { count: ids, relative_error } => {
            format!("about {} (+-{})", count(ids), percent(relative_error))
        }
    }
}

/// Aligned columns: the first left, the others right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let aligned = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = line(head.to_vec());
    for row in rows {
        text.push('\n');
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

/// Lines of `name  value`, names aligned.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("{name:<width$}  {value}");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, seconds, table};

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn seconds_have_three_digits_and_a_unit() {
        assert_eq!(seconds(0.0123456), "12.3 ms");
        assert_eq!(seconds(0.000_082_3), "82.3 us");
        assert_eq!(seconds(12.3456), "12.3 s");
        assert_eq!(seconds(1234.5), "1234 s");
        assert_eq!(seconds(0.0), "0 s");
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
    }

    #[test]
    fn columns_align() {
        let rows = vec![vec!["a".into(), "1".into()], vec!["long".into(), "23".into()]];
        assert_eq!(table(&["name", "n"], &rows), "name   n\na      1\nlong  23");
    }
}
