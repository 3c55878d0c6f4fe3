//! Ids in any order with many duplicates: the distinct ones, and which of them each is.
//!
//! 32 bits say how many distinct ids there are; they follow in ascending order as the sorted code of
//! gap 1. Then, for every id, its place among them, in as many bits as the last place has.

use super::Scratch;
use super::bits::{Read, Reader, Writer, bits_of};
use super::sorted;

/// Bits of the field that counts the distinct ids.
const COUNT: u32 = 32;

/// Finds the distinct ids of a list, unless there are so many that their code takes `limit` bits or
/// more; returns the bits of the code.
pub(super) fn build(ids: &[u64], limit: usize, scratch: &mut Scratch) -> Option<usize> {
    let slots = ids.len().checked_mul(2)?.next_power_of_two();
    let shift = 64 - slots.ilog2();
    let Scratch { slots: table, distinct, places, ranks, order } = scratch;
    u32::try_from(ids.len()).ok()?;
    table.clear();
    table.resize(slots, 0);
    distinct.clear();
    places.clear();
    for &id in ids {
        let mut slot = (mix(id) >> shift) as usize;
        let place = loop {
            match table[slot] {
                0 => {
                    distinct.push(id);
                    table[slot] = distinct.len() as u32;
                    // Places alone would be too many bits.
                    if distinct.len().is_power_of_two()
                        && ids.len() * place_bits(distinct.len()) as usize >= limit
                    {
                        return None;
                    }
                    break distinct.len() as u32 - 1;
                }
                found if distinct[found as usize - 1] == id => break found - 1,
                _ => slot = (slot + 1) % slots,
            }
        };
        places.push(place);
    }
    order.clear();
    order.extend(distinct.iter().zip(0_u32..).map(|(&id, place)| (id, place)));
    order.sort_unstable();
    ranks.clear();
    ranks.resize(distinct.len(), 0);
    for (rank, (to, &(id, place))) in distinct.iter_mut().zip(&*order).enumerate() {
        *to = id;
        ranks[place as usize] = rank as u32;
    }
    let places = ids.len() * place_bits(distinct.len()) as usize;
    let bits = COUNT as usize + sorted::bits(distinct, 1) + places;
    (bits < limit).then_some(bits)
}

/// Appends the list that the dictionary was built of.
pub(super) fn pack(scratch: &Scratch, writer: &mut Writer<'_>) {
    let distinct = &scratch.distinct;
    writer.put(distinct.len() as u64, COUNT);
    sorted::pack(distinct, 1, writer);
    let width = place_bits(distinct.len());
    for &place in &scratch.places {
        writer.put(u64::from(scratch.ranks[place as usize]), width);
    }
}

/// Takes `out.len()` ids.
pub(super) fn unpack(
    reader: &mut Reader<'_>,
    distinct: &mut Vec<u64>,
    out: &mut [u64],
) -> Read<()> {
    let count = reader.take(COUNT)? as usize;
    if count == 0 || count > out.len() {
        return Err("more distinct ids than ids, or none");
    }
    distinct.clear();
    distinct.resize(count, 0);
    sorted::unpack(reader, 1, distinct)?;
    reader.take_fields(place_bits(count), out)?;
    for id in out {
        *id = *distinct.get(*id as usize).ok_or("a place behind the last distinct id")?;
    }
    Ok(())
}

/// Bits of a place among `count`.
fn place_bits(count: usize) -> u32 {
    bits_of(count as u64 - 1)
}

/// Spreads ids over the upper bits; from `MurmurHash3` (public domain).
fn mix(id: u64) -> u64 {
    let id = (id ^ id >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (id ^ id >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}
