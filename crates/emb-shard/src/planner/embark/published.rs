//! The search of `EMBark` as published: [`search`].
//!
//! `HugeCTR` v25.03, `benchmarks/embedding_collection/hugectr/sharding/planner.py`, classes
//! `ShardingState` and `Planner`, with columns.

use super::problem::{Item, Problem, Shape};
use super::state::Piece;

/// Most plans tried (`max_search_iter`).
const TRIES: u32 = 20;

/// Weight of columns that travel against look-ups, where the hottest table is looked for (a
/// literal of the source).
const HOT_COLUMNS: f64 = 80.0;

/// All shards dealt out, or the table that found no room.
struct Dealt {
    pieces: Vec<Piece>,
    max: f64,
    stuck: Option<usize>,
}

/// The cheapest plan met that fits.
pub(super) fn search(problem: &Problem<'_>) -> Option<Vec<Piece>> {
    let mut best: Option<Dealt> = None;
    let mut offer = |dealt: Dealt| {
        let better = best.as_ref().is_none_or(|best| dealt.max < best.max);
        if dealt.stuck.is_none() && better {
            best = Some(dealt);
        }
    };
    offer(deal(problem, &problem.thriftiest()));
    let mut shapes: Vec<Shape> = problem.items.iter().map(Item::whole).collect();
    for _ in 0..TRIES {
        let dealt = deal(problem, &shapes);
        let split = match dealt.stuck {
            None => hottest(problem, &shapes),
            Some(item) => can_split(problem, item, shapes[item]).then_some(item),
        };
        offer(dealt);
        let Some(item) = split else { break };
        shapes[item] = halved(problem, &shapes, item);
    }
    best.map(|best| best.pieces)
}

/// The table with the heaviest shard that can be split.
fn hottest(problem: &Problem<'_>, shapes: &[Shape]) -> Option<usize> {
    let heat = |item: usize| {
        let (lookups, shape) = (problem.items[item].table.lookups(), shapes[item]);
        let columns = problem.items[item].widest(shape.blocks) as f64;
        columns * lookups / f64::from(shape.splits) + HOT_COLUMNS * columns
    };
    let splittable = (0..shapes.len()).filter(|&item| can_split(problem, item, shapes[item]));
    splittable.reduce(|best, next| if heat(next) > heat(best) { next } else { best })
}

/// Twice as many shards must find as many buckets.
fn can_split(problem: &Problem<'_>, item: usize, shape: Shape) -> bool {
    shape.shards() * 2 <= problem.buckets.count as usize && by_rows(problem, item, shape) != shape
}

fn by_rows(problem: &Problem<'_>, item: usize, shape: Shape) -> Shape {
    let freedom = &problem.items[item].freedom;
    if let Some(shapes) = &freedom.shapes {
        let finer = shapes.iter().find(|other| other.shards() > shape.shards());
        return finer.copied().unwrap_or(shape);
    }
    match shape.splits * 2 {
        splits if splits <= freedom.max_splits => Shape { splits, ..shape },
        _ => by_columns(problem, item, shape).unwrap_or(shape),
    }
}

fn by_columns(problem: &Problem<'_>, item: usize, shape: Shape) -> Option<Shape> {
    let item = &problem.items[item];
    let (step, width) = (item.freedom.step, item.widest(shape.blocks));
    let halves = width.is_multiple_of(2 * step) && width / 2 >= item.freedom.min_columns;
    (item.freedom.shapes.is_none() && halves).then_some(Shape { blocks: shape.blocks * 2, ..shape })
}

/// The better of twice the row splits and twice the column blocks, which is rows where columns are
/// too narrow.
fn halved(problem: &Problem<'_>, shapes: &[Shape], item: usize) -> Shape {
    let rows = by_rows(problem, item, shapes[item]);
    let Some(columns) = by_columns(problem, item, shapes[item]) else { return rows };
    let dealt = |shape| {
        let mut trial = shapes.to_vec();
        trial[item] = shape;
        deal(problem, &trial)
    };
    let (by_rows, by_columns) = (dealt(rows), dealt(columns));
    match (by_rows.stuck, by_columns.stuck) {
        (None, Some(_)) => rows,
        (Some(_), None) => columns,
        // Where both are stuck, what is placed so far decides.
        _ if by_rows.max > by_columns.max => columns,
        _ => rows,
    }
}

/// Deals out all shards, heavy ones first, each to the cheapest bucket that has room and no other
/// shard of the table.
fn deal(problem: &Problem<'_>, shapes: &[Shape]) -> Dealt {
    let model = &problem.buckets.model;
    let heat = |item: usize, columns: usize| {
        let per_column = model.work_ratio * problem.items[item].table.lookups()
            / f64::from(shapes[item].splits)
            + model.bandwidth_ratio;
        per_column * columns as f64
    };
    let mut shards = Vec::new();
    for (item, shape) in shapes.iter().enumerate() {
        let heated = problem.items[item]
            .widths(shape.blocks)
            .map(|columns| (heat(item, columns), item, columns));
        shards.extend(heated);
    }
    shards.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let count = problem.buckets.count as usize;
    let (mut cost, mut bytes) = (problem.base_cost.clone(), problem.base_bytes.clone());
    let mut taken = vec![false; count * shapes.len()];
    let mut dealt = Dealt { pieces: Vec::with_capacity(shards.len()), max: 0.0, stuck: None };
    'shards: for (_, item, columns) in shards {
        let splits = shapes[item].splits;
        let (more, needs) =
            (problem.cost(item, columns, splits), problem.bytes(item, columns, splits));
        let mut buckets = Vec::with_capacity(splits as usize);
        for _ in 0..splits {
            let free = |bucket: &usize| {
                !taken[item * count + bucket] && problem.budget - bytes[*bucket] >= needs
            };
            let cheaper =
                |best: usize, next: usize| if cost[next] < cost[best] { next } else { best };
            let Some(bucket) = (0..count).filter(free).reduce(cheaper) else {
                dealt.stuck = Some(item);
                break 'shards;
            };
            taken[item * count + bucket] = true;
            cost[bucket] += more;
            bytes[bucket] += needs;
            buckets.push(bucket as u32);
        }
        buckets.sort_unstable();
        dealt.pieces.push(Piece { item, columns, buckets });
    }
    dealt.max = cost.iter().copied().fold(0.0, f64::max);
    dealt
}
