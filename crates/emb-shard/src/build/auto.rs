//! Placements chosen from sizes and work: [`PlanBuilder::auto`].

use super::{PlaceOptions, Placement, PlanBuilder, RowCut};
use crate::{Bytes, Error, Plan, Result, Table, Tables};

/// What [`PlanBuilder::auto`] may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoOptions {
    /// Tables of at most so many bytes are stored on every rank, smallest first, as long as all of
    /// them take at most an eighth of the budget; zero for none.
    pub data_parallel_up_to: Bytes,
    /// How rows of large tables are cut; `None` to keep every table whole.
    pub row_wise: Option<RowCut>,
}

impl Default for AutoOptions {
    /// Data-parallel up to 64 KiB, large tables row-wise.
    fn default() -> Self {
        Self { data_parallel_up_to: Bytes::new(64 << 10), row_wise: Some(RowCut::Ceil) }
    }
}

impl PlanBuilder {
    /// Chooses a placement for every table that the builder was told none of. Group, exchange and
    /// sync of chosen ones that are not data-parallel are those of [`all`](PlanBuilder::all).
    ///
    /// Small tables are data-parallel. Tables beyond half of the budget are row-wise. The others
    /// stay whole and go, heavy ones first, where there is least work and room for them. If one
    /// finds no room, the largest whole table becomes row-wise and the search starts again; each
    /// further try cuts twice as many, so that tries grow with the logarithm of the tables. Takes
    /// `O(tables * world)` steps a try. The same input gives the same plan.
    ///
    /// # Errors
    /// A table that no rank has room for even so: its name, the bytes it needs, has and is short
    /// of, and what row-wise placement would take ([`DoesNotFit`](crate::DoesNotFit)).
    pub fn auto(&self, tables: &Tables, options: AutoOptions) -> Result<Plan> {
        let given = tables.tables().as_slice();
        self.refuse_unknown(given)?;
        let mut placements = self.by_size(given, options);
        let mut largest = whole(given, &placements);
        largest.retain(|&number| !self.by_table.contains_key(given[number].name()));
        let mut cut_next = 1;
        loop {
            let failed = match self.build_with(tables, &placements) {
                Err(failed @ Error::DoesNotFit(_)) => failed,
                other => return other,
            };
            let Some(cut) = options.row_wise.filter(|_| !largest.is_empty()) else {
                return Err(failed);
            };
            for number in largest.drain(..cut_next.min(largest.len())) {
                placements[number] = self.with(Placement::RowWise { cut });
            }
            cut_next *= 2;
        }
    }

    fn by_size(&self, given: &[Table], options: AutoOptions) -> Vec<PlaceOptions> {
        let budget = self.budget.map_or(u64::MAX, Bytes::get);
        let mut placements = vec![self.with(Placement::TableWise { owner: None }); given.len()];
        let mut room = budget / 8;
        for number in by_bytes(given) {
            let bytes = total(&given[number]).get();
            if let Some(&own) = self.by_table.get(given[number].name()) {
                placements[number] = own;
            } else if bytes <= options.data_parallel_up_to.get().min(room) {
                room -= bytes;
                placements[number] = Placement::DataParallel.into();
            } else if let Some(cut) = options.row_wise.filter(|_| bytes > budget / 2) {
                placements[number] = self.with(Placement::RowWise { cut });
            }
        }
        placements
    }

    /// A placement with the other choices that hold for every table.
    fn with(&self, placement: Placement) -> PlaceOptions {
        PlaceOptions { placement, ..self.all }
    }
}

/// Whole tables, largest first.
fn whole(given: &[Table], placements: &[PlaceOptions]) -> Vec<usize> {
    let is_whole =
        |&number: &usize| matches!(placements[number].placement, Placement::TableWise { .. });
    let mut numbers: Vec<usize> = by_bytes(given).into_iter().filter(is_whole).collect();
    numbers.reverse();
    numbers
}

/// Tables in ascending order of bytes, then in table order.
fn by_bytes(given: &[Table]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..given.len()).collect();
    numbers.sort_by_key(|&number| total(&given[number]));
    numbers
}

fn total(table: &Table) -> Bytes {
    table.part_bytes(table.rows(), table.dim()).total()
}
