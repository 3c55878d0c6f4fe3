//! Division of the ranks of an [`Mpi`] into sets of their own, told apart by tags.
//!
//! Two sets that share a pair of ranks must have different tags. Ranks propose the lowest tag that
//! none of their sets has had; the members of a new set take the highest proposal, and tell each
//! other whether it is free on all of them, because duplicates may divide at the same time.

use super::control::lock;
use super::wire::Wire;
use super::{Mpi, Op, Terms, calls};
use crate::arguments::{checked, hash};
use crate::{Collective, Operation, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tags of one process.
pub(super) struct Tags {
    /// Of the sets that live.
    open: BTreeSet<u64>,
    /// Above all that were ever open.
    next: u64,
    most: u64,
}

impl Tags {
    /// None but 0, that of the world.
    pub(super) fn up_to(most: u64) -> Self {
        Self { open: BTreeSet::from([0]), next: 1, most: most.min(i32::MAX as u64) }
    }

    /// A tag that no other thread of this process proposes.
    fn propose(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Takes a tag, if it is free.
    fn claim(&mut self, tag: u64) -> bool {
        self.next = self.next.max(tag + 1);
        self.open.insert(tag)
    }

    /// Whether a set that lives has this tag.
    pub(super) fn has(&self, tag: u64) -> bool {
        self.open.contains(&tag)
    }

    pub(super) fn release(&mut self, tag: u64) {
        self.open.remove(&tag);
    }
}

impl Mpi {
    pub(super) fn split_by(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let own = [u64::from(color.is_some()), color.unwrap_or(0) as u64, key as u64];
        let mut op = self.begin(Terms::new(Operation::Split))?;
        let mut said = Vec::new();
        let tag = op.new_tag(own, color.is_some(), &mut said)?;
        op.end();
        let (Some(_), Some(tag)) = (color, tag) else { return Ok(None) };
        let mut ranks: Vec<usize> =
            (0..said.len()).filter(|&rank| said[rank][..2] == own[..2]).collect();
        ranks.sort_by_key(|&rank| (said[rank][2], rank));
        Ok(Some(self.part(&ranks, tag)))
    }

    pub(super) fn divide(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let lists: Vec<usize> = groups.iter().map(|list| hash(list) as usize).collect();
        let terms = Terms::new(Operation::Subgroups).tag(hash(&lists));
        let (me, world) = (self.control.rank(), self.control.world());
        let own = groups.iter().find(|list| list.contains(&me));
        let mut op = self.begin(terms)?;
        let impossible = checked(world, groups);
        if impossible.is_err() {
            // All have the same lists, so that all refuse them, once that is known.
            op.meet(&[], &[], [0; 4])?;
            op.end();
            return impossible.map(|()| None);
        }
        let tag = op.new_tag([0; 3], own.is_some(), &mut Vec::new())?;
        op.end();
        let (Some(ranks), Some(tag)) = (own, tag) else { return Ok(None) };
        Ok(Some(self.part(ranks, tag)))
    }

    pub(super) fn copy_of_all(&mut self) -> Result<Self> {
        let mut op = self.begin(Terms::new(Operation::Duplicate))?;
        let tag = op.new_tag([0; 3], true, &mut Vec::new())?;
        op.end();
        let tag = tag.expect("invariant: this rank is a member");
        Ok(self.with(self.control.remote_duplicate(), tag, tag))
    }

    fn part(&self, ranks: &[usize], tag: u64) -> Self {
        self.with(self.control.remote_part(ranks), tag, self.wire.copy)
    }

    fn with(&self, control: crate::Local, tag: u64, copy: u64) -> Self {
        let Wire { control: shared, spins, .. } = &self.wire;
        let wire = Wire::new(Arc::clone(shared), tag, copy, *spins);
        Self::new(control, wire, self.check, &self.hosts)
    }
}

impl Op<'_> {
    /// Ranks say `own` to each other, which is left in `said` by rank, and find a tag that is new
    /// to all members of new sets; the sets of one division, which share no ranks, have the same.
    fn new_tag(
        &mut self,
        own: [u64; 3],
        is_member: bool,
        said: &mut Vec<[u64; 3]>,
    ) -> Result<Option<u64>> {
        let control = Arc::clone(&self.wire.control);
        let world = self.turn.world();
        loop {
            let proposed = if is_member { lock(&control.tags).propose() } else { 0 };
            self.meet(&[], &[], [own[0], own[1], own[2], proposed])?;
            let all = (0..world).map(|rank| self.more(rank));
            let tag = all.clone().map(|[.., proposed]| proposed).max().unwrap_or(0);
            said.clear();
            said.extend(all.map(|[a, b, c, _]| [a, b, c]));
            let most = lock(&control.tags).most;
            if tag > most {
                let problem = format!("the library tells no more than {most} sets of ranks apart");
                return Err(self.turn.refuse(calls::failed("MPI_TAG_UB", problem)));
            }
            let free = !is_member || lock(&control.tags).claim(tag);
            self.meet(&[], &[], [u64::from(free), 0, 0, 0])?;
            if (0..world).all(|rank| self.more(rank)[0] == 1) {
                return Ok(is_member.then_some(tag));
            }
            if is_member && free {
                lock(&control.tags).release(tag);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;

    #[test]
    fn a_tag_is_given_once() {
        let mut tags = Tags::up_to(100);
        assert_eq!((tags.propose(), tags.propose()), (1, 2));
        assert!(tags.claim(7) && !tags.claim(7));
        assert_eq!(tags.propose(), 8, "above what others have proposed");
        tags.release(7);
        assert!(!tags.has(7));
        assert!(tags.has(0), "the world's");
    }
}
