//! Lists of rows to their owners.

use super::RowsWay;
use super::wanted::Wanted;
use crate::sharded::error::Result;
use crate::sharded::links::Links;
use crate::sharded::trip::{Arrived, Leg};
use crate::sharded::wire::{IdWire, PackedLists};
use emb_comm::Collective;
use emb_kernels::Backend;

/// Memory of an exchange of lists.
#[derive(Debug, Default)]
pub(super) struct ExchangeMemory {
    /// For each peer the lengths of its lists, then the lists.
    pub(super) words: Vec<i64>,
    /// Words for each peer.
    pub(super) counts: Vec<usize>,
    /// Lists for each peer.
    pub(super) lists: Vec<usize>,
    packed: PackedLists,
    pub(super) told: Vec<usize>,
    pub(super) received: Vec<i64>,
}

impl<B: Backend> RowsWay<B> {
    /// Asks the owners for the rows that a batch needs.
    pub(in crate::sharded) fn exchange<C: Collective>(
        &mut self,
        links: &mut Links<C>,
        leg: &mut Leg,
    ) -> Result<()> {
        let Leg { wanted, arrived, .. } = leg;
        self.pack(wanted);
        let Self { exchange: memory, unique, widths, .. } = self;
        let (ids, sorted) = (links.ids, *unique);
        if let Some(relay) = &self.relay {
            let rail = relay.lists();
            memory.travel(links.by_node()?.0, ids, sorted, rail)?;
            relay.unite(memory, &mut wanted.relayed);
            memory.travel(links.by_node()?.1, ids, sorted, widths.len())?;
        } else if let Some(group) = &mut links.group {
            memory.travel(group, ids, sorted, widths.len())?;
        } else {
            std::mem::swap(&mut memory.words, &mut memory.received);
            memory.told.clone_from(&memory.counts);
        }
        memory.arrange(self.widths.len(), arrived);
        Ok(())
    }

    fn pack(&mut self, wanted: &Wanted) {
        let Self { wire, peers, exchange, .. } = self;
        let ExchangeMemory { words, counts, lists, .. } = exchange;
        words.clear();
        counts.clear();
        lists.clear();
        for peer in peers {
            let begin = words.len();
            let asked = wire[peer.clone()].iter().map(|&shard| &wanted.lists[shard]);
            words.extend(asked.clone().map(|list| list.len() as i64));
            asked.for_each(|list| words.extend_from_slice(list));
            lists.push(peer.len());
            counts.push(words.len() - begin);
        }
    }
}

impl ExchangeMemory {
    /// Sends the words to the peers of a set and receives theirs, `lists` lists from each.
    fn travel<C: Collective>(
        &mut self,
        set: &mut C,
        ids: IdWire,
        sorted: bool,
        lists: usize,
    ) -> Result<()> {
        let packed = ids == IdWire::Packed;
        if packed {
            self.pack(sorted)?;
        }
        let counts = if packed { &self.packed.counts } else { &self.counts };
        self.told.clear();
        self.told.resize(counts.len(), 0);
        set.exchange_counts(counts, &mut self.told)?;
        if packed {
            self.packed.told.clone_from(&self.told);
            self.packed.travel(set)?;
            return self.unpack(lists);
        }
        self.received.resize(self.told.iter().sum(), 0);
        Ok(set.all_to_all_v::<i64>(&self.words, &self.counts, &mut self.received, &self.told)?)
    }

    /// For every peer the lengths of its lists, then each of them.
    fn pack(&mut self, sorted: bool) -> Result<()> {
        let Self { words, counts, lists, packed, .. } = self;
        packed.clear();
        let mut rest = &words[..];
        for (&count, &lists) in counts.iter().zip(&*lists) {
            let (own, after) = rest.split_at(count);
            let (lengths, mut ids) = own.split_at(lists);
            packed.push(lengths, false)?;
            for &length in lengths {
                let (list, others) = ids.split_at(length as usize);
                packed.push(list, sorted)?;
                ids = others;
            }
            packed.next_peer();
            rest = after;
        }
        Ok(())
    }

    /// The words that would have come plainly.
    fn unpack(&mut self, lists: usize) -> Result<()> {
        let Self { told, received, packed, .. } = self;
        received.clear();
        for words in told {
            let begin = received.len();
            packed.pop(lists, received)?;
            for list in begin..begin + lists {
                packed.pop(received[list] as usize, received)?;
            }
            *words = received.len() - begin;
        }
        Ok(())
    }

    /// The lists of all that ask, `lists` of each, after each other.
    fn arrange(&self, lists: usize, arrived: &mut Arrived) {
        let Arrived { samples, offsets, ids, weighted, .. } = arrived;
        samples.clear();
        samples.push(1);
        *weighted = false;
        offsets.clear();
        offsets.push(0);
        ids.clear();
        let mut rest = &self.received[..];
        for &words in &self.told {
            let (own, after) = rest.split_at(words);
            let (lengths, rows) = own.split_at(lists);
            for &length in lengths {
                offsets.push(offsets[offsets.len() - 1] + length as u64);
            }
            ids.extend_from_slice(rows);
            rest = after;
        }
    }
}
