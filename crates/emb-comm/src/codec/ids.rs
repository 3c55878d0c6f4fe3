//! Ids on the wire: lists of 64-bit numbers in as few bits as their kind allows, exactly.
//!
//! [`pack_sorted`] and [`pack`] append a list to a buffer of `u64`, the element that a transport
//! moves; [`unpack`] takes it back, given how many ids it has. Lists may follow one another in a
//! buffer, and a list of no ids has no words. Lengths of bags and other small numbers go the same
//! way: a list of equal small numbers is two words long, whatever its length.
//!
//! ```
//! use emb_comm::ids;
//!
//! let (mut words, mut scratch) = (Vec::new(), ids::Scratch::default());
//! ids::pack_sorted(&[3, 4, 900, 901, 1 << 40], &mut words)?;
//! ids::pack(&[1, 1, 1, 1, 1, 1, 1, 1, 1], &mut scratch, &mut words)?;
//!
//! let (mut rows, mut lengths) = ([0; 5], [0; 9]);
//! let read = ids::unpack(&words, &mut scratch, &mut rows)?;
//! ids::unpack(&words[read..], &mut scratch, &mut lengths)?;
//! assert_eq!(rows, [3, 4, 900, 901, 1 << 40]);
//! assert_eq!(lengths, [1; 9]);
//! # Ok::<(), emb_comm::Error>(())
//! ```
//!
//! # Format
//!
//! Bit `k` of a list is bit `k % 64` of its word `k / 64`; where words are written as bytes they are
//! little-endian, so that it is bit `k % 8` of byte `k / 8`.
//!
//! | bytes | bits | what |
//! | --- | --- | --- |
//! | 0 to 3 | 0 to 2 | the encoding, below |
//! | | 3 to 31 | words that follow, at most 2^29 - 1 |
//! | 4 to 7 | 32 to 63 | checksum of the words that follow, of bits 0 to 31 and of the number of ids |
//! | 8 on | 64 on | the ids; zeros up to the end of the last word |
//!
//! A *number* is 7 bits `n` (0 to 64) and then its `n` bits. The encodings, of which the one with the
//! fewest bits is taken, of equals the first in this list:
//!
//! - 0, progression: two numbers, the first id and the step to the next, modulo 2^64.
//! - 1, distinct: ascending ids without duplicates. The first id as a number, then blocks of 128 with
//!   `m = 1`: with `p` the id before the block, `k` ids in it (the last block may have fewer) and
//!   `e_i = id_i - p - m * (i + 1)`, there are 6 bits `l`; the `l` low bits of every `e_i`; and for
//!   every `e_i`, as many 0 as `(e_i >> l) - (e_(i-1) >> l)` (`e_(-1) = 0`), then a 1. `l` is 63 where
//!   all `e_i` are 0, and then the other two parts are left out.
//! - 2, sorted: the same with `m = 0`, for ascending ids with duplicates.
//! - 3, blocks: ids in any order. The smallest id of all as a number; 7 bits `b`; then blocks of 128:
//!   7 bits `w`; unless `w` is 64, in `b` bits what the block's smallest id is above that of all;
//!   and every id less the block's smallest (with `w` of 64: the id itself) in `w` bits.
//! - 4, dictionary: 32 bits `d`; the `d` distinct ids, ascending, as in encoding 1; then, for
//!   every id, its place among them, in as many bits as `d - 1` has. Only [`pack`] takes it, and not
//!   for a list whose first 4096 ids are distinct: its duplicates, if any, are too few to look for.
//!
//! The checksum has four sums, `s_j = 0x9e3779b97f4a7c15 * (j + 1)` at first (2^64 over the golden
//! ratio, an odd number), of which the one of `j = k % 4` takes word `k` of those that follow:
//! `s_j = mix(s_j ^ word)`, with `mix(x) = y ^ (y >> 32)`, `y = x * 0x9e3779b97f4a7c15` modulo 2^64.
//! With `c = mix(ids) ^ bits 0 to 31`, for each `j` in order `c = mix(c ^ s_j)`; the checksum is the
//! low half of `c`. It finds accidents, not forgeries.

