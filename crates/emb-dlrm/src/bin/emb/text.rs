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

/// A number of bytes as a person writes it: `1073741824`, `512MiB`, `1.5 GiB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1)];
    let unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, *bytes)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let value = number.trim().parse::<f64>().map(|number| number * factor as f64);
    match value {
        // Beyond this, floats skip numbers.
        Ok(bytes) if (0.0..=(1_u64 << 53) as f64).contains(&bytes) => Ok(bytes as u64),
        _ => Err("must be bytes, or a number with B, KiB, MiB, GiB or TiB, as 512MiB".into()),
    }
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
    use super::{bytes, count, parse_bytes, table};

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
    }

    #[test]
    fn bytes_are_read_with_and_without_units() {
        assert_eq!(parse_bytes("1048576"), Ok(1 << 20));
        assert_eq!(parse_bytes("1MiB"), Ok(1 << 20));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(3 << 29));
        for bad in ["", "MiB", "-1", "1GB", "nan", "1e300", "1 1"] {
            assert!(parse_bytes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn columns_align() {
        let rows = vec![vec!["a".into(), "1".into()], vec!["long".into(), "23".into()]];
        assert_eq!(table(&["name", "n"], &rows), "name   n\na      1\nlong  23");
    }
}
