//! The sets of ranks that an exchange runs among: [`Links`].

use super::error::Result;
use super::layout::Members;
use super::no_set;
use super::wire::{Carrier, IdWire};
use emb_comm::{Collective, Meters};
use emb_shard::{NodeSplit, Plan, Rank, TableId};

/// This rank's ends of the sets of an exchange.
#[derive(Debug)]
pub(super) struct Links<C> {
    /// How ids travel.
    pub(super) ids: IdWire,
    /// How rows and gradients travel.
    pub(super) carrier: Carrier,
    /// The group that this rank works in; `None` for groups of one.
    pub(super) group: Option<C>,
    /// The ranks of the group on this node, where the exchange works by nodes.
    node: Option<C>,
    /// The ranks of the group with this rank's index on their nodes, where it does.
    rail: Option<C>,
}

impl<C: Collective> Links<C> {
    /// Divides the world; every rank sees the same plan, hence takes part in the same divisions.
    pub(super) fn new(world: &mut C, plan: &Plan, members: &Members, rank: Rank) -> Result<Self> {
        let mesh = members.mesh;
        let (group, position) = (mesh.group_of(rank)?, mesh.replica_set_of(rank)?);
        let mut split = |color: u32, key: u32| -> Result<C> {
            world.split(Some(color as usize), key as usize)?.ok_or_else(no_set)
        };
        let (mut node, mut rail) = (None, None);
        if let Some(part) = part_of(plan, members)? {
            let (part, position) = (part as u32, position.get());
            let nodes = mesh.group_ranks() / part;
            let color = group.get() * nodes + position / part;
            node = Some(split(color, position % part)?);
            let color = group.get() * part + position % part;
            rail = Some(split(color, position / part)?);
        }
        let many = mesh.group_ranks() > 1;
        let group = if many { Some(split(group.get(), position.get())?) } else { None };
        let name = |&(table, _): &(TableId, usize)| {
            plan.placed().as_slice()[table.get() as usize].table.clone()
        };
        let carrier = Carrier::new(members.tiers.iter().map(name).collect());
        Ok(Self { ids: IdWire::default(), carrier, group, node, rail })
    }

    /// The ranks of the group on this node, those of its rail, and what carries rows among them.
    pub(super) fn by_node(&mut self) -> Result<(&mut C, &mut C, &mut Carrier)> {
        let sets = self.node.as_mut().zip(self.rail.as_mut());
        let (node, rail) = sets.ok_or_else(no_set)?;
        Ok((node, rail, &mut self.carrier))
    }

    /// What they cost this rank so far.
    pub(super) fn meters(&self) -> impl Iterator<Item = Meters> {
        [&self.group, &self.node, &self.rail].into_iter().flatten().map(Collective::meters)
    }
}

/// Ranks of a group on a node, where the exchange works by nodes.
pub(super) fn part_of(plan: &Plan, members: &Members) -> Result<Option<usize>> {
    if !members.exchange.by_node() {
        return Ok(None);
    }
    let split = NodeSplit::new(members.mesh, plan.node_ranks())?;
    Ok(split.map(|split| split.part_ranks() as usize))
}
