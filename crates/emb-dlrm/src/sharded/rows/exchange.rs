//! Lists of rows to their owners.

use super::RowsWay;
use super::wanted::Wanted;
use crate::sharded::error::Result;
use crate::sharded::links::Links;
use crate::sharded::trip::{Arrived, Leg};
use emb_comm::Collective;
use emb_kernels::Backend;

/// Memory of an exchange of lists.
#[derive(Debug, Default)]
pub(super) struct ExchangeMemory {
    /// For each peer the lengths of its lists, then the lists.
    pub(super) words: Vec<i64>,
    /// Words for each peer.
    pub(super) counts: Vec<usize>,
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
        let memory = &mut self.exchange;
        if let Some(relay) = &self.relay {
            memory.travel(links.by_node()?.0)?;
            relay.unite(memory, &mut wanted.relayed);
            memory.travel(links.by_node()?.1)?;
        } else if let Some(group) = &mut links.group {
            memory.travel(group)?;
        } else {
            std::mem::swap(&mut memory.words, &mut memory.received);
            memory.told.clone_from(&memory.counts);
        }
        memory.arrange(self.widths.len(), arrived);
        Ok(())
    }

    fn pack(&mut self, wanted: &Wanted) {
        let Self { wire, peers, exchange: ExchangeMemory { words, counts, .. }, .. } = self;
        words.clear();
        counts.clear();
        for peer in peers {
            let begin = words.len();
            let lists = wire[peer.clone()].iter().map(|&shard| &wanted.lists[shard]);
            words.extend(lists.clone().map(|list| list.len() as i64));
            lists.for_each(|list| words.extend_from_slice(list));
            counts.push(words.len() - begin);
        }
    }
}

impl ExchangeMemory {
    /// Sends the words to the peers of a set and receives theirs.
    fn travel<C: Collective>(&mut self, set: &mut C) -> Result<()> {
        self.told.clear();
        self.told.resize(self.counts.len(), 0);
        set.exchange_counts(&self.counts, &mut self.told)?;
        self.received.resize(self.told.iter().sum(), 0);
        Ok(set.all_to_all_v::<i64>(&self.words, &self.counts, &mut self.received, &self.told)?)
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
