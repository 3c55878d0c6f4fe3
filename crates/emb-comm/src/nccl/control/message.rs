//! What processes tell each other beside NCCL: [`Message`], and how it lies on the wire.
//!
//! ```text
//!   word 0       1     2                3      4..
//!   "embctl01"   kind  rank it is of    words  words, little-endian as all
//! ```

use crate::Operation;
use crate::failure::Failure;
use crate::header::{BEFORE_TEXT, put, told};
use std::time::Duration;

/// First word of every message: who does not say it is no rank. The digits are those of the format.
const MARK: u64 = u64::from_le_bytes(*b"embctl01");
/// Words before those that depend on the kind.
pub(super) const HEAD: usize = 4;
/// Words of a failure: 2 KiB, as over MPI.
const FAILURE: usize = 256;
/// Words of a rank that is late, before the members of its set.
const LATE: usize = 6;
/// Words of a place, before the sets.
const PLACE: usize = 4;
/// Most sets that a place tells of. A run has a handful.
const SETS: usize = 64;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The world has failed.
    Failed(Failure),
    /// A rank takes no further part in a set.
    Left(Left),
    /// A rank takes no further part in anything; of this step.
    Ends(u64),
    /// The time of an operation is over on a rank.
    Late(Late),
    /// Rank 0 asks where a rank is with a copy of the world.
    Asks { number: u64, copy: u64 },
    /// The answer to the question of that number.
    Place { number: u64, place: Place },
}

/// A rank has left a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The name of the set.
    pub(super) set: u64,
    /// Operations of the set that it took part in.
    pub(super) begun: u64,
    /// The step it was in.
    pub(super) step: u64,
    /// Ranks of the set.
    pub(super) size: u64,
}

/// An operation whose time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) operation: Operation,
    pub(super) step: u64,
    /// The copy of the world that the set is of.
    pub(super) copy: u64,
    pub(super) set: u64,
    /// How many operations of the set have begun on this rank, with this one.
    pub(super) begun: u64,
    pub(super) timeout: Duration,
    /// Members of the set, as numbered in the world.
    pub(super) members: Vec<usize>,
}

/// Where a rank is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The operation it is in, and of which set.
    pub(super) inside: Option<(Operation, u64)>,
    pub(super) step: u64,
    /// Its sets, and how many operations of each have begun.
    pub(super) sets: Vec<(u64, u64)>,
}

/// Most words of a message in a world.
pub(super) fn most_words(world: usize) -> usize {
    HEAD + FAILURE.max(LATE + world).max(PLACE + 2 * SETS)
}

impl Message {
    /// As words, said of a rank.
    pub(super) fn words(&self, rank: usize) -> Vec<u64> {
        let mut words = vec![MARK, 0, rank as u64, 0];
        words[1] = match self {
            Self::Failed(failure) => {
                words.resize(HEAD + FAILURE, 0);
                let long = put(failure, &mut words[HEAD..]);
                words.truncate(HEAD + long);
                1
            }
            Self::Left(Left { set, begun, step, size }) => {
                words.extend([set, begun, step, size]);
                2
            }
            Self::Ends(step) => {
                words.push(*step);
                3
            }
            Self::Late(late) => {
                let operation = late.operation as u64;
                let micros = late.timeout.as_micros() as u64;
                words.extend([operation, late.step, late.copy, late.set, late.begun, micros]);
                words.extend(late.members.iter().map(|&rank| rank as u64));
                4
            }
            Self::Asks { number, copy } => {
                words.extend([number, copy]);
                5
            }
            Self::Place { number, place } => {
                let (operation, set) = match place.inside {
                    Some((operation, set)) => (operation as u64 + 1, set),
                    None => (0, 0),
                };
                words.extend([*number, operation, set, place.step]);
                let sets = place.sets.iter().take(SETS);
                words.extend(sets.flat_map(|&(set, begun)| [set, begun]));
                6
            }
        };
        words[3] = (words.len() - HEAD) as u64;
        words
    }

