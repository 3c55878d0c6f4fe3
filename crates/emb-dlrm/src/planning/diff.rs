//! What differs between two plans of the same tables: [`PlanDiff`].

use super::in_words;
use crate::config::json_file;
use crate::{Error, Result};
use emb_shard::{Plan, PlanFile};
use serde::Serialize;
use std::path::Path;

/// Tables that two plans place differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDiff {
    /// Ranks of both.
    pub world: [u32; 2],
    /// Ranks of a node of both.
    pub node_ranks: [u32; 2],
    /// Tables that both place alike.
    pub alike: usize,
    /// The others.
    pub tables: Vec<TableDiff>,
}

/// A table that two plans place differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableDiff {
    /// Name.
    pub table: String,
    /// Where the first plan has it.
    pub first: String,
    /// Where the second plan has it.
    pub second: String,
}

impl PlanDiff {
    /// Compares two plans.
    ///
    /// # Errors
    /// Plans of different tables, by name.
    pub fn new(first: &Plan, second: &Plan) -> Result<Self> {
        first.check_tables(second.tables().tables().as_slice()).map_err(|error| {
            Error::Config(format!("the plans are of different tables: of the first, {error}"))
        })?;
        let mut tables = Vec::new();
        for ((_, a), (_, b)) in first.placed().iter().zip(second.placed().iter()) {
            if a == b {
                continue;
            }
            let (first, mut second) = (in_words(a), in_words(b));
            if first == second {
                second.push_str(", rows or columns cut elsewhere");
            }
            tables.push(TableDiff { table: a.table.clone(), first, second });
        }
        Ok(Self {
            world: [first.world(), second.world()],
            node_ranks: [first.node_ranks(), second.node_ranks()],
            alike: first.placed().as_slice().len() - tables.len(),
            tables,
        })
    }
}

/// Reads a plan file; its tables are as it describes them itself.
///
/// # Errors
/// By file, line and column: what can't be read. By table: what is no plan.
pub fn read_plan(path: &Path) -> Result<Plan> {
    let file: PlanFile = json_file(path)?;
    let refuse = |error| Error::Config(format!("{}: {error}", path.display()));
    let tables = file.tables().map_err(refuse)?;
    file.into_plan(&tables).map_err(refuse)
}
