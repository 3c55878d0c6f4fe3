//! Bags to their owners.

use super::BagsWay;
use crate::sharded::error::Result;
use crate::sharded::links::Links;
use crate::sharded::trip::{Arrived, Bags, Parcels};
use crate::sharded::wire::{IdWire, PackedLists};
use emb_comm::Collective;
use emb_kernels::Backend;

/// Memory of an exchange of ids.
#[derive(Debug, Default)]
pub(super) struct ExchangeMemory {
    /// `[ranks of the group, COUNTS]`, sent and received.
    send: Vec<usize>,
    told: Vec<usize>,
    /// By rank of the group.
    send_ids: Vec<usize>,
    ids: Vec<usize>,
    sizes: Vec<usize>,
    cursors: Vec<Cursor>,
    words: Vec<i64>,
    weights: Vec<f32>,
    packed: PackedLists,
    /// Ids of all portions of a rank.
    portion_ids: Vec<i64>,
}

/// Where the next lengths, ids and weights of a rank are.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    lengths: usize,
    ids: usize,
    weights: usize,
}

/// What ranks tell each other first: samples, ids, packed words twice and one more if there are
/// per-sample weights.
const COUNTS: usize = 3;

impl<B: Backend> BagsWay<B> {
    /// Sends bags to their owners.
    pub(in crate::sharded) fn exchange<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        parcels: &mut Parcels,
        batch: usize,
        arrived: &mut Arrived,
    ) -> Result<()> {
        let portions = self.owned[self.position].portions.len();
        let Some(group) = &mut links.group else {
            arrived.keep(parcels, batch);
            return Ok(());
        };
        parcels.pack();
        let packed = links.ids == IdWire::Packed;
        let memory = &mut self.exchange;
        memory.packed.clear();
        if packed {
            memory.pack(&parcels.bags, batch)?;
        }
        memory.send.clear();
        memory.send_ids.clear();
        for (peer, bags) in parcels.bags.iter().enumerate() {
            let words = memory.packed.counts.get(peer).copied().unwrap_or(0);
            let ids = bags.ids.len();
            memory.send.extend([batch, ids, 2 * words + usize::from(parcels.weighted)]);
            memory.send_ids.push(ids);
        }
        memory.told.resize(memory.send.len(), 0);
        group.exchange_counts(&memory.send, &mut memory.told)?;
        arrived.samples.clear();
        arrived.weighted = false;
        memory.ids.clear();
        memory.sizes.clear();
        memory.packed.told.clear();
        for told in memory.told.chunks_exact(COUNTS) {
            arrived.samples.push(told[0]);
            memory.ids.push(told[1]);
            memory.sizes.push(told[0] * portions + told[1]);
            memory.packed.told.push(told[2] / 2);
            arrived.weighted |= told[2] % 2 > 0;
        }
        if packed {
            memory.packed.travel(group)?;
            memory.unpack(portions, &arrived.samples)?;
        } else {
            memory.words.resize(memory.sizes.iter().sum(), 0);
            let (words, counts) = (&parcels.words, &parcels.counts);
            group.all_to_all_v::<i64>(words, counts, &mut memory.words, &memory.sizes)?;
        }
        if arrived.weighted {
            if !parcels.weighted {
                // A rank without weights, for want of samples perhaps, has weights of 1.
                parcels.weights.resize(memory.send_ids.iter().sum(), 1.0);
            }
            memory.weights.resize(memory.ids.iter().sum(), 0.0);
            let (send, counts) = (&parcels.weights, &memory.send_ids);
            group.all_to_all_v::<f32>(send, counts, &mut memory.weights, &memory.ids)?;
        }
        memory.arrange(portions, arrived);
        Ok(())
    }
}

impl Arrived {
    /// The bags of a group of one rank stay where they are.
    fn keep(&mut self, parcels: &mut Parcels, batch: usize) {
        self.samples.clear();
        self.samples.push(batch);
        self.weighted = parcels.weighted;
        self.offsets.clear();
        self.offsets.push(0);
        let [bags] = &mut parcels.bags[..] else { return };
        extend_offsets(&mut self.offsets, &bags.lengths);
        std::mem::swap(&mut self.ids, &mut bags.ids);
        std::mem::swap(&mut self.weights, &mut bags.weights);
    }
}

impl ExchangeMemory {
    /// For every owner, portion by portion: the lengths of bags, then their ids.
    fn pack(&mut self, bags: &[Bags], batch: usize) -> Result<()> {
        for bags in bags {
            let mut rest = &bags.ids[..];
            for lengths in bags.lengths.chunks(batch.max(1)) {
                let (ids, after) = rest.split_at(lengths.iter().sum::<i64>() as usize);
                self.packed.push(lengths, false)?;
                self.packed.push(ids, false)?;
                rest = after;
            }
            self.packed.next_peer();
        }
        Ok(())
    }

    /// The words that would have come plainly: for every rank all lengths, then all ids.
    fn unpack(&mut self, portions: usize, samples: &[usize]) -> Result<()> {
        let Self { words, portion_ids, packed, .. } = self;
        words.clear();
        for &samples in samples {
            portion_ids.clear();
            for _ in 0..portions {
                let begin = words.len();
                packed.pop(samples, words)?;
                let ids = words[begin..].iter().sum::<i64>() as usize;
                packed.pop(ids, portion_ids)?;
            }
            words.extend_from_slice(portion_ids);
        }
        Ok(())
    }

    /// From one parcel a rank to one batch: by portion, then rank, then sample.
    fn arrange(&mut self, portions: usize, arrived: &mut Arrived) {
        self.cursors.clear();
        let (mut word, mut id) = (0, 0);
        for (&samples, &ids) in arrived.samples.iter().zip(&self.ids) {
            self.cursors.push(Cursor {
                lengths: word,
                ids: word + samples * portions,
                weights: id,
            });
            word += samples * portions + ids;
            id += ids;
        }
        let Arrived { samples, offsets, ids, weighted, weights } = arrived;
        offsets.clear();
        offsets.push(0);
        ids.clear();
        weights.clear();
        for _ in 0..portions {
            for (cursor, &samples) in self.cursors.iter_mut().zip(&*samples) {
                let lengths = &self.words[cursor.lengths..cursor.lengths + samples];
                let n = extend_offsets(offsets, lengths);
                ids.extend_from_slice(&self.words[cursor.ids..cursor.ids + n]);
                if *weighted {
                    weights.extend_from_slice(&self.weights[cursor.weights..cursor.weights + n]);
                }
                cursor.lengths += samples;
                cursor.ids += n;
                cursor.weights += n;
            }
        }
    }
}

/// Appends the ends of bags to offsets; returns how many ids they have.
fn extend_offsets(offsets: &mut Vec<u64>, lengths: &[i64]) -> usize {
    let begin = offsets[offsets.len() - 1];
    let mut end = begin;
    offsets.extend(lengths.iter().map(|&length| {
        end += length as u64;
        end
    }));
    (end - begin) as usize
}
