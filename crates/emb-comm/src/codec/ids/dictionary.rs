//! Ids in any order with many duplicates: the distinct ones, and which of them each is.
//!
//! 32 bits say how many distinct ids there are; they follow in ascending order as the sorted code of
//! gap 1. Then, for every id, its place among them, in as many bits as the last place has.

use super::Scratch;
use super::bits::{Read, Reader, Writer, bits_of};
use super::sorted;

/// Bits of the field that counts the distinct ids.
const COUNT: u32 = 32;

/// Ids at the start of a list that show whether it has duplicates.
const SAMPLE: usize = 4096;

/// Finds the distinct ids of a list, unless there are so many that their code takes `limit` bits or
/// more, or none of the first [`SAMPLE`] is there twice; returns the bits of the code.
pub(super) fn build(ids: &[u64], limit: usize, scratch: &mut Scratch) -> Option<usize> {
    find_distinct(ids, limit, scratch)?;
    let Scratch { distinct, ranks, order, spare, .. } = scratch;
    order.clear();
    order.extend(distinct.iter().zip(0_u32..).map(|(&id, place)| (id, place)));
    sort(order, spare);
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

/// Distinct ids in the order of their first, and the place of every id among them.
fn find_distinct(ids: &[u64], limit: usize, scratch: &mut Scratch) -> Option<()> {
    u32::try_from(ids.len()).ok()?;
    // At most half full, so that searches are short.
    let slots = (2 * ids.len()).next_power_of_two();
    let shift = 64 - slots.ilog2();
    let Scratch { slots: table, distinct, places, .. } = scratch;
    table.clear();
    table.resize(slots, 0);
    distinct.clear();
    places.clear();
    for &id in ids {
        let mut slot = (mix(id) >> shift) as usize;
        let place = loop {
            match table[slot] {
                0 => {
                    let place = distinct.len() as u32;
                    distinct.push(id);
                    table[slot] = place + 1;
                    let count = distinct.len();
                    if count.is_power_of_two() {
                        // The places alone may be too many bits.
                        let too_many = ids.len() * place_bits(count) as usize >= limit;
                        if too_many || count == SAMPLE && places.len() + 1 == SAMPLE {
                            return None;
                        }
                    }
                    break place;
                }
                found if distinct[found as usize - 1] == id => break found - 1,
                _ => slot = (slot + 1) % slots,
            }
        };
        places.push(place);
    }
    Some(())
}

/// Sorts by id, from the lowest digit on; `spare` is memory.
fn sort(order: &mut Vec<(u64, u32)>, spare: &mut Vec<(u64, u32)>) {
    /// Bits of a digit: the counts of one stay in the first-level cache.
    const DIGIT: u32 = 11;
    let all = order.iter().fold((u64::MAX, 0), |(and, or), &(id, _)| (and & id, or | id));
    let width = bits_of(all.0 ^ all.1);
    if order.len() < 1 << DIGIT {
        return order.sort_unstable();
    }
    spare.clear();
    spare.resize(order.len(), (0, 0));
    for shift in (0..width).step_by(DIGIT as usize) {
        let digit = |id: u64| (id >> shift) as usize % (1 << DIGIT);
        let mut next = [0_u32; 1 << DIGIT];
        for &(id, _) in &*order {
            next[digit(id)] += 1;
        }
        let mut before = 0;
        for next in &mut next {
            before += std::mem::replace(next, before);
        }
        for &(id, place) in &*order {
            let to = &mut next[digit(id)];
            spare[*to as usize] = (id, place);
            *to += 1;
        }
        std::mem::swap(order, spare);
    }
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
