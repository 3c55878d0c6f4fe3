//! The nearest known name to a misspelt one, for errors.

/// `unknown; did you mean ..? one of: ..`
pub(crate) fn unknown(word: &str, known: &[&str]) -> String {
    let meant =
        nearest(word, known).map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    format!("unknown; {meant}one of: {}", known.join(", "))
}

/// Fewest characters of a part of a name that tell it from others.
const PART: usize = 3;

/// The known name that `word` is most likely meant to be, of equally likely ones the first.
///
/// That is the one of fewest edits: characters left out, added, taken for another, and neighbours
/// that changed places (optimal string alignment: Damerau, A technique for computer detection and
/// correction of spelling errors, 1964), where capitals are like small letters. More edits than
/// a third of `word`, or one, are less likely than a name cut short or gone on with, as `fp8` for
/// `fp8-e4m3`; more than half of it, or two, and those that leave no character, are no neighbours.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = small(word);
    let mut closest: Option<(usize, &'a str)> = None;
    for name in known {
        let of_name = small(name);
        let edits = edits(&letters, &of_name);
        let meant = edits <= (letters.len() / 2).max(2)
            && (edits == 0 || edits < letters.len().max(of_name.len()));
        if meant && closest.is_none_or(|(fewest, _)| edits < fewest) {
            closest = Some((edits, *name));
        }
    }
    match closest {
        Some((edits, name)) if edits <= (letters.len() / 3).max(1) => Some(name),
        _ => part_of(&letters, known).or(closest.map(|(_, name)| name)),
    }
}

/// The first name that `word` is a part of, or begins with.
fn part_of<'a>(word: &[char], known: &[&'a str]) -> Option<&'a str> {
    let is_part = |name: &[char]| {
        word.len() >= PART && name.windows(word.len()).any(|part| part == word)
            || name.len() >= PART && word.starts_with(name)
    };
    known.iter().copied().find(|name| is_part(&small(name)))
}

fn small(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).collect()
}

/// Edits between two words, no character edited twice.
fn edits(a: &[char], b: &[char]) -> usize {
    // The row before the last, the last and this one.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(a: &str, b: &str) -> usize {
        super::edits(&small(a), &small(b))
    }

    #[test]
    fn neighbours_that_changed_places_are_one_edit() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!((edits("", "abc"), edits("abc", ""), edits("same", "same")), (3, 3, 0));
        assert_eq!((edits("f61", "f16"), edits("f61", "f32")), (1, 2));
        assert_eq!((edits("abcd", "badc"), edits("ca", "abc")), (2, 3));
        assert_eq!(edits("ab", "ba"), 1);
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_nonsense_finds_none() {
        let known = ["dgx-h100", "dgx-a100", "cpu"];
        assert_eq!(nearest("dgx_h100", &known), Some("dgx-h100"));
        assert_eq!(nearest("gpu", &known), Some("cpu"));
        assert_eq!(nearest("zzzzzzzz", &known), None);
        let text = unknown("gpu", &known);
        let expected = r#"unknown; did you mean "cpu"? one of: dgx-h100, dgx-a100, cpu"#;
        assert_eq!(text, expected);
        // Every letter another one: of two letters that is two edits.
        assert_eq!(nearest("x", &["lr"]), None);
        assert_eq!(nearest("no", &["lr"]), None);
        assert_eq!(nearest("", &["a"]), None);
    }

    #[test]
    fn the_likeliest_of_several_names_is_found() {
        let formats = ["f32", "f16", "bf16", "int8", "fp8-e4m3", "fp8-e5m2", "int4"];
        for (word, meant) in [
            ("f61", "f16"),
            ("bf61", "bf16"),
            ("BF16", "bf16"),
            ("FP8-E5M2", "fp8-e5m2"),
            ("fp16", "f16"),
            ("fp8", "fp8-e4m3"),
            ("e5m2", "fp8-e5m2"),
            ("int8-rowwise", "int8"),
            ("int", "int8"),
            ("itn4", "int4"),
        ] {
            assert_eq!(nearest(word, &formats), Some(meant), "{word}");
        }
        // A name that another one begins with is not meant by a slip in the longer one.
        assert_eq!(nearest("dlrm-dnc", &["dlrm", "dlrm-dcn"]), Some("dlrm-dcn"));
        assert_eq!(nearest("rowwiseadam", &["adam", "row-wise-adam"]), Some("row-wise-adam"));
    }
}
