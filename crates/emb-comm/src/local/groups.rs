//! Division of the ranks of a [`Local`] into sets of their own.

use super::Local;
use super::terms::Terms;
use crate::arguments::{checked, hash};
use crate::{Operation, Result, Space};

impl<S: Space> Local<S> {
    pub(super) fn split_by(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let world = self.group.members.len();
        let own = [usize::from(color.is_some()), color.unwrap_or(0), key];
        let mut all = vec![0; 3 * world];
        self.counts(Operation::Split, &own.repeat(world), &mut all)?;
        let Some(color) = color else { return Ok(None) };
        let of = |rank: usize| (all[3 * rank] == 1).then_some(all[3 * rank + 1]);
        let mut ranks: Vec<usize> = (0..world).filter(|&rank| of(rank) == Some(color)).collect();
        ranks.sort_by_key(|&rank| (all[3 * rank + 2], rank));
        // The lowest member's number tells the sets of one division apart.
        let part = ranks.iter().min().copied().unwrap_or(0);
        Ok(Some(self.part(&ranks, part)))
    }

    pub(super) fn divide(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let lists: Vec<usize> = groups.iter().map(|list| hash(list) as usize).collect();
        self.meet(Terms::new(Operation::Subgroups).tag(hash(&lists)))?;
        // All have the same lists, so that all refuse them or none.
        checked(self.group.members.len(), groups)?;
        let own = groups.iter().position(|list| list.contains(&self.position));
        Ok(own.map(|part| self.part(groups[part], part)))
    }

    pub(super) fn copy_of_all(&mut self) -> Result<Self> {
        self.meet(Terms::new(Operation::Duplicate))?;
        let members = self.group.members.to_vec();
        let (world, group) = self.world.duplicate((self.group.id, self.round, 0), members);
        Ok(Self::new(&self.space, &world, group, self.position))
    }

    /// This rank's end of a new set of `ranks` of this one.
    fn part(&self, ranks: &[usize], part: usize) -> Self {
        let own = ranks.iter().position(|&rank| rank == self.position);
        let position = own.expect("invariant: a rank joins the sets that list it");
        let members = ranks.iter().map(|&rank| self.group.members[rank]).collect();
        let group = self.world.join((self.group.id, self.round, part), members);
        Self::new(&self.space, &self.world, group, position)
    }
}
