//! What the suites of the failure contract found, as a table.

use crate::Failure;
use crate::columns::{Align::Left, Align::Right, lines};
use serde_json::Value;
use std::path::Path;

/// Characters of a message that are shown.
const SHOWN: usize = 100;

/// A file's rows, one JSON object a line; none where no suite wrote one.
pub(crate) fn read(file: &Path) -> Result<Vec<Value>, Failure> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(file)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// A line a row.
pub(crate) fn table(rows: &[Value]) -> String {
    const COLUMNS: [&str; 6] = ["transport", "sets", "fault", "fails", "after ms", "a survivor"];
    let mut cells = vec![COLUMNS.map(str::to_owned).to_vec()];
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let after =
            row["after_ms"].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
        let message: String = text("message").chars().take(SHOWN).collect();
        let fails = row["fails"].as_u64().map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        let (transport, sets, fault) = (text("transport"), text("sets"), text("fault"));
        cells.push(vec![transport, sets, fault, fails, after, message]);
    }
    lines(&[Left, Left, Left, Right, Right, Left], &cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_shows_who_failed_when_and_what_a_survivor_said() {
        let row = json!({"transport": "local", "sets": "1D", "fault": "panic", "fails": 3,
            "after_ms": 1.25, "message": "m".repeat(200)});
        let text = table(&[row]);
        let line = text.lines().nth(1).expect("a row");
        assert!(line.starts_with("local      1D    panic      3       1.2  mmm"), "{line}");
        assert!(line.ends_with(&"m".repeat(SHOWN)) && !line.contains(&"m".repeat(SHOWN + 1)));
    }
}
