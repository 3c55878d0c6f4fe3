//! What is packed into what: [`Problem`], tables into buckets under a budget of bytes.

use super::clusters::Cluster;
use super::state::State;
use super::{Kind, Task};
use crate::{
    Bytes, DoesNotFit, EmbarkBuckets, EmbarkModel, Error, Exchange, Mesh, NodeSplit, Path,
    Placement, Result, RowCut, Table,
};

/// Fewest columns of a column block where the task is silent (`HugeCTR`'s planner halves no
/// narrower table).
const MIN_COLUMNS: usize = 32;

/// Widths are multiples of so many columns where the table's is: 16 bytes of `f16`, the widest
/// load of lookup kernels (`cuEmbed`).
const COLUMN_STEP: usize = 8;

/// The buckets that work is balanced over: runs of positions of each group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    pub(super) mesh: Mesh,
    pub(super) model: EmbarkModel,
    /// Nodes that a group touches; 1 where nodes cut groups unevenly.
    pub(super) nodes: u32,
    /// Positions of a bucket, `L`.
    pub(super) width: u32,
    /// Buckets, `K`.
    pub(super) count: u32,
    pub(super) exchange: Exchange,
}

impl Buckets {
    pub(super) fn new(task: &Task<'_>, mesh: Mesh, model: Option<EmbarkModel>) -> Result<Self> {
        let split = NodeSplit::new(mesh, task.node_ranks())?;
        let nodes = split.map_or(1, |split| split.parts());
        let mut model = model.unwrap_or_else(|| EmbarkModel::published(nodes));
        let width = match (model.buckets, split) {
            (EmbarkBuckets::Nodes, Some(split)) => split.part_ranks(),
            _ => 1,
        };
        if split.is_none() {
            model.buckets = EmbarkBuckets::Ranks;
        }
        let over = match model.buckets {
            EmbarkBuckets::Nodes => Path::Hierarchical,
            EmbarkBuckets::Ranks => Path::Flat,
        };
        // A group serves its part of the samples.
        model.samples *= f64::from(mesh.group_ranks()) / f64::from(mesh.world());
        let (count, exchange) = (mesh.group_ranks() / width, Exchange::Reduce { over });
        Ok(Self { mesh, model, nodes, width, count, exchange })
    }
}

/// In how many column blocks a table is cut, and over how many buckets the rows of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) blocks: usize,
    pub(super) splits: u32,
}

/// What may be done to a table.
#[derive(Clone, Debug)]
pub(super) struct Freedom {
    /// Fewest columns of a block, a multiple of `step`; all where columns may not be cut.
    pub(super) min_columns: usize,
    /// Widths are multiples of it.
    pub(super) step: usize,
    /// Most buckets that rows are split over.
    pub(super) max_splits: u32,
    /// The only shapes, the coarsest first; `None` for any.
    pub(super) shapes: Option<Vec<Shape>>,
}

/// A table to be packed.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) table: &'a Table,
    pub(super) freedom: Freedom,
}

/// Tables to be packed into buckets.
#[derive(Clone, Debug)]
pub(super) struct Problem<'a> {
    pub(super) buckets: Buckets,
    pub(super) items: Vec<Item<'a>>,
    /// `[K]` cost of what is there already.
    pub(super) base_cost: Vec<f64>,
    /// `[K]` bytes of the fullest rank, of what is there already.
    pub(super) base_bytes: Vec<u64>,
    /// Bytes of every rank.
    pub(super) budget: u64,
}

/// A part of a table that finds no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    pub(super) item: usize,
    pub(super) columns: usize,
    pub(super) splits: u32,
    pub(super) has: u64,
}

