//! Division of the ranks of an [`Nccl`] into sets of their own.

use super::comm::Comm;
use super::header::Headers;
use super::link::{Link, until};
use super::{Nccl, Terms};
use crate::arguments::{checked, hash};
use crate::local::Turn;
use crate::{Collective, Error, Host, Local, Operation, Result};
use emb_cuda::Stream;

impl Nccl {
    pub(super) fn split_by(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = if self.headers.is_none() {
            self.control.split(color, key)?
        } else {
            let world = self.control.world();
            let own = [usize::from(color.is_some()), color.unwrap_or(0), key];
            let mut all = vec![0; 3 * world];
            self.counts(Operation::Split, &own.repeat(world), &mut all)?;
            let of = |rank: usize| (all[3 * rank] == 1).then_some(all[3 * rank + 1]);
            color.map(|color| {
                let members = (0..world).filter(|&rank| of(rank) == Some(color));
                let mut ranks: Vec<usize> = members.collect();
                ranks.sort_by_key(|&rank| (all[3 * rank + 2], rank));
                self.control.remote_part(&ranks)
            })
        };
        self.join(Operation::Split, part)
    }

    pub(super) fn divide(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = if self.headers.is_none() {
            self.control.subgroups(groups)?
        } else {
            let lists: Vec<usize> = groups.iter().map(|list| hash(list) as usize).collect();
            self.meet(Terms::new(Operation::Subgroups).tag(hash(&lists)))?;
            // All have the same lists, so that all refuse them or none.
            checked(self.control.world(), groups)?;
            let me = self.control.rank();
            let own = groups.iter().find(|list| list.contains(&me));
            own.map(|ranks| self.control.remote_part(ranks))
        };
        self.join(Operation::Subgroups, part)
    }

    pub(super) fn copy_of_all(&mut self) -> Result<Self> {
        let copy = if self.headers.is_none() {
            self.control.duplicate()?
        } else {
            self.meet(Terms::new(Operation::Duplicate))?;
            self.control.remote_duplicate()
        };
        let copy = self.join(Operation::Duplicate, Some(copy))?;
        copy.ok_or_else(|| Error::Space("NCCL made no duplicate".to_owned()))
    }

    /// Makes the communicator of `part`, which each rank calls with its own or with none.
    fn join(&mut self, operation: Operation, part: Option<Local>) -> Result<Option<Self>> {
        // The lowest member's number here tells the parts of one division apart.
        let lowest = |part: &Local| {
            let members = part.members().iter().filter_map(|&rank| self.control.rank_of(rank));
            members.min().unwrap_or(0)
        };
        let color = part.as_ref().map(lowest);
        if let Some(member) = &self.link.member {
            member.begins();
        }
        let (key, world) = part.as_ref().map_or((0, 0), |part| (part.rank(), part.world()));
        let (options, has_headers) = (self.options, self.headers.is_some());
        let Self { control, link, .. } = self;
        // They have met: this rank only watches, for failures of the others and the time.
        let turn = Turn::begin(control, Terms::new(operation))?;
        let timeout = options.base.timeout;
        let made = make(&turn, link, color, key, world);
        let made = made.map_err(|error| link.fail(&turn, error))?;
        let (Some(control), Some((comm, stream))) = (part, made) else { return Ok(None) };
        let lowest = color.unwrap_or(0);
        let member = link.member.as_ref().map(|member| member.part(&control, operation, lowest));
        let link = Link::new(comm, stream, timeout, member);
        let headers = has_headers.then(|| Headers::new(&link.stream, key, world)).transpose()?;
        Ok(Some(Self { control, link, headers, options }))
    }
}

fn make(
    turn: &Turn<'_, Host>,
    link: &Link,
    color: Option<usize>,
    key: usize,
    world: usize,
) -> Result<Option<(Comm, Stream)>> {
    let comm = link.comm()?;
    link.stream.device().bind()?;
    let mut new = comm.split(color, key, world)?;
    until(|| Ok(comm.is_ready()? && new.is_ready()?), || link.watch(turn))?;
    if !new.settle() {
        return Ok(None);
    }
    let stream = link.stream.device().stream()?;
    Ok(Some((new, stream)))
}
