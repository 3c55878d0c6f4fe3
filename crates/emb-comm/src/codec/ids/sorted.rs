//! Sorted ids: blocks in the code of Elias and Fano.
//!
//! The first id is a number; the others come in blocks of [`BLOCK`]. With `p` the id before the
//! block, `m` the smallest gap between ids (0, or 1 in a list without duplicates) and `k` ids in the
//! block, id `i` of the block is the excess `e_i = id - p - m * (i + 1)`. A block is
//!
//! - 6 bits `l`, `floor(log2(e_last / k))` or 0, at most 62; 63 for a block of excess 0, which ends
//!   here;
//! - the `l` low bits of each `e_i`;
//! - for each `e_i`, its other bits less those of `e_(i-1)` in unary: so many 0, then a 1.
//!
//! That is at most `2 + log2(e_last / k)` bits an id (R. Fano, "On the number of bits required to
//! implement an associative memory", 1971; P. Elias, "Efficient storage and retrieval by content and
//! address of static files", 1974), about half a bit more than any code needs for a random set. A
//! block of adjacent ids is a bitmap (`l = 0`, `m = 1`), and a far id lengthens its own block alone.

use super::bits::{Read, Reader, Writer, number_bits};

/// Ids of a block: few enough that `l` follows the density of the ids, enough that its 6 bits do
/// not count.
const BLOCK: usize = 128;

/// Bits of the field `l`.
const LOW: u32 = 6;

/// The `l` of a block whose ids follow at the smallest gap.
const FLAT: u32 = 63;

/// Words of the unary part of a block: `e_last >> l` is below `2 * BLOCK`.
const UNARY: usize = 3 * BLOCK / 64;

/// Bits that [`pack`] appends.
pub(super) fn bits(ids: &[u64], gap: u64) -> usize {
    let Some((&first, rest)) = ids.split_first() else { return 0 };
    let mut before = first;
    let mut bits = number_bits(first);
    for block in rest.chunks(BLOCK) {
        bits += LOW as usize;
        let excess = excess(before, gap, block);
        let low = low_bits(excess, block.len());
        if low < FLAT {
            bits += block.len() * (low as usize + 1) + (excess >> low) as usize;
        }
        before = block[block.len() - 1];
    }
    bits
}

/// Appends ids whose gaps are all at least `gap`.
pub(super) fn pack(ids: &[u64], gap: u64, writer: &mut Writer<'_>) {
    let Some((&first, rest)) = ids.split_first() else { return };
    writer.put_number(first);
    let mut before = first;
    for block in rest.chunks(BLOCK) {
        let last = excess(before, gap, block);
        let low = low_bits(last, block.len());
        writer.put(u64::from(low), LOW);
        if low < FLAT {
            let mask = (1 << low) - 1;
            let mut unary = [0_u64; UNARY];
            let mut expected = before;
            for (i, &id) in block.iter().enumerate() {
                expected += gap;
                let excess = id - expected;
                let one = (excess >> low) as usize + i;
                unary[one / 64] |= 1 << (one % 64);
                if low > 0 {
                    writer.put(excess & mask, low);
                }
            }
            writer.put_words(&unary, block.len() + (last >> low) as usize);
        }
        before = block[block.len() - 1];
    }
}

/// Takes `out.len()` ids.
pub(super) fn unpack(reader: &mut Reader<'_>, gap: u64, out: &mut [u64]) -> Read<()> {
    let Some((first, rest)) = out.split_first_mut() else { return Ok(()) };
    *first = reader.take_number()?;
    let mut before = *first;
    for block in rest.chunks_mut(BLOCK) {
        let low = reader.take(LOW)? as u32;
        let mut expected = before;
        if low == FLAT {
            for id in &mut *block {
                expected = expected.wrapping_add(gap);
                *id = expected;
            }
        } else {
            reader.take_fields(low, block)?;
            reader.take_unary(block, |id, high| {
                expected = expected.wrapping_add(gap);
                *id = (high << low | *id).wrapping_add(expected);
            })?;
        }
        before = block[block.len() - 1];
    }
    Ok(())
}

/// Excess of the last id of a block.
fn excess(before: u64, gap: u64, block: &[u64]) -> u64 {
    block[block.len() - 1] - before - gap * block.len() as u64
}

/// The `l` of a block: with it, `count * (l + 1) + (excess >> l)` is smallest.
fn low_bits(excess: u64, count: usize) -> u32 {
    match excess / count as u64 {
        _ if excess == 0 => FLAT,
        0 => 0,
        mean => mean.ilog2().min(FLAT - 1),
    }
}