impl<'a> Problem<'a> {
    pub(super) fn new(task: &Task<'a>, buckets: Buckets, clusters: &[Cluster]) -> Result<Self> {
        let positions = buckets.mesh.group_ranks();
        let mut left = vec![task.budget(); positions as usize];
        let mut problem = Self {
            buckets,
            items: Vec::new(),
            base_cost: vec![0.0; buckets.count as usize],
            base_bytes: Vec::new(),
            budget: task.budget().get(),
        };
        for (table, &cluster) in task.workload.tables().tables().as_slice().iter().zip(clusters) {
            let (rows, owners, placement) = match cluster {
                Cluster::Reduction => {
                    let freedom = allowed(task, &buckets, table).ok_or_else(|| unplaced(table))?;
                    problem.items.push(Item { table, freedom });
                    continue;
                }
                Cluster::DataParallel => (table.rows(), 0..positions, Placement::DataParallel),
                Cluster::Unique => {
                    let rows = table.rows().div_ceil(u64::from(positions));
                    (rows, 0..positions, Placement::RowWise { cut: RowCut::Modulo })
                }
                Cluster::Pinned(owner) => {
                    let bucket = (owner / buckets.width) as usize;
                    problem.base_cost[bucket] += problem.rate(table, 1) * table.dim() as f64;
                    let placement = Placement::TableWise { owner: Some(owner) };
                    (table.rows(), owner..owner + 1, placement)
                }
            };
            let needs = table.part_bytes(rows, table.dim()).total();
            for owner in owners {
                let left = &mut left[owner as usize];
                *left = take(task, table, placement, buckets.mesh, needs, *left)?;
            }
        }
        let least = |positions: &[Bytes]| positions.iter().map(|left| left.get()).min();
        let used = |positions| problem.budget - least(positions).unwrap_or(0);
        problem.base_bytes = left.chunks(buckets.width as usize).map(used).collect();
        Ok(problem)
    }

    /// Cost of one column of a table whose rows are split over `splits` buckets, on each of them.
    pub(super) fn rate(&self, table: &Table, splits: u32) -> f64 {
        let (model, width) = (&self.buckets.model, self.buckets.width);
        model.lookup_rate(width) * table.lookups() / f64::from(splits) + model.exchange_rate(width)
    }

    /// Cost of `columns` columns of item `item` on each of `splits` buckets.
    pub(super) fn cost(&self, item: usize, columns: usize, splits: u32) -> f64 {
        columns as f64 * self.rate(self.items[item].table, splits)
    }

    /// Bytes of the same on the fullest rank of a bucket.
    pub(super) fn bytes(&self, item: usize, columns: usize, splits: u32) -> u64 {
        let table = self.items[item].table;
        let parts = u64::from(splits) * u64::from(self.buckets.width);
        if columns == 0 {
            0
        } else {
            table.part_bytes(table.rows().div_ceil(parts), columns).total().get()
        }
    }

    /// Most bytes that any bucket has left.
    pub(super) fn room(&self) -> u64 {
        self.budget - self.base_bytes.iter().min().copied().unwrap_or(0)
    }

    /// The shapes of fewest bytes: rows over all buckets.
    pub(super) fn thriftiest(&self) -> Vec<Shape> {
        self.items.iter().map(Item::thriftiest).collect()
    }

    /// The plan that fits if any does: by bytes alone.
    pub(super) fn tight(&self) -> Result<State<'_, 'a>> {
        super::pack::by_bytes(self).map_err(|shortage| self.does_not_fit(shortage))
    }

    fn does_not_fit(&self, shortage: Shortage) -> Error {
        let Shortage { item, columns, splits, has } = shortage;
        let (table, mesh) = (self.items[item].table, self.buckets.mesh);
        let (cut, rows_cut) = (RowCut::Modulo, splits * self.buckets.width > 1);
        let placement = match columns == table.dim() {
            true if splits == self.buckets.count => Placement::RowWise { cut },
            true if rows_cut => Placement::TableRowWise { cut, node: None },
            true => Placement::TableWise { owner: None },
            false if rows_cut => Placement::Grid { cut, parts: None },
            false => Placement::ColumnWise { parts: None },
        };
        let (needs, has) = (Bytes::new(self.bytes(item, columns, splits)), Bytes::new(has));
        let budget = Bytes::new(self.budget);
        Error::DoesNotFit(Box::new(DoesNotFit::new(
            table,
            placement.name(),
            mesh,
            needs,
            has,
            budget,
        )))
    }
}

/// Takes `needs` bytes from what is left of a rank.
pub(super) fn take(
    task: &Task<'_>,
    table: &Table,
    placement: Placement,
    mesh: Mesh,
    needs: Bytes,
    left: Bytes,
) -> Result<Bytes> {
    match left.get().checked_sub(needs.get()) {
        Some(left) => Ok(Bytes::new(left)),
        None => Err(Error::DoesNotFit(Box::new(DoesNotFit::new(
            table,
            placement.name(),
            mesh,
            needs,
            left,
            task.budget(),
        )))),
    }
}

