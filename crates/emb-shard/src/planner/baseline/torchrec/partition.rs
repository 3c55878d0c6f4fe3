//! Shards onto positions: `GreedyPerfPartitioner` of
//! `torchrec/distributed/planner/partitioners.py` at commit 08a6dba.
//!
//! Shards that all positions have go first, then tables by descending bytes, each shard onto the
//! position (or node) with fewest seconds so far that has room. Positions of equal seconds go by
//! their number in the node, then by number.
//!
//! The original keeps a heap of positions and sorts nodes for every table; here nodes are kept in
//! order, so that a table takes `O(log nodes)`.

use super::options::{Choice, Way};
use std::collections::BTreeSet;

/// A table that found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) number: usize,
    pub(super) needs: u64,
    pub(super) has: u64,
}

/// Where a node stands: its seconds and number, and those of its position of least seconds.
#[derive(Clone, Copy)]
struct Keys {
    node: (u64, usize),
    least: (u64, usize, usize),
}

/// Positions with what was placed on them; used again for every proposal.
pub(super) struct Partition {
    budget: u64,
    node_ranks: usize,
    /// Position that a table must have.
    pinned: Vec<Option<u32>>,
    seconds: Vec<f64>,
    room: Vec<u64>,
    /// Node of least seconds first.
    nodes: BTreeSet<(u64, usize)>,
    /// Of every node its position of least seconds, with its number in the node.
    least: BTreeSet<(u64, usize, usize)>,
    /// What `nodes` and `least` say of each node.
    keys: Vec<Keys>,
    /// Tables by descending bytes.
    order: Vec<(u128, usize)>,
    /// First position of every block of every table.
    placed: Vec<Vec<u32>>,
}

impl Partition {
    /// `positions` positions in nodes of `node_ranks`.
    pub(super) fn new(
        positions: u32,
        node_ranks: u32,
        budget: u64,
        pinned: Vec<Option<u32>>,
    ) -> Self {
        Self {
            budget,
            node_ranks: node_ranks as usize,
            seconds: vec![0.0; positions as usize],
            room: vec![0; positions as usize],
            nodes: BTreeSet::new(),
            least: BTreeSet::new(),
            keys: Vec::new(),
            order: Vec::new(),
            placed: vec![Vec::new(); pinned.len()],
            pinned,
        }
    }

    /// First position of every block of every table, after a proposal that fits.
    pub(super) fn placed(&self) -> &[Vec<u32>] {
        &self.placed
    }

    /// Places every table by its choice; the most seconds of a position.
    ///
    /// # Errors
    /// The first table without room.
    pub(super) fn place(&mut self, proposal: &[Choice]) -> Result<f64, Short> {
        self.place_uniform(proposal)?;
        for (number, &choice) in proposal.iter().enumerate() {
            if let Some(position) = self.pinned[number] {
                self.put(number, choice, position as usize)
                    .map_err(|has| short(number, choice, has))?;
            }
        }
        self.order.clear();
        let open = |&(number, choice): &(usize, &Choice)| {
            !choice.way.is_uniform() && self.pinned[number].is_none()
        };
        let open = proposal.iter().enumerate().filter(open);
        self.order.extend(open.map(|(number, choice)| (choice.total_bytes(), number)));
        self.order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.sort_nodes();
        for at in 0..self.order.len() {
            let number = self.order[at].1;
            let choice = proposal[number];
            self.placed[number].clear();
            let found = match choice.way {
                Way::TableRowWise => self.on_node(number, choice),
                Way::TableColumnWise => self.in_node(number, choice),
                Way::Grid => self.on_nodes(number, choice),
                _ => (0..choice.blocks).try_for_each(|_| self.on_position(number, choice)),
            };
            found.map_err(|has| short(number, choice, has))?;
        }
        Ok(self.seconds.iter().copied().fold(0.0, f64::max))
    }

    /// Shards that every position has.
    fn place_uniform(&mut self, proposal: &[Choice]) -> Result<(), Short> {
        let (mut seconds, mut room) = (0.0, self.budget);
        for (number, choice) in proposal.iter().enumerate() {
            if choice.way.is_uniform() {
                self.placed[number].clear();
                self.placed[number].push(0);
                room = room.checked_sub(choice.bytes).ok_or(short(number, *choice, room))?;
                seconds += choice.seconds;
            }
        }
        self.seconds.fill(seconds);
        self.room.fill(room);
        Ok(())
    }

    /// A whole table where it must be.
    fn put(&mut self, number: usize, choice: Choice, position: usize) -> Result<(), u64> {
        let room = self.room[position];
        self.room[position] = room.checked_sub(choice.bytes).ok_or(room)?;
        self.seconds[position] += choice.seconds;
        self.placed[number].clear();
        self.placed[number].push(position as u32);
        Ok(())
    }

    /// One block on the position of least seconds with room; else the most room there is.
    fn on_position(&mut self, number: usize, choice: Choice) -> Result<(), u64> {
        let first = self.least.first().map(|&(.., position)| position);
        let fits = |&position: &usize| self.room[position] >= choice.bytes;
        let position = first.filter(fits).or_else(|| {
            let fitting = (0..self.room.len()).filter(fits);
            fitting.min_by_key(|&position| self.key(position))
        });
        let Some(position) = position else {
            return Err(self.room.iter().copied().max().unwrap_or(0));
        };
        self.take(position, choice);
        self.placed[number].push(position as u32);
        self.sort_node(position / self.node_ranks);
        Ok(())
    }

