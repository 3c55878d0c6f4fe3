//! What the chores read from Markdown: lines outside code, links, headings, table rows.

/// The lines outside fenced code blocks, with their numbers from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// The targets of `[text](target)` in a line.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    let without_code: Vec<&str> = line.split('`').step_by(2).collect();
    without_code.into_iter().flat_map(|text| {
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
    })
}

/// The names by which a link reaches the headings of a text.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The rows of all tables: the line number and the cells, without the bars around them.
pub(crate) fn table_rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    prose(text).filter_map(|(number, line)| {
        let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some((number, row.split('|').map(str::trim).collect()))
    })
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_are_not_prose() {
        let text = "a\n```rust\n[b](c)\n```\nd";
        assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "a"), (5, "d")]);
    }

    #[test]
    fn links_are_found_outside_code() {
        let line = "see [a](x.md), `[b](y.md)` and [c](z.md#part)";
        assert_eq!(links(line).collect::<Vec<_>>(), ["x.md", "z.md#part"]);
    }

    #[test]
    fn headings_have_anchors() {
        let text = "# The 11 Rules, `bitwise`\n## 2D: ranks";
        assert_eq!(anchors(text), ["the-11-rules-bitwise", "2d-ranks"]);
    }

    #[test]
    fn table_rows_are_cells() {
        let rows: Vec<_> = table_rows("| a | b |\n|---|---|\n| `c` | d |").collect();
        assert_eq!(rows[0], (1, vec!["a", "b"]));
        assert_eq!(rows[2], (3, vec!["`c`", "d"]));
    }
}
