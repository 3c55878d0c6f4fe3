//! The nearest known name to a misspelt one, for errors.

/// `unknown; did you mean ..? one of: ..`
pub(crate) fn unknown(word: &str, known: &[&str]) -> String {
    let meant =
        nearest(word, known).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    format!("unknown; {meant}one of: {}", known.join(", "))
}

/// The known name with the smallest edit distance (Levenshtein, over characters), when it is near
/// enough to be meant: at most half of `word`, or 2. Of equally near ones the first.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (word.chars().count() / 2).max(2);
    let near = known.iter().map(|name| (distance(word, name), *name));
    near.filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance over characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_nonsense_finds_none() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
        let known = ["dgx-h100", "dgx-a100", "cpu"];
        assert_eq!(nearest("dgx_h100", &known), Some("dgx-h100"));
        assert_eq!(nearest("gpu", &known), Some("cpu"));
        assert_eq!(nearest("zzzzzzzz", &known), None);
        let text = unknown("gpu", &known);
        let expected = r#"unknown; did you mean "cpu"? one of: dgx-h100, dgx-a100, cpu"#;
        assert_eq!(text, expected);
    }
}
