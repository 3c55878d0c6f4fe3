//! How ranks of several processes agree before data move, whatever carries their headers: the
//! verdict on all headers, and failures as words of a message.

use crate::arguments::same_count;
use crate::failure::{Failure, FailureKind};
use crate::local::{Call, Turn};
use crate::{Host, Operation, Result};

/// Kinds of failure, by their number in a message; 0 is none.
const KINDS: [FailureKind; 6] = [
    FailureKind::Missing,
    FailureKind::Mismatch,
    FailureKind::Error,
    FailureKind::Panic,
    FailureKind::Left,
    FailureKind::Aborted,
];

/// Words of a failure before its ranks.
const FIXED: usize = 5;

/// Most ranks of a failure that are told; its text names the others too.
const RANKS: usize = 4;

/// Words before the text.
pub(crate) const BEFORE_TEXT: usize = FIXED + RANKS;

/// Writes a failure into words, its text cut to what fits; returns how many words it takes.
///
/// ```text
///   0     1              2     3      4              5..9   9..
///   kind  operation + 1  step  ranks  bytes of text  ranks  text
/// ```
pub(crate) fn put(failure: &Failure, words: &mut [u64]) -> usize {
    let (before, room) = words.split_at_mut(BEFORE_TEXT);
    let room: &mut [u8] = bytemuck::cast_slice_mut(room);
    let text = shortened(&failure.to_string(), room.len());
    room[..text.len()].copy_from_slice(text.as_bytes());
    let ranks = &failure.ranks()[..failure.ranks().len().min(RANKS)];
    let kind = KINDS.iter().position(|&kind| kind == failure.kind()).map_or(0, |at| at + 1);
    let operation = failure.operation().map_or(0, |operation| operation as u64 + 1);
    let fixed = [kind as u64, operation, failure.step(), ranks.len() as u64, text.len() as u64];
    before[..FIXED].copy_from_slice(&fixed);
    before[FIXED..].iter_mut().zip(ranks).for_each(|(word, &rank)| *word = rank as u64);
    BEFORE_TEXT + text.len().div_ceil(8)
}

/// The failure that words tell of, if any.
pub(crate) fn told(words: &[u64]) -> Option<Failure> {
    let (before, text) = words.split_at(BEFORE_TEXT);
    let kind = *KINDS.get((before[0] as usize).checked_sub(1)?)?;
    let operation = (before[1] as usize).checked_sub(1);
    let operation = operation.and_then(|operation| Operation::ALL.get(operation)).copied();
    let ranks = &before[FIXED..][..(before[3] as usize).min(RANKS)];
    let ranks = ranks.iter().map(|&rank| rank as usize).collect();
    let bytes: &[u8] = bytemuck::cast_slice(text);
    let text = bytes.get(..before[4] as usize).unwrap_or(bytes);
    let text = String::from_utf8_lossy(text).into_owned();
    Some(Failure::new(kind, ranks, operation, before[2], text))
}

/// What fits into some bytes.
fn shortened(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let end = (0..=room - 3).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// Ranks have sent each other what they call and, for `counts`, how many elements they send to each
/// and expect from each: `counts(rank)` are the ones and then the others. All come to the same.
pub(crate) fn verdict<'a>(
    turn: &Turn<'_, Host>,
    call: impl Fn(usize) -> Call,
    counts: Option<impl Fn(usize) -> &'a [u64]>,
) -> Result<()> {
    turn.compare(call)?;
    let Some(counts) = counts else { return Ok(()) };
    let (name, world) = (turn.operation().name(), turn.world());
    for to in 0..world {
        for from in 0..world {
            let (sent, expected) = (counts(from)[to] as usize, counts(to)[world + from] as usize);
            same_count(name, turn.member(from), turn.member(to), sent, expected)
                .map_err(|error| turn.refused_by(to, error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_TEXT, put, told};
    use crate::Operation;
    use crate::failure::{Failure, FailureKind};

    #[test]
    fn a_failure_is_told_as_it_was() {
        let text = "rank 2 failed in step 7: no more samples".to_owned();
        let operation = Some(Operation::Barrier);
        let failure = Failure::new(FailureKind::Left, vec![2, 5], operation, 7, text);
        let mut words = [0; BEFORE_TEXT + 8];
        assert_eq!(put(&failure, &mut words), BEFORE_TEXT + 5);
        assert_eq!(told(&words), Some(failure));
        assert_eq!(told(&[0; BEFORE_TEXT]), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let text = "ä".repeat(100);
        let failure = Failure::new(FailureKind::Aborted, Vec::new(), None, 0, text);
        let mut words = [0; BEFORE_TEXT + 2];
        put(&failure, &mut words);
        let told = told(&words).expect("a failure").to_string();
        assert_eq!(told, "ääääää...");
    }
}