    /// Rows over the node of least seconds with room on every position; else the most room.
    fn on_node(&mut self, number: usize, choice: Choice) -> Result<(), u64> {
        let found = self.nodes.iter().find(|&&(_, node)| self.room_of(node) >= choice.bytes);
        let Some(&(_, node)) = found else { return Err(self.most_room()) };
        self.put_on_node(number, choice, node);
        Ok(())
    }

    /// All blocks on positions of the node of least seconds that has room for them; else the most
    /// room that a block found too small.
    fn in_node(&mut self, number: usize, choice: Choice) -> Result<(), u64> {
        let nodes: Vec<usize> = self.nodes.iter().map(|&(_, node)| node).collect();
        let mut most = 0;
        for node in nodes {
            let positions = self.positions(node);
            let before = (self.seconds[positions.clone()].to_vec(), self.room[positions].to_vec());
            let found = (0..choice.blocks).try_for_each(|_| self.in_this(node, number, choice));
            let Err(has) = found else {
                self.sort_node(node);
                return Ok(());
            };
            most = most.max(has);
            let positions = self.positions(node);
            self.seconds[positions.clone()].copy_from_slice(&before.0);
            self.room[positions].copy_from_slice(&before.1);
            self.placed[number].clear();
        }
        Err(most)
    }

    /// One block on a position of one node; else the most room there.
    fn in_this(&mut self, node: usize, number: usize, choice: Choice) -> Result<(), u64> {
        let fitting = self.positions(node).filter(|&position| self.room[position] >= choice.bytes);
        let Some(position) = fitting.min_by_key(|&position| self.key(position)) else {
            return Err(self.room[self.positions(node)].iter().copied().max().unwrap_or(0));
        };
        self.take(position, choice);
        self.placed[number].push(position as u32);
        Ok(())
    }

    /// Blocks on nodes that follow each other by seconds, starting with the least; the next start
    /// where one has no room. More blocks than nodes start over.
    fn on_nodes(&mut self, number: usize, choice: Choice) -> Result<(), u64> {
        let nodes: Vec<usize> = self.nodes.iter().map(|&(_, node)| node).collect();
        let blocks = choice.blocks as usize;
        let mut most = 0;
        for start in 0..=nodes.len().saturating_sub(blocks) {
            let chosen = (start..start + blocks).map(|at| nodes[at % nodes.len()]);
            let chosen: Vec<usize> = chosen.collect();
            let times = |node| chosen.iter().filter(|&&other| other == node).count() as u64;
            let rooms = chosen.iter().map(|&node| self.room_of(node) / times(node));
            let has = rooms.min().unwrap_or(0);
            if has >= choice.bytes {
                for node in chosen {
                    self.put_on_node(number, choice, node);
                }
                return Ok(());
            }
            most = most.max(has);
        }
        Err(most)
    }

    fn put_on_node(&mut self, number: usize, choice: Choice, node: usize) {
        for position in self.positions(node) {
            self.take(position, choice);
        }
        self.placed[number].push((node * self.node_ranks) as u32);
        self.sort_node(node);
    }

    fn take(&mut self, position: usize, choice: Choice) {
        self.room[position] -= choice.bytes;
        self.seconds[position] += choice.seconds;
    }

    /// Room of the fullest position of a node.
    fn room_of(&self, node: usize) -> u64 {
        self.room[self.positions(node)].iter().copied().min().unwrap_or(0)
    }

    fn most_room(&self) -> u64 {
        let nodes = 0..self.room.len() / self.node_ranks;
        nodes.map(|node| self.room_of(node)).max().unwrap_or(0)
    }

    fn positions(&self, node: usize) -> std::ops::Range<usize> {
        node * self.node_ranks..(node + 1) * self.node_ranks
    }

    /// Bits of numbers that are not negative are in the order of the numbers.
    fn key(&self, position: usize) -> (u64, usize, usize) {
        (self.seconds[position].to_bits(), position % self.node_ranks, position)
    }

    fn keys_of(&self, node: usize) -> Keys {
        let positions = self.positions(node);
        let sum: f64 = self.seconds[positions.clone()].iter().sum();
        let least = positions.map(|position| self.key(position)).min();
        let least = least.expect("invariant: a node has a position");
        Keys { node: (sum.to_bits(), node), least }
    }

    fn sort_nodes(&mut self) {
        let nodes = 0..self.room.len() / self.node_ranks;
        self.keys = nodes.map(|node| self.keys_of(node)).collect();
        self.nodes = self.keys.iter().map(|keys| keys.node).collect();
        self.least = self.keys.iter().map(|keys| keys.least).collect();
    }

    fn sort_node(&mut self, node: usize) {
        let (old, new) = (self.keys[node], self.keys_of(node));
        self.keys[node] = new;
        self.nodes.remove(&old.node);
        self.nodes.insert(new.node);
        self.least.remove(&old.least);
        self.least.insert(new.least);
    }
}

fn short(number: usize, choice: Choice, has: u64) -> Short {
    Short { number, needs: choice.bytes, has }
}
