//! What many ranks say of one failure, printed once: [`Chorus`].

/// How an error of the program begins.
const ERROR: &[u8] = b"error: ";
/// Errors that are remembered: who says more than that is not counted, but heard.
const MOST: usize = 1000;
/// Characters of an error that it is named by.
const SHOWN: usize = 60;

/// Errors that ranks said, and which: the first rank that says one is heard, the others are counted.
#[derive(Debug, Default)]
pub struct Chorus(Vec<Song>);

#[derive(Debug)]
struct Song {
    text: Vec<u8>,
    first: usize,
    others: Vec<usize>,
}

impl Chorus {
    /// Whether a line is to be printed: it is no error, or the first of its text, or of a rank that
    /// says it again.
    pub fn is_new(&mut self, rank: usize, line: &[u8]) -> bool {
        let Some(text) = text(rank, line) else { return true };
        match self.0.iter_mut().find(|song| song.text == text) {
            Some(song) if song.first == rank || song.others.contains(&rank) => true,
            Some(song) => {
                song.others.push(rank);
                false
            }
            None => {
                if self.0.len() < MOST {
                    let (text, others) = (text.to_vec(), Vec::new());
                    self.0.push(Song { text, first: rank, others });
                }
                true
            }
        }
    }

    /// Who said the same as another, a line an error, and forgets it.
    pub fn counted(&mut self) -> Vec<String> {
        let songs = std::mem::take(&mut self.0);
        let told = songs.into_iter().filter(|song| !song.others.is_empty()).map(|mut song| {
            song.others.sort_unstable();
            let text = String::from_utf8_lossy(&song.text).into_owned();
            let short: String = text.chars().take(SHOWN).collect();
            let dots = if short.len() < text.len() { ".." } else { "" };
            format!("{} said the same as rank {}: {short}{dots}", ranges(&song.others), song.first)
        });
        told.collect()
    }
}

/// The words of an error, without the rank that says it.
fn text(rank: usize, line: &[u8]) -> Option<&[u8]> {
    let said = line.strip_prefix(ERROR)?.trim_ascii_end();
    let name = format!("rank {rank} on ");
    let Some(rest) = said.strip_prefix(name.as_bytes()) else { return Some(said) };
    let host = rest.windows(2).position(|pair| pair == b": ")?;
    Some(&rest[host + 2..])
}

/// "rank 1", "ranks 1 to 63", "ranks 1, 3 and 5 to 9".
fn ranges(ranks: &[usize]) -> String {
    let runs: Vec<String> = ranks
        .chunk_by(|a, b| a + 1 == *b)
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            few => few.iter().map(ToString::to_string).collect(),
        })
        .collect();
    match &runs[..] {
        [one] if ranks.len() == 1 => format!("rank {one}"),
        [rest @ .., last] if !rest.is_empty() => format!("ranks {} and {last}", rest.join(", ")),
        all => format!("ranks {}", all.join("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_all_ranks_is_heard_once_and_the_others_are_counted() {
        let mut chorus = Chorus::default();
        let say = |rank: usize| format!("error: rank {rank} on node{rank}: x.tsv: no file\n");
        let heard: Vec<usize> =
            (0..64).filter(|&rank| chorus.is_new(rank, say(rank).as_bytes())).collect();
        assert_eq!(heard, [0]);
        assert_eq!(chorus.counted(), ["ranks 1 to 63 said the same as rank 0: x.tsv: no file"]);
        assert_eq!(chorus.counted(), [""; 0]);
    }

    #[test]
    fn what_differs_is_heard_and_so_is_what_is_no_error_or_is_said_again() {
        let mut chorus = Chorus::default();
        assert!(chorus.is_new(0, b"error: rank 0 on a: line 7 is bad\n"));
        assert!(chorus.is_new(1, b"error: rank 1 on a: line 8 is bad\n"));
        assert!(chorus.is_new(0, b"step 1\n") && chorus.is_new(1, b"step 1\n"));
        assert!(chorus.is_new(0, b"error: rank 0 on a: line 7 is bad"));
        // Of another rank it says something else than of its own.
        assert!(chorus.is_new(2, b"error: rank 0 on a: line 7 is bad\n"));
        assert_eq!(chorus.counted(), [""; 0]);
    }

    #[test]
    fn ranks_are_told_in_ranges() {
        let of = |ranks: &[usize]| ranges(ranks);
        assert_eq!(of(&[2]), "rank 2");
        assert_eq!(of(&[1, 2]), "ranks 1 and 2");
        assert_eq!(of(&[1, 3, 5, 6, 7]), "ranks 1, 3 and 5 to 7");
        assert_eq!(of(&[1, 2, 3]), "ranks 1 to 3");
    }
}
