//! Tables over nodes in turn, their rows over the ranks of the node: [`TableRowWise`].

use super::given::{Assigned, Given};
use crate::build::Loads;
use crate::{
    Bytes, Error, Exchange, NodeSplit, Path, Per, Placement, Plan, Planner, Result, RowCut, Task,
};

/// The baseline of EMBark (`RecSys` 2024), as HugeCTR v25.03 has it in
/// `benchmarks/embedding_collection/hugectr/sharding/generate_plan.py`.
///
/// Table `i` goes to node `i mod N`, its rows round robin over the ranks of the node; a table larger
/// than the memory of a node is cut over all ranks instead. Partial sums are added up inside nodes
/// before they leave them; ids of sequence features are de-duplicated by rank.
///
/// The original does not look whether a node is full. Here a table goes to the next node with room.
/// A node is the part of a group on one machine; where machines differ it has
/// [`Task::node_ranks`] ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableRowWise;

const CUT: RowCut = RowCut::Modulo;

impl Planner for TableRowWise {
    fn name(&self) -> &'static str {
        "table-row-wise"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let given = Given::new(task)?;
        let Some(split) = given.nodes()? else {
            let (nodes, group) = (task.node_ranks(), given.mesh.group_ranks());
            let what =
                format!("table-row-wise: nodes of {nodes} ranks cut groups of {group} unevenly");
            return Err(Error::Constraint { what });
        };
        let mut placing = Placing { given: &given, split, loads: given.loads() };
        let mut assigned: Vec<Option<Assigned>> = Vec::new();
        for number in 0..given.tables().len() {
            assigned.push(placing.fixed(number)?);
        }
        for (number, assigned) in assigned.iter_mut().enumerate() {
            if assigned.is_none() {
                *assigned = Some(placing.in_turn(number)?);
            }
        }
        let assigned: Vec<Assigned> = assigned.into_iter().flatten().collect();
        given.plan(&assigned, Exchange::Unique { per: Per::Rank })
    }
}

struct Placing<'a> {
    given: &'a Given<'a>,
    split: NodeSplit,
    loads: Loads,
}

impl Placing<'_> {
    /// A table that has no choice of a node: pinned, or larger than any.
    fn fixed(&mut self, number: usize) -> Result<Option<Assigned>> {
        let table = &self.given.tables()[number];
        if let Some(position) = self.given.pinned(number) {
            self.given.put_whole(number, position, 0.0, &mut self.loads)?;
            return Ok(Some(Assigned::whole(table.dim(), position)));
        }
        let width = self.split.part_ranks();
        let node = u128::from(self.loads.budget().get()) * u128::from(width);
        if u128::from(self.given.bytes(number).get()) <= node {
            return Ok(None);
        }
        let all = self.given.mesh.group_ranks();
        let (needs, has) = (self.part(number, all), self.room(0, all));
        if needs > has {
            let placement = Placement::RowWise { cut: CUT };
            return Err(self.given.no_room(number, placement, needs, has));
        }
        Ok(Some(self.put(number, 0, all)))
    }

    /// A table on the first node with room, from its own on.
    fn in_turn(&mut self, number: usize) -> Result<Assigned> {
        let (nodes, width) = (self.split.parts(), self.split.part_ranks());
        let needs = self.part(number, width);
        let own = (number % nodes as usize) as u32;
        let mut most = Bytes::default();
        for step in 0..nodes {
            let first = (own + step) % nodes * width;
            let has = self.room(first, width);
            if needs <= has {
                return Ok(self.put(number, first, width));
            }
            most = most.max(has);
        }
        let placement = Placement::TableRowWise { cut: CUT, node: None };
        Err(self.given.no_room(number, placement, needs, most))
    }

    /// Bytes of the largest of `ranks` row parts.
    fn part(&self, number: usize, ranks: u32) -> Bytes {
        let table = &self.given.tables()[number];
        table.part_bytes(table.rows().div_ceil(u64::from(ranks)), table.dim()).total()
    }

    /// Bytes left on the fullest of `width` positions from `first`.
    fn room(&self, first: u32, width: u32) -> Bytes {
        let rooms = (first..first + width).map(|at| self.loads.room(self.given.mesh, at));
        rooms.min().unwrap_or_default()
    }

    fn put(&mut self, number: usize, first: u32, width: u32) -> Assigned {
        let (table, bytes) = (&self.given.tables()[number], self.part(number, width));
        for position in first..first + width {
            self.loads.add(self.given.mesh, position, 0.0, bytes);
        }
        let blocks = vec![(table.dim(), first)];
        Assigned::Blocks { cut: CUT, width, blocks, over: Path::Hierarchical }
    }
}