mod bits;
mod blocks;
mod checksum;
mod dictionary;
mod sorted;

use crate::{Error, Result};
use bits::{Read, Reader, Writer, number_bits};
use blocks::Frame;
use checksum::checksum;

/// Memory for dictionaries, kept from list to list.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// A hash table: 0, or the place in `distinct` plus 1.
    slots: Vec<u32>,
    /// Distinct ids: in the order of their first, then ascending.
    distinct: Vec<u64>,
    /// Place of every id in the first order.
    places: Vec<u32>,
    /// Ascending place of those places.
    ranks: Vec<u32>,
    /// Distinct ids with their places.
    order: Vec<(u64, u32)>,
    /// Memory to sort them.
    spare: Vec<(u64, u32)>,
}

/// Bits of the encoding in a header.
const ENCODING_BITS: u32 = 3;

/// Most words of a list, its header apart.
const MAX_WORDS: usize = (1 << 29) - 1;

/// How a list is encoded; see the module's text.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Progression,
    Distinct,
    Sorted,
    Blocks,
    Dictionary,
}

impl Encoding {
    fn of(header: u64) -> Option<Self> {
        [Self::Progression, Self::Distinct, Self::Sorted, Self::Blocks, Self::Dictionary]
            .get((header % (1 << ENCODING_BITS)) as usize)
            .copied()
    }
}

/// Appends ids in ascending order, duplicates allowed, to `words`.
///
/// Nothing is allocated while `words` has room.
///
/// # Errors
/// An id below the one before it; a list of more than 2^29 words (4 GiB). `words` is as before
/// then.
pub fn pack_sorted(ids: &[u64], words: &mut Vec<u64>) -> Result<()> {
    let shape = Shape::of(ids);
    if let Some(position) = shape.descent {
        let (before, id) = (ids[position - 1], ids[position]);
        return Err(Error::NotSorted { position, id, before });
    }
    pack_shape(ids, &shape, None, words)
}

/// Appends ids in any order to `words`.
///
/// Nothing is allocated while `words` and `scratch` have room. A list without many duplicates is
/// packed faster by [`pack_sorted`], where its order does not matter.
///
/// # Errors
/// A list of more than 2^29 words (4 GiB). `words` is as before then.
pub fn pack(ids: &[u64], scratch: &mut Scratch, words: &mut Vec<u64>) -> Result<()> {
    pack_shape(ids, &Shape::of(ids), Some(scratch), words)
}

/// Takes the list at the start of `words`, of as many ids as `out` has room for, and returns how
/// many words it takes.
///
/// Nothing is allocated, but for a dictionary that `scratch` has no room for, which has at most
/// as many ids as `out`.
///
/// # Errors
/// Words that end too early, that are damaged, or that hold another number of ids, with the word
/// where it shows. `out` then holds anything.
pub fn unpack(words: &[u64], scratch: &mut Scratch, out: &mut [u64]) -> Result<usize> {
    if out.is_empty() {
        return Ok(0);
    }
    let refuse = |word, problem: String| Err(Error::PackedIds { word, problem });
    let Some((&header, rest)) = words.split_first() else {
        return refuse(0, format!("no header where {} ids should be", out.len()));
    };
    let length = (header as u32 >> ENCODING_BITS) as usize;
    let Some(body) = rest.get(..length) else {
        return refuse(0, format!("{length} words should follow, {} do", rest.len()));
    };
    let sum = checksum(header as u32, out.len(), body);
    if sum != (header >> 32) as u32 {
        let ids = out.len();
        return refuse(0, format!("the checksum of {length} words for {ids} ids is another"));
    }
    let Some(encoding) = Encoding::of(header) else {
        return refuse(0, format!("there is no encoding {}", header % (1 << ENCODING_BITS)));
    };
    let mut reader = Reader::new(body);
    let taken = match encoding {
        Encoding::Progression => unpack_progression(&mut reader, out),
        Encoding::Distinct => sorted::unpack(&mut reader, 1, out),
        Encoding::Sorted => sorted::unpack(&mut reader, 0, out),
        Encoding::Blocks => blocks::unpack(&mut reader, out),
        Encoding::Dictionary => dictionary::unpack(&mut reader, &mut scratch.distinct, out),
    };
    match taken.and_then(|()| reader.finish()) {
        Ok(()) => Ok(1 + length),
        Err(problem) => refuse(1 + reader.word(), problem.to_owned()),
    }
}

