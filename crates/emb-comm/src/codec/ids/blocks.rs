//! Ids in any order: blocks with a base and a width each.
//!
//! First the smallest id of all as a number, then 7 bits `b`. The ids come in blocks of [`BLOCK`];
//! a block is
//!
//! - 7 bits `w`: how many the difference between its smallest and its largest id has;
//! - unless `w` is 64, its smallest id less that of all, in `b` bits;
//! - every id less the smallest of its block (with `w` of 64: less nothing), in `w` bits.
//!
//! A far id widens its own block alone, and a block of equal ids has no third part.

use super::bits::{LENGTH, Read, Reader, Writer, bits_of, number_bits};

/// Ids of a block.
const BLOCK: usize = 128;

/// What all blocks share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The smallest id of all.
    low: u64,
    /// Bits of the base of a block.
    base_width: u32,
    /// Bits of the whole.
    pub(super) bits: usize,
}

impl Frame {
    /// The frame of `ids`; `sorted` says that they are, which is faster.
    pub(super) fn new(ids: &[u64], sorted: bool) -> Self {
        let (mut low, mut highest, mut narrow, mut bits) = (u64::MAX, 0, 0, 0);
        for block in ids.chunks(BLOCK) {
            let (min, max) = extent(block, sorted);
            let width = bits_of(max - min);
            low = low.min(min);
            if width < 64 {
                highest = highest.max(min);
                narrow += 1;
            }
            bits += (LENGTH + width * block.len() as u32) as usize;
        }
        // All blocks may be wide: then nothing is above the lowest.
        let base_width = bits_of(highest.saturating_sub(low));
        bits += number_bits(low) + (LENGTH + base_width * narrow) as usize;
        Self { low, base_width, bits }
    }
}

/// Appends ids.
pub(super) fn pack(ids: &[u64], sorted: bool, frame: Frame, writer: &mut Writer<'_>) {
    writer.put_number(frame.low);
    writer.put(u64::from(frame.base_width), LENGTH);
    for block in ids.chunks(BLOCK) {
        let (min, max) = extent(block, sorted);
        let width = bits_of(max - min);
        writer.put(u64::from(width), LENGTH);
        let base = if width < 64 { min } else { 0 };
        if width < 64 {
            writer.put(min - frame.low, frame.base_width);
        }
        if width > 0 {
            for id in block {
                writer.put(id - base, width);
            }
        }
    }
}

/// Takes `out.len()` ids.
pub(super) fn unpack(reader: &mut Reader<'_>, out: &mut [u64]) -> Read<()> {
    let low = reader.take_number()?;
    let base_width = reader.take_width()?;
    for block in out.chunks_mut(BLOCK) {
        let width = reader.take_width()?;
        let base = if width < 64 { low.wrapping_add(reader.take(base_width)?) } else { 0 };
        reader.take_fields(width, block)?;
        for id in block {
            *id = id.wrapping_add(base);
        }
    }
    Ok(())
}

/// Smallest and largest id of a block.
fn extent(block: &[u64], sorted: bool) -> (u64, u64) {
    if sorted {
        return (block[0], block[block.len() - 1]);
    }
    block.iter().fold((u64::MAX, 0), |(min, max), &id| (id.min(min), id.max(max)))
}
