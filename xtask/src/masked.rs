//! Rust text with everything that is not code blanked out.

/// Replaces comments, strings and character literals by spaces, line by line and byte by byte, so
/// that a search for a word finds code only, at its line.
pub(crate) fn mask(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let Some(end) = skip(bytes, at).map(|end| end.min(bytes.len())) else {
            out.push(bytes[at]);
            continue;
        };
        out.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Whether `word` occurs in `line` on its own, not as a part of a longer name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_name) && !line[at + word.len()..].starts_with(is_name)
    })
}

/// The end of the comment or literal that begins at `at`, if one does.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    let inside_name = before.is_ascii_alphanumeric() || before == b'_';
    match rest {
        [b'/', b'/', ..] => Some(at + position(rest, b'\n')),
        [b'/', b'*', ..] => Some(at + block_comment(rest)),
        [b'"', ..] => Some(at + quoted(rest, b'"')),
        [b'r', b'"' | b'#', ..] if !inside_name => raw_string(&rest[1..]).map(|n| at + 1 + n),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !inside_name => {
            raw_string(&rest[2..]).map(|n| at + 2 + n)
        }
        [b'\'', b'\\', ..] => Some(at + quoted(rest, b'\'')),
        // 'x' is a character, 'x without a closing quote a lifetime.
        [b'\'', ..] => {
            let length = std::str::from_utf8(&rest[1..]).ok()?.chars().next()?.len_utf8();
            (rest.get(1 + length) == Some(&b'\'')).then_some(at + length + 2)
        }
        _ => None,
    }
}

fn position(bytes: &[u8], byte: u8) -> usize {
    bytes.iter().position(|&b| b == byte).unwrap_or(bytes.len())
}

/// Length of a literal between two `quote`s, with `\` before what does not end it.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Length of `#".."#` with any number of `#`, or `None` for a raw name such as `r#type`.
fn raw_string(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes.iter().take_while(|&&byte| byte == b'#').count();
    if bytes.get(hashes) != Some(&b'"') {
        return None;
    }
    let closing = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = &bytes[hashes + 1..];
    let end = body.windows(closing.len()).position(|window| window == closing);
    Some(hashes + 1 + end.map_or(body.len(), |end| end + closing.len()))
}

/// Length of a comment that may hold others.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(source: &str) -> bool {
        mask(source).lines().any(|line| has_word(line, "unsafe"))
    }

    #[test]
    fn code_is_found_and_only_code() {
        assert!(finds("let x = unsafe { y };"));
        assert!(finds("'a: loop {} unsafe {}"));
        assert!(finds("let q = '\"'; unsafe {} let p = '\"';"));
        assert!(finds("let q = '\\''; unsafe {}"));
        assert!(finds("/* /* nested */ */ unsafe {}"));
        assert!(finds("r#type; unsafe {}"));
        assert!(finds("fn f<'é>() { unsafe {} }"));
        assert!(!finds("// unsafe"));
        assert!(!finds("/* unsafe /* unsafe */ unsafe */"));
        assert!(!finds("let s = \"unsafe \\\" unsafe\";"));
        assert!(!finds("let s = r#\"unsafe \" unsafe\"#;"));
        assert!(!finds("let s = br\"unsafe\";"));
        assert!(!finds("#![forbid(unsafe_code)]"));
        assert!(!finds("not_unsafe()"));
    }

    #[test]
    fn lines_and_lengths_are_kept() {
        let source = "a\n/* b\nc */ d \"e\nf\" 'g'\n// h";
        let masked = mask(source);
        assert_eq!(masked.len(), source.len());
        assert_eq!(masked.lines().map(str::trim).collect::<Vec<_>>(), ["a", "", "d", "", ""]);
    }

    #[test]
    fn unfinished_literals_end_with_the_text() {
        for source in ["\"abc", "r#\"abc", "/* abc", "'\\", "\"\\"] {
            assert_eq!(mask(source), " ".repeat(source.len()), "{source}");
        }
    }
}
