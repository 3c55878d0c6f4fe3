//! Planners that others published, to compare with: [`baselines`].
//!
//! ```text
//!   random            Random        whole tables, anywhere with room
//!   greedy-*          Greedy        whole tables, heavy ones first, by one of four costs
//!   table-row-wise    TableRowWise  tables over nodes in turn, rows over the ranks of a node
//!   torchrec          TorchRec      all of its sharding types, by its formulas
//!   beam              Beam          columns halved where that pays, by the step's cost
//! ```
//!
//! They decide as their sources do, with two differences that make their plans comparable: bytes
//! of weights and optimizer state are exact and kept within the budget of the [`Task`](crate::Task),
//! and its constraints hold. As in the sources, what exchanges need beside takes no room, except
//! for ids and outputs in `TorchRec`: ask a cost model for the peak.

mod beam;
mod given;
mod greedy;
mod random;
mod table_row_wise;
mod torchrec;

pub use beam::Beam;
pub use greedy::{Greedy, GreedyBy};
pub use random::Random;
pub use table_row_wise::TableRowWise;
pub use torchrec::{TorchRec, TorchRecConstants};

use crate::Planner;

/// All baselines with the choices of their sources, each named once.
pub fn baselines() -> Vec<Box<dyn Planner>> {
    let mut all: Vec<Box<dyn Planner>> = vec![Box::new(Random::default())];
    all.extend(GreedyBy::ALL.map(|by| Box::new(Greedy { by }) as Box<dyn Planner>));
    all.push(Box::new(TableRowWise));
    all.push(Box::new(TorchRec::default()));
    all.push(Box::new(Beam::default()));
    all
}
