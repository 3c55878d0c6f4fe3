//! Where a table lives, in one line: [`in_words`].

use emb_shard::{
    Exchange, Layout, Path, ReplicaSync, RowMapKind, RowOrder, RowOrderKind, TablePlan, Tier,
};

/// Spans of positions that are written out before the rest is counted.
const SPANS: usize = 6;

/// Where a table lives: `table_wise on 3`, `row_wise, 4 replicas, sync weights/1`,
/// `rows 0..9: data_parallel; rows 9..80: row_wise`. Numbers are positions in a sharding group.
pub fn in_words(placed: &TablePlan) -> String {
    let only = placed.tiers.len() == 1;
    let tiers = placed.tiers.iter().map(|tier| {
        let text = tier_in_words(tier);
        if only { text } else { format!("rows {}: {text}", tier.rows) }
    });
    let text = tiers.collect::<Vec<_>>().join("; ");
    match placed.order.as_ref().map(RowOrder::kind) {
        None => text,
        Some(RowOrderKind::HotFirst(hot)) => format!("{text}; {} hot rows first", hot.len()),
        Some(RowOrderKind::Full(_)) => format!("{text}; rows in an order of their own"),
    }
}

fn tier_in_words(tier: &Tier) -> String {
    let kind = tier.kind();
    let mut text = kind.to_owned();
    let rows_cut = tier.blocks.iter().any(|block| block.owners.len() > 1);
    match kind {
        "data_parallel" | "row_wise" => {}
        "grid" => {
            let blocks: Vec<String> =
                tier.blocks.iter().map(|block| spans(block.owners.iter())).collect();
            text = format!("{text} on {}", blocks.join(" | "));
        }
        _ => {
            let owners = tier.blocks.iter().flat_map(|block| block.owners.iter());
            text = format!("{text} on {}", spans(owners));
        }
    }
    let of_kind = |test: fn(&RowMapKind<'_>) -> bool| {
        rows_cut && tier.blocks.iter().any(|block| test(&block.map.kind()))
    };
    if of_kind(|kind| matches!(kind, RowMapKind::Modulo { .. })) {
        text.push_str(", round robin");
    }
    if of_kind(|kind| matches!(kind, RowMapKind::Permuted { .. })) {
        text.push_str(", permuted");
    }
    let replicas = tier.mesh.replicas();
    let plain = tier.mesh.group_ranks() == 1;
    if replicas > 1 && !plain {
        text = format!("{text}, {replicas} replicas");
        if tier.mesh.layout() == Layout::Contiguous {
            text.push_str(" of neighbours");
        }
    }
    if !matches!(tier.exchange, Exchange::Local | Exchange::Reduce { over: Path::Flat }) {
        text = format!("{text}, {}", tier.exchange);
    }
    match tier.sync {
        ReplicaSync::None => {}
        ReplicaSync::Gradients if plain => {}
        sync => text = format!("{text}, sync {sync}"),
    }
    text
}

/// `0..=7`, `1, 3, 5`: positions in their order, neighbours together.
fn spans(positions: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for position in positions {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == position => *last = position,
            _ => runs.push((position, position)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}..={last}"),
    };
    let shown: Vec<String> = runs.iter().take(SPANS).map(run).collect();
    let more = runs.len().saturating_sub(SPANS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use emb_shard::{Mesh, Placement, Plan, PlanBuilder, RowCut, Table, TableOptions, Tables};

    fn check(placement: Placement, group: u32, expected: &str) {
        let table = Table::new("a", 1000, 16, TableOptions::default()).expect("valid");
        let tables = Tables::new(vec![table]).expect("valid");
        let mesh = Mesh::new(8, group, Layout::Strided).expect("valid");
        let plan: Plan =
            PlanBuilder::new(mesh).node_ranks(4).all(placement).build(&tables).expect("possible");
        assert_eq!(in_words(&plan.placed().as_slice()[0]), expected);
    }

    #[test]
    fn placements_are_told_in_one_line() {
        check(Placement::TableWise { owner: Some(3) }, 8, "table_wise on 3");
        check(Placement::RowWise { cut: RowCut::Ceil }, 8, "row_wise");
        check(
            Placement::RowWise { cut: RowCut::Modulo },
            4,
            "row_wise, round robin, 2 replicas, sync weights/1",
        );
        check(Placement::DataParallel, 8, "data_parallel");
        check(Placement::ColumnWise { parts: None }, 8, "column_wise on 0..=7");
        check(
            Placement::TableRowWise { cut: RowCut::Even, node: Some(1) },
            8,
            "table_row_wise on 4..=7",
        );
        check(Placement::Grid { cut: RowCut::Even, parts: None }, 8, "grid on 0..=3 | 4..=7");
        assert_eq!(spans([0, 1, 4, 6, 7, 8].into_iter()), "0, 1, 4, 6..=8");
        let every_second = (0..10).map(|position| position * 2);
        assert_eq!(spans(every_second), "0, 2, 4, 6, 8, 10 and 4 more");
    }
}
