//! Which owner has which row: [`RowMap`].

use crate::{Error, Result, RowOrder};
use std::sync::Arc;

/// Where a row is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Position of the owner among the map's owners.
    pub owner: usize,
    /// Row in the owner's part, `0..rows_of(owner)`.
    pub local: u64,
}

/// A bijection between the rows of a table and the (owner, local row) pairs that store them.
///
/// Plain data: [`kind`](Self::kind) hands out the arrays from which a device routes ids; the
/// methods here are the reference it is tested against. Owners are positions `0..owners`, which
/// ranks they are is the plan's business. Owners without rows are allowed. Rows are 64-bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMap {
    rows: u64,
    rule: Rule,
}

/// The arrays of a [`RowMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMapKind<'a> {
    /// `[owners + 1]` starts: owner `o` has rows `starts[o]..starts[o + 1]`, in order.
    Range(&'a [u64]),
    /// Owner `row % owners`, local row `row / owners`.
    Modulo {
        /// Number of owners.
        owners: usize,
    },
    /// Row `r` is placed where `then` places row `order.place(r)`.
    Permuted {
        /// The place of each row in the new order, for instance by frequency.
        order: &'a RowOrder,
        /// The map of the new order.
        then: &'a RowMap,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Range(Arc<[u64]>),
    Modulo { owners: usize },
    Permuted { order: RowOrder, then: Arc<RowMap> },
}

impl RowMap {
    /// Consecutive ranges: owner `o` has rows `starts[o]..starts[o + 1]`; the last start is the
    /// number of rows.
    ///
    /// # Errors
    /// No owners (fewer than two starts); starts that do not begin at 0 or that decrease.
    pub fn range(starts: Vec<u64>) -> Result<Self> {
        let [first, .., rows] = starts[..] else { return Err(Error::NoOwners) };
        if first != 0 {
            return Err(Error::StartsBegin { first });
        }
        for (owner, pair) in starts.windows(2).enumerate() {
            if pair[1] < pair[0] {
                let (previous, next) = (pair[0], pair[1]);
                return Err(Error::StartsDecrease { owner, previous, next });
            }
        }
        Ok(Self { rows, rule: Rule::Range(starts.into()) })
    }

    /// Consecutive ranges whose lengths differ by at most one, the longer ones first.
    ///
    /// # Errors
    /// No owners.
    pub fn even(rows: u64, owners: usize) -> Result<Self> {
        if owners == 0 {
            return Err(Error::NoOwners);
        }
        let owners = owners as u64;
        let (length, longer) = (rows / owners, rows % owners);
        Self::range((0..=owners).map(|owner| owner * length + owner.min(longer)).collect())
    }

    /// Consecutive ranges of `ceil(rows / owners)` rows each until none are left, as `TorchRec`
    /// cuts tables: ten rows over four owners are 3, 3, 3 and 1.
    ///
    /// # Errors
    /// No owners.
    pub fn ceil(rows: u64, owners: usize) -> Result<Self> {
        if owners == 0 {
            return Err(Error::NoOwners);
        }
        let block = rows.div_ceil(owners as u64);
        // The product saturates only beyond `rows`, where `min` decides.
        let start = |owner: u64| owner.saturating_mul(block).min(rows);
        Self::range((0..=owners as u64).map(start).collect())
    }

    /// Round robin: row `r` is local row `r / owners` of owner `r % owners`.
    ///
    /// # Errors
    /// No owners.
    pub fn modulo(rows: u64, owners: usize) -> Result<Self> {
        if owners == 0 {
            return Err(Error::NoOwners);
        }
        Ok(Self { rows, rule: Rule::Modulo { owners } })
    }

    /// A new order of the rows, then another map: row `r` is placed where `then` places row
    /// `permutation[r]`.
    ///
    /// Keeps 16 bytes a row: the permutation and its inverse.
    ///
    /// # Errors
    /// A permutation of another length than `then` has rows, or that leaves a place empty.
    pub fn permuted(permutation: Vec<u64>, then: RowMap) -> Result<Self> {
        Self::check_length(permutation.len() as u64, &then)?;
        Self::ordered(RowOrder::new(permutation)?, then)
    }

    /// As [`permuted`](Self::permuted), with an order that may need no memory for each row.
    ///
    /// # Errors
    /// An order of another number of rows than `then`.
    pub fn ordered(order: RowOrder, then: RowMap) -> Result<Self> {
        Self::check_length(order.rows(), &then)?;
        Ok(Self { rows: then.rows, rule: Rule::Permuted { order, then: Arc::new(then) } })
    }

    fn check_length(permutation: u64, then: &RowMap) -> Result<()> {
        let rows = then.rows;
        if permutation == rows {
            Ok(())
        } else {
            Err(Error::PermutationLength { permutation, rows })
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of owners, at least 1.
    pub fn owners(&self) -> usize {
        match &self.rule {
            Rule::Range(starts) => starts.len() - 1,
            Rule::Modulo { owners } => *owners,
            Rule::Permuted { then, .. } => then.owners(),
        }
    }

    /// Rows that `owner` has.
    ///
    /// # Errors
    /// An owner that does not exist.
    pub fn rows_of(&self, owner: usize) -> Result<u64> {
        check("owner", owner as u64, self.owners() as u64)?;
        Ok(match &self.rule {
            Rule::Range(starts) => starts[owner + 1] - starts[owner],
            Rule::Modulo { owners } => {
                let (owner, owners) = (owner as u64, *owners as u64);
                self.rows / owners + u64::from(owner < self.rows % owners)
            }
            Rule::Permuted { then, .. } => then.rows_of(owner)?,
        })
    }

    /// Where global row `row` is stored.
    ///
    /// # Errors
    /// A row that does not exist.
    pub fn locate(&self, row: u64) -> Result<Place> {
        check("row", row, self.rows)?;
        match &self.rule {
            Rule::Range(starts) => {
                // The last start at or before `row`: earlier equal starts are empty owners.
                let owner = starts.partition_point(|&start| start <= row) - 1;
                Ok(Place { owner, local: row - starts[owner] })
            }
            Rule::Modulo { owners } => {
                let owners = *owners as u64;
                Ok(Place { owner: (row % owners) as usize, local: row / owners })
            }
            Rule::Permuted { order, then } => then.locate(order.place(row)),
        }
    }

    /// The global row that `owner` stores as its row `local`.
    ///
    /// # Errors
    /// An owner, or a local row of it, that does not exist.
    pub fn global(&self, owner: usize, local: u64) -> Result<u64> {
        check("local row", local, self.rows_of(owner)?)?;
        Ok(match &self.rule {
            Rule::Range(starts) => starts[owner] + local,
            Rule::Modulo { owners } => local * *owners as u64 + owner as u64,
            Rule::Permuted { order, then } => order.row(then.global(owner, local)?),
        })
    }

    /// The arrays of the map.
    pub fn kind(&self) -> RowMapKind<'_> {
        match &self.rule {
            Rule::Range(starts) => RowMapKind::Range(starts),
            Rule::Modulo { owners } => RowMapKind::Modulo { owners: *owners },
            Rule::Permuted { order, then } => RowMapKind::Permuted { order, then },
        }
    }
}

fn check(kind: &'static str, index: u64, count: u64) -> Result<()> {
    if index < count { Ok(()) } else { Err(Error::NoSuch { kind, index, count }) }
}
