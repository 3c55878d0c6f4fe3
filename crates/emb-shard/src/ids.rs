//! Names for numbers that must not mix: ids, ranges and bytes.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number that names one thing of a kind and indexes a [`TypedVec`](crate::TypedVec).
pub trait Id: Copy + Ord + fmt::Debug {
    /// The kind, as errors call it.
    const KIND: &'static str;

    /// The id with number `number`.
    fn from_number(number: u32) -> Self;

    /// The id of position `index`.
    ///
    /// # Errors
    /// A position that does not fit in 32 bits.
    fn from_index(index: usize) -> Result<Self> {
        match u32::try_from(index) {
            Ok(number) => Ok(Self::from_number(number)),
            Err(_) => Err(Error::IdTooLarge { kind: Self::KIND, index }),
        }
    }

    /// The position that this id names.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The id with number `number`.
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl Id for $name {
            const KIND: &'static str = $kind;

            fn from_number(number: u32) -> Self {
                Self(number)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", $kind, self.0)
            }
        }
    )*};
}

ids! {
    /// A table, by its position in [`Tables`](crate::Tables).
    TableId = "table";
    /// A feature, by its position over all tables in order.
    FeatureId = "feature";
    /// A process (or thread) of the run, `0..world`.
    Rank = "rank";
    /// A sharding group, `0..replicas`: the ranks that together hold every table once.
    GroupId = "group";
    /// A replica set, `0..group_ranks`: the ranks that hold the same shards, one in every group.
    ReplicaId = "replica set";
    /// A node of a [`Topology`](crate::Topology), in order of its ranks.
    NodeId = "node";
    /// A level of a [`Topology`](crate::Topology), 0 for the links inside a node.
    LevelId = "level";
}

/// Consecutive rows `start..end` of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowRange {
    start: u64,
    end: u64,
}

impl RowRange {
    /// Rows `start..end`; empty when they are equal.
    ///
    /// # Errors
    /// An end before the start.
    pub fn new(start: u64, end: u64) -> Result<Self> {
        if end < start {
            return Err(Error::RangeReversed { kind: "row", start, end });
        }
        Ok(Self { start, end })
    }

    /// First row.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The row after the last one.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Number of rows.
    pub fn rows(self) -> u64 {
        self.end - self.start
    }

    /// Whether `row` is one of them.
    pub fn contains(self, row: u64) -> bool {
        (self.start..self.end).contains(&row)
    }
}

/// Consecutive columns `start..end` of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColRange {
    start: usize,
    end: usize,
}

impl ColRange {
    /// Columns `start..end`; empty when they are equal.
    ///
    /// # Errors
    /// An end before the start.
    pub fn new(start: usize, end: usize) -> Result<Self> {
        if end < start {
            let (start, end) = (start as u64, end as u64);
            return Err(Error::RangeReversed { kind: "column", start, end });
        }
        Ok(Self { start, end })
    }

    /// First column.
    pub fn start(self) -> usize {
        self.start
    }

    /// The column after the last one.
    pub fn end(self) -> usize {
        self.end
    }

    /// Number of columns.
    pub fn columns(self) -> usize {
        self.end - self.start
    }

    /// Whether `column` is one of them.
    pub fn contains(self, column: usize) -> bool {
        (self.start..self.end).contains(&column)
    }
}

/// `start..end`.
impl fmt::Display for RowRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// `start..end`.
impl fmt::Display for ColRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// An amount of memory or traffic.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or `None` beyond 64 bits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The sum, or the largest 64-bit number beyond it.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Exact below 1024 bytes, else two decimals of the largest binary unit: `2.38 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.995 would print as 1024.00 of the smaller unit.
        while value >= 1023.995 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.2} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_the_largest_unit_that_fits() {
        let text = |count| Bytes::new(count).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1023), "1023 B");
        assert_eq!(text(1024), "1.00 KiB");
        assert_eq!(text(1024 * 1024 - 1), "1.00 MiB");
        assert_eq!(text(2_560_000_000), "2.38 GiB");
        assert_eq!(text(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn a_reversed_range_is_refused_and_an_empty_one_is_not() {
        assert_eq!(RowRange::new(4, 4).expect("valid").rows(), 0);
        let error = RowRange::new(5, 4).expect_err("reversed");
        assert_eq!(error.to_string(), "row range 5..4 ends before it starts");
        assert!(ColRange::new(1, 0).is_err());
        let columns = ColRange::new(2, 5).expect("valid");
        assert_eq!((columns.columns(), columns.contains(4), columns.contains(5)), (3, true, false));
    }

    #[test]
    fn an_id_beyond_32_bits_is_refused() {
        assert_eq!(Rank::from_index(7).expect("fits"), Rank::new(7));
        let error = TableId::from_index(1 << 32).expect_err("too large");
        assert_eq!(error.to_string(), "table 4294967296 does not fit in 32 bits");
    }
}
