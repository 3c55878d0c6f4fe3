//! Costs that no packing can be below, and the coarsest shapes that a cost allows.

use super::problem::{Problem, Shape};

/// A cost that the most expensive bucket has in every packing.
///
/// Say that it is `C`. Every column of a table is in a piece of at least the least width, whose
/// rows must be split until it fits and costs at most `C`; splits only add cost. So `C` is at least
/// the mean of the buckets with those splits. The least `C` with this property is found by halving.
pub(super) fn lower(problem: &Problem<'_>) -> f64 {
    let base = problem.base_cost.iter().copied().fold(0.0, f64::max);
    let mut high = base.max(1.0);
    while !holds(problem, high) {
        high *= 2.0;
        if !high.is_finite() {
            return base;
        }
    }
    let mut low = base;
    if holds(problem, low) {
        return low;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(problem, middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Whether nothing shows that all buckets cannot cost at most `cost`.
fn holds(problem: &Problem<'_>, cost: f64) -> bool {
    let mut total: f64 = problem.base_cost.iter().sum();
    for (number, item) in problem.items.iter().enumerate() {
        let width = item.freedom.min_columns;
        let Some(splits) = splits(problem, number, width, cost) else { return false };
        total += problem.cost(number, item.table.dim(), splits) * f64::from(splits);
    }
    total <= cost * f64::from(problem.buckets.count)
}

/// Fewest buckets that the rows of `columns` columns must be split over to fit and to cost at most
/// `cost` on each; `None` where there are too few for the cost. A piece that fits nowhere gets the
/// most.
fn splits(problem: &Problem<'_>, item: usize, columns: usize, cost: f64) -> Option<u32> {
    let most = problem.items[item].freedom.max_splits;
    let room = problem.room();
    let fits = |splits: &u32| problem.bytes(item, columns, *splits) <= room;
    let cheap = |splits: &u32| problem.cost(item, columns, *splits) <= cost;
    // Both fall with the splits.
    let first = |holds: &dyn Fn(&u32) -> bool| partition(most, holds);
    first(&cheap).map(|cheap| cheap.max(first(&fits).unwrap_or(most)))
}

/// The first of `1..=most` for which `holds`, which holds from there on.
fn partition(most: u32, holds: &dyn Fn(&u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (1, most);
    if !holds(&high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if holds(&middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// The coarsest shape of a table: fewest row splits with which its narrowest block fits and costs
/// at most `cost`, then fewest column blocks that fit and cost at most `block_cost`; or nearly so
/// where there is none.
pub(super) fn coarsest(problem: &Problem<'_>, number: usize, cost: f64, block_cost: f64) -> Shape {
    let item = &problem.items[number];
    let room = problem.room();
    let good = |shape: Shape| {
        let columns = item.widest(shape.blocks);
        problem.bytes(number, columns, shape.splits) <= room
            && problem.cost(number, columns, shape.splits) <= block_cost
    };
    if let Some(shapes) = &item.freedom.shapes {
        let last = shapes[shapes.len() - 1];
        return shapes.iter().copied().find(|&shape| good(shape)).unwrap_or(last);
    }
    let least = item.freedom.min_columns;
    let splits = splits(problem, number, least, cost).unwrap_or(item.freedom.max_splits);
    let most = item.max_blocks() as u32;
    let enough = |blocks: &u32| good(Shape { blocks: *blocks as usize, splits });
    Shape { blocks: partition(most, &enough).unwrap_or(most) as usize, splits }
}
