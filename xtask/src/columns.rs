//! Text in aligned columns.

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows as lines, each cell as wide as the widest of its column; the last column is not padded.
pub(crate) fn lines(aligns: &[Align], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    let cell = |(column, cell): (usize, &String)| {
        let width = widths.get(column).copied().unwrap_or(0);
        match aligns.get(column) {
            Some(Align::Right) => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        }
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "seconds", "result"]), row(["a longer name", "1.5", "ok"])];
        let text = lines(&[Align::Left, Align::Right, Align::Left], &rows);
        assert_eq!(text, "name           seconds  result\na longer name      1.5  ok\n");
    }
}
