//! The nearest known word to a misspelt one.

pub use emb_shard::nearest;

/// `unknown "word"; did you mean ...? (one of ...)`.
pub(crate) fn explain(word: &str, candidates: &[&str]) -> String {
    let near = nearest(word, candidates);
    let meant = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    format!("{word:?} is unknown; {meant}one of: {}", candidates.join(", "))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_word_finds_its_neighbour_and_nonsense_finds_none() {
        let words = ["batch-size", "bad-rows", "lr"];
        assert_eq!(nearest("bach-size", &words), Some("batch-size"));
        assert_eq!(nearest("bad_row", &words), Some("bad-rows"));
        assert_eq!(nearest("zzzzzzzz", &words), None);
    }
}