    /// What words mean, and the rank they are said of; `None` for no message of this program.
    fn read(words: &[u64]) -> Option<(usize, Self)> {
        let (head, words) = words.split_at_checked(HEAD)?;
        let operation = |word: u64| Operation::ALL.get(word as usize).copied();
        let message = match (head[1], words) {
            (1, words) if words.len() >= BEFORE_TEXT => Self::Failed(told(words)?),
            (2, &[set, begun, step, size]) => Self::Left(Left { set, begun, step, size }),
            (3, &[step]) => Self::Ends(step),
            (4, &[called, step, copy, set, begun, micros, ref members @ ..]) => Self::Late(Late {
                operation: operation(called)?,
                step,
                copy,
                set,
                begun,
                timeout: Duration::from_micros(micros),
                members: members.iter().map(|&rank| rank as usize).collect(),
            }),
            (5, &[number, copy]) => Self::Asks { number, copy },
            (6, &[number, called, set, step, ref sets @ ..]) => {
                let inside = called.checked_sub(1).and_then(operation);
                let inside = inside.map(|operation| (operation, set));
                let sets = sets.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                Self::Place { number, place: Place { inside, step, sets } }
            }
            _ => return None,
        };
        Some((head[2] as usize, message))
    }
}

/// Bytes that have come, until they are messages.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    most: usize,
}

impl Inbox {
    pub(super) fn new(world: usize) -> Self {
        Self { bytes: Vec::new(), most: most_words(world) }
    }

    /// Adds what was read.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, and the rank it is said of.
    ///
    /// # Errors
    /// What came is no message.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Message)>, Strange> {
        let word = |at: usize| {
            let bytes = self.bytes.get(8 * at..8 * at + 8)?;
            Some(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
        };
        if word(0).is_some_and(|mark| mark != MARK) {
            return Err(Strange);
        }
        let Some(long) = word(3) else { return Ok(None) };
        let long = HEAD + usize::try_from(long).unwrap_or(usize::MAX).min(self.most);
        if long > self.most {
            return Err(Strange);
        }
        let words: Option<Vec<u64>> = (0..long).map(word).collect();
        let Some(words) = words else { return Ok(None) };
        self.bytes.drain(..8 * long);
        Message::read(&words).map(Some).ok_or(Strange)
    }
}

/// Bytes that no rank says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strange;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureKind;

    fn bytes(message: &Message) -> Vec<u8> {
        message.words(3).into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn each() -> Vec<Message> {
        let text = "rank 2 gave up in step 7: the loss is not a number".to_owned();
        let operation = Some(Operation::AllReduce);
        let late = Late {
            operation: Operation::Split,
            step: 9,
            copy: 4,
            set: 5,
            begun: 6,
            timeout: Duration::from_millis(1500),
            members: vec![2, 0, 7],
        };
        let inside = Some((Operation::AllToAllV, u64::MAX));
        vec![
            Message::Failed(Failure::new(FailureKind::Aborted, vec![2], operation, 7, text)),
            Message::Left(Left { set: u64::MAX, begun: 3, step: 1, size: 8 }),
            Message::Ends(12),
            Message::Late(late),
            Message::Asks { number: 1, copy: 2 },
            Message::Place { number: 1, place: Place { inside, step: 3, sets: vec![(0, 4)] } },
            Message::Place { number: 2, place: Place { inside: None, step: 0, sets: vec![] } },
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_said_however_they_are_cut() -> Result<(), Strange> {
        let all: Vec<u8> = each().iter().flat_map(bytes).collect();
        for cut in [1, 7, 64, all.len()] {
            let (mut inbox, mut heard) = (Inbox::new(8), Vec::new());
            for part in all.chunks(cut) {
                inbox.add(part);
                while let Some((rank, message)) = inbox.next()? {
                    assert_eq!(rank, 3);
                    heard.push(message);
                }
            }
            assert_eq!(heard, each(), "in parts of {cut} bytes");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_message_is_refused_and_takes_no_memory() {
        let mut strange = vec![b"GET / HTTP/1.1\r\n".to_vec()];
        for (word, value) in [(1, 9), (3, u64::MAX), (3, 1 << 40), (3, 1), (3, 0)] {
            let mut words = Message::Asks { number: 1, copy: 2 }.words(0);
            words[word] = value;
            strange.push(words.into_iter().flat_map(u64::to_le_bytes).collect());
        }
        let failure = Failure::new(FailureKind::Left, vec![], None, 0, String::new());
        let mut short = Message::Failed(failure).words(0);
        short.truncate(HEAD + 2);
        short[3] = 2;
        strange.push(short.into_iter().flat_map(u64::to_le_bytes).collect());
        for bytes in strange {
            let mut inbox = Inbox::new(8);
            inbox.add(&bytes);
            assert_eq!(inbox.next(), Err(Strange), "{bytes:?}");
        }
    }
}
