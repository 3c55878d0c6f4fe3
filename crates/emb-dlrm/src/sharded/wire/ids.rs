//! How ids travel: [`IdWire`].

use crate::sharded::error::Result;
use emb_comm::{Collective, ids};

/// How ids and the lengths of bags travel to the owners of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdWire {
    /// 8 bytes each.
    #[default]
    Plain,
    /// In as few bits as they need ([`emb_comm::ids`]), exactly: fewer bytes for some time of the
    /// processor. Worth it where links are slow.
    Packed,
}

/// Lists on their way to peers in few bits, and memory for it.
#[derive(Debug, Default)]
pub(in crate::sharded) struct PackedLists {
    words: Vec<u64>,
    /// Where the words of the peer at hand begin.
    begun: usize,
    /// Words for each peer.
    pub(in crate::sharded) counts: Vec<usize>,
    /// Words from each peer.
    pub(in crate::sharded) told: Vec<usize>,
    received: Vec<u64>,
    /// Words that were unpacked.
    read: usize,
    list: Vec<u64>,
    scratch: ids::Scratch,
}

impl PackedLists {
    /// Nothing is on its way.
    pub(in crate::sharded) fn clear(&mut self) {
        self.words.clear();
        self.counts.clear();
        (self.begun, self.read) = (0, 0);
    }

    /// A list for the peer at hand; `sorted` where it usually ascends: rows that are asked for once
    /// do, unless the shard has them in another order than the tier.
    pub(in crate::sharded) fn push(&mut self, list: &[i64], sorted: bool) -> Result<()> {
        self.list.clear();
        self.list.extend(list.iter().map(|&id| id as u64));
        if sorted && self.list.is_sorted() {
            ids::pack_sorted(&self.list, &mut self.words)?;
        } else {
            ids::pack(&self.list, &mut self.scratch, &mut self.words)?;
        }
        Ok(())
    }

    /// What follows is for the next peer.
    pub(in crate::sharded) fn next_peer(&mut self) {
        self.counts.push(self.words.len() - self.begun);
        self.begun = self.words.len();
    }

    /// Sends everything; `told` says how many words come from each peer.
    pub(in crate::sharded) fn travel<C: Collective>(&mut self, set: &mut C) -> Result<()> {
        self.received.resize(self.told.iter().sum(), 0);
        Ok(set.all_to_all_v::<u64>(&self.words, &self.counts, &mut self.received, &self.told)?)
    }

    /// Appends the next list that came, of `len` ids, to `out`.
    pub(in crate::sharded) fn pop(&mut self, len: usize, out: &mut Vec<i64>) -> Result<()> {
        self.list.clear();
        self.list.resize(len, 0);
        let words = &self.received[self.read..];
        self.read += ids::unpack(words, &mut self.scratch, &mut self.list)?;
        out.extend(self.list.iter().map(|&id| id as i64));
        Ok(())
    }
}
