//! The nearest known word to a misspelt one.

/// The candidate with the smallest edit distance, when it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let limit = (word.chars().count() / 2).max(2);
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `unknown "word"; did you mean ...? (one of ...)`.
pub(crate) fn explain(word: &str, candidates: &[&str]) -> String {
    let meant =
        nearest(word, candidates).map_or(String::new(), |near| format!("did you mean {near:?}? "));
    format!("{word:?} is unknown; {meant}one of: {}", candidates.join(", "))
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
    use super::{distance, nearest};

    #[test]
    fn distances_are_levenshtein() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn a_misspelt_word_finds_its_neighbour_and_nonsense_finds_none() {
        let words = ["batch-size", "bad-rows", "lr"];
        assert_eq!(nearest("bach-size", &words), Some("batch-size"));
        assert_eq!(nearest("bad_row", &words), Some("bad-rows"));
        assert_eq!(nearest("zzzzzzzz", &words), None);
    }
}