/// What a list allows.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Position of the first id that is below the one before it.
    descent: Option<usize>,
    /// Smallest step from an id to the next, modulo 2^64.
    min_step: u64,
    /// Largest.
    max_step: u64,
}

impl Shape {
    fn of(ids: &[u64]) -> Self {
        let (mut sorted, mut min_step, mut max_step) = (true, u64::MAX, 0);
        for (&before, &id) in ids.iter().zip(ids.iter().skip(1)) {
            let step = id.wrapping_sub(before);
            sorted &= before <= id;
            min_step = min_step.min(step);
            max_step = max_step.max(step);
        }
        let descent = if sorted { None } else { ids.windows(2).position(|ids| ids[1] < ids[0]) };
        Self { descent: descent.map(|position| position + 1), min_step, max_step }
    }
}

/// Appends `ids` in the encoding with the fewest bits; without a scratch no dictionary is tried.
fn pack_shape(
    ids: &[u64],
    shape: &Shape,
    scratch: Option<&mut Scratch>,
    words: &mut Vec<u64>,
) -> Result<()> {
    let Some(&first) = ids.first() else { return Ok(()) };
    let sorted = shape.descent.is_none();
    let step = ids.get(1).map_or(0, |second| second.wrapping_sub(first));
    let gap = shape.min_step.min(1);
    let frame = Frame::new(ids, sorted);
    let mut best = (frame.bits, Encoding::Blocks);
    if sorted {
        let encoding = if gap == 1 { Encoding::Distinct } else { Encoding::Sorted };
        let bits = sorted::bits(ids, gap);
        if bits <= best.0 {
            best = (bits, encoding);
        }
    }
    if ids.len() < 2 || shape.min_step == shape.max_step {
        let bits = number_bits(first) + number_bits(step);
        if bits <= best.0 {
            best = (bits, Encoding::Progression);
        }
    }
    let scratch = scratch.filter(|_| !matches!(best.1, Encoding::Progression));
    let scratch = scratch.and_then(|scratch| {
        best = (dictionary::build(ids, best.0, scratch)?, Encoding::Dictionary);
        Some(scratch)
    });
    let (bits, encoding) = best;
    let length = bits.div_ceil(64);
    if length > MAX_WORDS {
        let what = "words of a packed list";
        return Err(Error::Length { operation: "pack", what, expected: MAX_WORDS, got: length });
    }
    let start = words.len();
    words.reserve(1 + length);
    words.push(0);
    let mut writer = Writer::new(words);
    match (encoding, scratch) {
        (Encoding::Progression, _) => {
            writer.put_number(first);
            writer.put_number(step);
        }
        (Encoding::Dictionary, Some(scratch)) => dictionary::pack(scratch, &mut writer),
        (Encoding::Blocks | Encoding::Dictionary, _) => {
            blocks::pack(ids, sorted, frame, &mut writer);
        }
        (Encoding::Distinct | Encoding::Sorted, _) => sorted::pack(ids, gap, &mut writer),
    }
    writer.finish();
    let low = (length as u32) << ENCODING_BITS | encoding as u32;
    let sum = checksum(low, ids.len(), &words[start + 1..]);
    words[start] = u64::from(sum) << 32 | u64::from(low);
    Ok(())
}

fn unpack_progression(reader: &mut Reader<'_>, out: &mut [u64]) -> Read<()> {
    let (mut id, step) = (reader.take_number()?, reader.take_number()?);
    for out in out {
        *out = id;
        id = id.wrapping_add(step);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
