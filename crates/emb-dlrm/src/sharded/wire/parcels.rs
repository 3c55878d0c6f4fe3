//! What rows a message is made of: [`Parcel`].

use emb_comm::Wire;

/// Rows of one width, next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sharded) struct Kind {
    pub(in crate::sharded) rows: usize,
    pub(in crate::sharded) dim: usize,
    /// Of which tier of the layout, the first where there are several.
    pub(in crate::sharded) tier: usize,
}

/// What goes to a peer, or comes from it: some kinds of rows, over and over.
#[derive(Clone, Copy, Debug)]
pub(in crate::sharded) struct Parcel<'a> {
    /// How often.
    pub(in crate::sharded) times: usize,
    /// As few kinds as there are widths: they are coded together.
    pub(in crate::sharded) kinds: &'a [Kind],
    /// The same by tier, to say what was wrong.
    pub(in crate::sharded) by_tier: &'a [Kind],
}

/// The kinds of rows of every peer, listed anew for every message.
#[derive(Debug, Default)]
pub(in crate::sharded) struct Kinds {
    kinds: Vec<Kind>,
    /// By peer, where its kinds end.
    ends: Vec<usize>,
}

/// Neighbours of one width as one kind.
pub(in crate::sharded) fn merged(kinds: &[Kind]) -> Vec<Kind> {
    let mut all: Vec<Kind> = Vec::new();
    for kind in kinds {
        match all.last_mut() {
            Some(last) if last.dim == kind.dim => last.rows += kind.rows,
            _ => all.push(*kind),
        }
    }
    all
}

impl Kinds {
    pub(in crate::sharded) fn clear(&mut self) {
        self.kinds.clear();
        self.ends.clear();
    }

    /// Rows of the peer at hand.
    pub(in crate::sharded) fn push(&mut self, kind: Kind) {
        if kind.rows > 0 {
            self.kinds.push(kind);
        }
    }

    /// What follows is of the next peer.
    pub(in crate::sharded) fn next_peer(&mut self) {
        self.ends.push(self.kinds.len());
    }

    /// One parcel a peer.
    pub(in crate::sharded) fn parcels(&self) -> impl Iterator<Item = Parcel<'_>> + Clone {
        let mut begin = 0;
        self.ends.iter().map(move |&end| {
            let kinds = &self.kinds[begin..end];
            begin = end;
            Parcel { times: 1, kinds, by_tier: kinds }
        })
    }
}

impl Parcel<'_> {
    /// Bytes in a format.
    pub(in crate::sharded) fn bytes(&self, wire: Wire) -> emb_comm::Result<usize> {
        let mut bytes = 0;
        for kind in self.kinds {
            bytes += wire.bytes(kind.rows, kind.dim)?;
        }
        Ok(self.times * bytes)
    }

    /// Tells `each` the rows and columns of pieces that can be coded at once, until one fails.
    pub(in crate::sharded) fn pieces(
        &self,
        mut each: impl FnMut(usize, usize) -> emb_comm::Result<()>,
    ) -> emb_comm::Result<()> {
        if let [kind] = self.kinds {
            return each(self.times * kind.rows, kind.dim);
        }
        for _ in 0..self.times {
            for kind in self.kinds {
                each(kind.rows, kind.dim)?;
            }
        }
        Ok(())
    }

    /// Columns of the row of the element at `at`.
    pub(in crate::sharded) fn dim_at(&self, at: usize) -> usize {
        Self::kind_at(self.kinds, at).map_or(1, |kind| kind.dim)
    }

    /// The tier of the element at `at`.
    pub(in crate::sharded) fn tier_at(&self, at: usize) -> Option<usize> {
        Self::kind_at(self.by_tier, at).map(|kind| kind.tier)
    }

    fn kind_at(kinds: &[Kind], at: usize) -> Option<&Kind> {
        let whole: usize = kinds.iter().map(|kind| kind.rows * kind.dim).sum();
        let (at, mut end) = (at % whole.max(1), 0);
        kinds.iter().find(|kind| {
            end += kind.rows * kind.dim;
            at < end
        })
    }
}