fn unplaced(table: &Table) -> Error {
    let what = format!("table {:?}: no placement of the allowed kinds", table.name());
    Error::Constraint { what }
}

/// What the allowed kinds of placement leave to do with a table whose sums travel; `None` where
/// that is nothing.
pub(super) fn allowed(task: &Task<'_>, buckets: &Buckets, table: &Table) -> Option<Freedom> {
    let dim = table.dim();
    let step = if dim.is_multiple_of(COLUMN_STEP) { COLUMN_STEP } else { 1 };
    let least = task.constraints.min_columns.unwrap_or(MIN_COLUMNS).max(1);
    let min_columns = least.checked_next_multiple_of(step).unwrap_or(dim).min(dim);
    let max_splits = u64::from(buckets.count).min(table.rows()) as u32;
    let allows = |kinds: &[Kind]| kinds.iter().all(|&kind| task.allows(kind));
    let alone = buckets.width == 1;
    let rows_free =
        allows(&[Kind::TableRowWise, Kind::RowWise]) && (!alone || allows(&[Kind::TableWise]));
    let columns_free = allows(&[Kind::Grid]) && (!alone || allows(&[Kind::ColumnWise]));
    if rows_free {
        let min_columns = if columns_free { min_columns } else { dim };
        return Some(Freedom { min_columns, step, max_splits, shapes: None });
    }
    let mut shapes = Vec::new();
    let doubled =
        |limit: u64| (0..u64::BITS).map(|bit| 1_u64 << bit).take_while(move |&n| n <= limit);
    let all = u64::from(buckets.count);
    for blocks in doubled((dim / min_columns) as u64) {
        for splits in doubled(all).chain((!all.is_power_of_two()).then_some(all)) {
            let kind = kind(blocks, splits, buckets);
            if blocks * splits <= all && task.allows(kind) {
                shapes.push(Shape { blocks: blocks as usize, splits: splits as u32 });
            }
        }
    }
    shapes.sort_by_key(|shape| (shape.blocks * shape.splits as usize, shape.blocks));
    let max_splits = buckets.count;
    (!shapes.is_empty()).then_some(Freedom { min_columns, step, max_splits, shapes: Some(shapes) })
}

/// As [`Tier::kind`](crate::Tier::kind) calls it.
fn kind(blocks: u64, splits: u64, buckets: &Buckets) -> Kind {
    let rows_cut = splits * u64::from(buckets.width) > 1;
    match blocks {
        1 if splits == u64::from(buckets.count) => Kind::RowWise,
        1 if rows_cut => Kind::TableRowWise,
        1 => Kind::TableWise,
        _ if rows_cut => Kind::Grid,
        _ => Kind::ColumnWise,
    }
}

impl Item<'_> {
    /// Widths of `blocks` column blocks, as even as the step allows, the wider first.
    pub(super) fn widths(&self, blocks: usize) -> impl Iterator<Item = usize> + use<> {
        let step = self.freedom.step;
        let units = self.table.dim() / step;
        (0..blocks).map(move |block| (units / blocks + usize::from(block < units % blocks)) * step)
    }

    /// The widest of them.
    pub(super) fn widest(&self, blocks: usize) -> usize {
        let step = self.freedom.step;
        (self.table.dim() / step).div_ceil(blocks) * step
    }

    /// Whole on one bucket, or as nearly as is allowed.
    pub(super) fn whole(&self) -> Shape {
        let shapes = self.freedom.shapes.as_ref();
        shapes.map_or(Shape { blocks: 1, splits: 1 }, |shapes| shapes[0])
    }

    /// Rows over all buckets, or as nearly as is allowed.
    fn thriftiest(&self) -> Shape {
        let all = Shape { blocks: 1, splits: self.freedom.max_splits };
        self.freedom.shapes.as_ref().map_or(all, |shapes| shapes[shapes.len() - 1])
    }

    /// Most column blocks.
    pub(super) fn max_blocks(&self) -> usize {
        self.table.dim() / self.freedom.min_columns
    }
}
