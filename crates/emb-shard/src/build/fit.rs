//! Why a table does not fit, in numbers: [`DoesNotFit`].

use crate::{Bytes, Mesh, Table};
use std::fmt::{self, Display, Formatter};

/// A table that no rank has room for, and what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoesNotFit {
    /// Table name.
    pub table: String,
    /// The placement tried.
    pub placement: &'static str,
    /// Bytes of weights and state that one rank would store.
    pub needs: Bytes,
    /// Bytes that the emptiest rank has left (of those that must take a part).
    pub has: Bytes,
    /// Bytes of its row-wise part on one rank.
    pub row_wise: Bytes,
    /// What each rank is short of to hold the row-wise part alone; zero where that fits.
    pub row_wise_short: Bytes,
    /// Fewest ranks with which the row-wise part alone fits; `None` where not even one row does.
    pub row_wise_world: Option<u64>,
}

impl DoesNotFit {
    pub(crate) fn new(
        table: &Table,
        placement: &'static str,
        mesh: Mesh,
        needs: Bytes,
        has: Bytes,
        budget: Bytes,
    ) -> Self {
        let bytes = |rows| table.part_bytes(rows, table.dim()).total();
        let row_wise = bytes(table.rows().div_ceil(u64::from(mesh.group_ranks())));
        let fitting = budget.get().checked_div(bytes(1).get()).filter(|&rows| rows > 0);
        let world = |rows| table.rows().div_ceil(rows).saturating_mul(u64::from(mesh.replicas()));
        Self {
            table: table.name().to_owned(),
            placement,
            needs,
            has,
            row_wise,
            row_wise_short: Bytes::new(row_wise.get().saturating_sub(budget.get())),
            row_wise_world: fitting.map(world),
        }
    }

    /// Bytes that are missing.
    pub fn short(&self) -> Bytes {
        Bytes::new(self.needs.get().saturating_sub(self.has.get()))
    }
}

impl Display for DoesNotFit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { table, placement, needs, has, .. } = self;
        write!(
            f,
            "table {table:?} does not fit as {placement}: needs {} bytes on one rank, has {}, \
             short {}; ",
            Grouped(needs.get()),
            Grouped(has.get()),
            Grouped(self.short().get()),
        )?;
        match self.row_wise_short.get() {
            0 => write!(f, "row_wise needs {} per rank", Grouped(self.row_wise.get()))?,
            short => write!(f, "row_wise is still short {} per rank", Grouped(short))?,
        }
        match self.row_wise_world {
            Some(world) => write!(f, ", the smallest world for row_wise is {}", Grouped(world)),
            None => f.write_str(", not even one row fits on a rank"),
        }
    }
}

impl std::error::Error for DoesNotFit {}

/// A number with commas between thousands.
struct Grouped(u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.char_indices() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}
