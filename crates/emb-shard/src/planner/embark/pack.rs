//! Shards into buckets, one after the other: by cost under a target, or by bytes.

use super::bound::coarsest;
use super::problem::{Problem, Shape, Shortage};
use super::state::State;

/// What shards are sorted by and buckets chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Cost,
    Bytes,
}

/// Columns of an item with rows split, not yet placed.
#[derive(Clone, Copy, Debug)]
struct Block {
    item: usize,
    columns: usize,
    splits: u32,
    /// Columns and splits of the block that it was cut from.
    tried: (usize, u32),
}

/// The shape of every table, its rows split for a target cost and its columns cut into blocks that
/// cost at most `block_cost`.
pub(super) fn shapes(problem: &Problem<'_>, cost: f64, block_cost: f64) -> Vec<Shape> {
    (0..problem.items.len()).map(|item| coarsest(problem, item, cost, block_cost)).collect()
}

/// Packs tables of these shapes, heavy pieces first, each where there is least cost.
pub(super) fn by_cost<'p, 'a>(
    problem: &'p Problem<'a>,
    shapes: &[Shape],
) -> Result<State<'p, 'a>, Shortage> {
    pack(problem, shapes, By::Cost)
}

/// Packs by bytes: large pieces first, each where there is most room, in shapes as coarse as fits;
/// else with the rows of every table over all buckets.
pub(super) fn by_bytes<'p, 'a>(problem: &'p Problem<'a>) -> Result<State<'p, 'a>, Shortage> {
    pack(problem, &shapes(problem, f64::INFINITY, f64::INFINITY), By::Bytes)
        .or_else(|_| pack(problem, &problem.thriftiest(), By::Bytes))
}

fn pack<'p, 'a>(
    problem: &'p Problem<'a>,
    shapes: &[Shape],
    by: By,
) -> Result<State<'p, 'a>, Shortage> {
    let mut blocks = Vec::new();
    for (item, shape) in shapes.iter().enumerate() {
        let widths = problem.items[item].widths(shape.blocks);
        blocks.extend(widths.map(|columns| Block {
            item,
            columns,
            splits: shape.splits,
            tried: (columns, shape.splits),
        }));
    }
    let weight = |block: &Block| match by {
        By::Cost => problem.cost(block.item, block.columns, block.splits),
        By::Bytes => problem.bytes(block.item, block.columns, block.splits) as f64,
    };
    // Ascending, so that the last one is next; equal ones in table order.
    blocks.sort_by(|a, b| weight(a).total_cmp(&weight(b)).then(b.item.cmp(&a.item)));
    let mut state = State::new(problem);
    while let Some(block) = blocks.pop() {
        match places(&state, block, by) {
            Ok(buckets) => state.put(block.item, block.columns, buckets),
            Err(has) => {
                let Some(finer) = finer(problem, block) else {
                    let (item, (columns, splits)) = (block.item, block.tried);
                    return Err(Shortage { item, columns, splits, has });
                };
                blocks.extend(finer);
            }
        }
    }
    Ok(state)
}

/// The buckets with least cost, or most room, that have room for a block; else the most room that
/// the last of as many has.
fn places(state: &State<'_, '_>, block: Block, by: By) -> Result<Vec<u32>, u64> {
    let Block { item, columns, splits, .. } = block;
    let problem = state.problem;
    let fixed = problem.items[item].freedom.shapes.is_some();
    let needs = problem.bytes(item, columns, splits);
    let room = |bucket: u32| problem.budget - state.bytes[bucket as usize];
    let free = |bucket: &u32| !(fixed && state.alone(item, *bucket as usize).is_some());
    let fits = |bucket: &u32| free(bucket) && room(*bucket) >= needs;
    let mut fitting: Vec<u32> = (0..problem.buckets.count).filter(fits).collect();
    let count = splits as usize;
    if fitting.len() < count {
        let mut rooms: Vec<u64> = (0..problem.buckets.count).filter(free).map(room).collect();
        rooms.sort_unstable_by(|a, b| b.cmp(a));
        return Err(rooms.get(count - 1).copied().unwrap_or(0));
    }
    let order = |a: &u32, b: &u32| {
        let (left, right) = (*a as usize, *b as usize);
        let (cost, bytes) = (
            state.cost[left].total_cmp(&state.cost[right]),
            state.bytes[left].cmp(&state.bytes[right]),
        );
        let first = match by {
            By::Cost => cost.then(bytes),
            By::Bytes => bytes.then(cost),
        };
        first.then(a.cmp(b))
    };
    if fitting.len() > count {
        fitting.select_nth_unstable_by(count - 1, order);
        fitting.truncate(count);
    }
    fitting.sort_unstable();
    Ok(fitting)
}

/// The same columns in finer pieces: halves, or rows split twice as often; `None` at the end.
fn finer(problem: &Problem<'_>, block: Block) -> Option<Vec<Block>> {
    let Block { item, columns, splits, tried } = block;
    let freedom = &problem.items[item].freedom;
    if freedom.shapes.is_some() {
        return None;
    }
    if columns >= 2 * freedom.min_columns {
        let half = (columns / freedom.step).div_ceil(2) * freedom.step;
        let halves = [half, columns - half];
        if halves[1] >= freedom.min_columns {
            return Some(halves.map(|columns| Block { item, columns, splits, tried }).to_vec());
        }
    }
    let twice = (splits * 2).min(freedom.max_splits);
    (twice > splits).then(|| vec![Block { item, columns, splits: twice, tried }])
}
