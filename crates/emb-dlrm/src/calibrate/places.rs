//! Which ranks share a host: [`Places`].

use crate::{Error, Result};
use std::ops::Range;

/// The host of every rank; ranks of a host are neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    names: Vec<String>,
    /// Ranks of each host.
    nodes: Vec<Range<usize>>,
}

impl Places {
    /// From the name of every rank's host.
    ///
    /// # Errors
    /// Ranks of a host that are not neighbours: levels of a topology are consecutive ranks.
    pub fn new(names: Vec<String>) -> Result<Self> {
        let mut nodes: Vec<Range<usize>> = Vec::new();
        for (rank, name) in names.iter().enumerate() {
            match nodes.last_mut() {
                Some(node) if names[node.start] == *name => node.end = rank + 1,
                _ => {
                    if let Some(earlier) = names[..rank].iter().position(|other| other == name) {
                        return Err(Error::Config(format!(
                            "ranks {earlier} and {rank} are both on host {name}, and ranks between \
                             them on others: start the ranks of a host one after the other \
                             (mpirun --map-by slot)"
                        )));
                    }
                    nodes.push(rank..rank + 1);
                }
            }
        }
        Ok(Self { names, nodes })
    }

    /// All of `world` ranks on this host.
    ///
    /// # Errors
    /// None; as [`new`](Self::new).
    pub fn one_host(world: usize) -> Result<Self> {
        Self::new(vec!["this host".to_owned(); world])
    }

    /// The ranks of each host.
    pub fn nodes(&self) -> &[Range<usize>] {
        &self.nodes
    }

    /// The host of a rank, numbered from 0.
    pub fn node_of(&self, rank: usize) -> usize {
        self.nodes.partition_point(|node| node.end <= rank)
    }

    /// The name of a rank's host.
    pub fn host(&self, rank: usize) -> &str {
        &self.names[rank]
    }

    /// Ranks.
    pub fn world(&self) -> usize {
        self.names.len()
    }

    /// Ranks of the host with most.
    pub fn most(&self) -> usize {
        self.nodes.iter().map(Range::len).max().unwrap_or(0)
    }
}
