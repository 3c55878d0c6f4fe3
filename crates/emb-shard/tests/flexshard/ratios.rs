//! How many times fewer bytes travel between nodes than row-wise without de-duplication: what is
//! left of the gain of tiers once duplicates are gone. The published table, line by line.

use crate::common::zipf;
use crate::data;
use emb_shard::{Access, Bucket, Duplicates, Histogram, RowFrequencies, TierCut, TieredLookups};
use std::num::NonZeroU32;

/// Links inside a node are so much faster.
const RATIO: f64 = 12.0;

/// Times fewer bytes between nodes, by column of the table; 0 where it has no figure.
#[derive(Clone, Copy, Debug)]
struct Ratios {
    by_rank: f64,
    by_node: f64,
    tiers: f64,
    tiers_by_node: f64,
    synced_every_8: f64,
}

impl Ratios {
    fn columns(self) -> [(&'static str, f64); 5] {
        [
            ("de-duplicated by rank", self.by_rank),
            ("de-duplicated by node", self.by_node),
            ("tiers", self.tiers),
            ("tiers, by node", self.tiers_by_node),
            ("tiers, by node, synced every 8 steps", self.synced_every_8),
        ]
    }
}

/// The cut that costs least time as published: a row is in a node if it is asked for more than
/// `1 / (G - (G - 1) / ratio)` times by a rank, on every rank if more than once.
fn published_cut(table: &TieredLookups<'_>) -> TierCut {
    let node_ranks = f64::from(table.node_ranks);
    let above = |x: f64| {
        let (mut low, mut high) = (0, table.frequencies.rows());
        while low < high {
            let middle = u64::midpoint(low, high);
            let asked = table.lookups * table.frequencies.probability(middle).expect("a row");
            if asked > x { low = middle + 1 } else { high = middle }
        }
        low
    };
    let replicated = above(1.0);
    let hot = above(1.0 / (node_ranks - (node_ranks - 1.0) / RATIO)).max(replicated);
    TierCut { replicated, in_node: hot - replicated }
}

fn ratios(table: &TieredLookups<'_>, cut: TierCut) -> Ratios {
    let between = |cut, duplicates, every| {
        let every = NonZeroU32::new(every).expect("above 0");
        let traffic = table.traffic_of_syncs(cut, duplicates, every).expect("of the table");
        traffic.vectors().inter_node
    };
    let base = between(TierCut::default(), Duplicates::Kept, 1);
    Ratios {
        by_rank: base / between(TierCut::default(), Duplicates::PerRank, 1),
        by_node: base / between(TierCut::default(), Duplicates::PerNode, 1),
        tiers: base / between(cut, Duplicates::Kept, 1),
        tiers_by_node: base / between(cut, Duplicates::PerNode, 1),
        synced_every_8: base / between(cut, Duplicates::PerNode, 8),
    }
}

/// Prints a line of the table and checks it within a tenth.
fn check(name: &str, table: &TieredLookups<'_>, cut: TierCut, published: Ratios) {
    let found = ratios(table, cut);
    let mut text = format!("{name}, {} hot rows:", cut.hot());
    let mut wrong = Vec::new();
    for ((column, found), (_, published)) in found.columns().into_iter().zip(published.columns()) {
        if published == 0.0 {
            continue;
        }
        text = format!("{text} {column} {found:.2} ({published}),");
        if (found / published - 1.0).abs() > 0.1 {
            wrong.push(format!("{column}: {found:.3}, published {published}"));
        }
    }
    eprintln!("{text}");
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

fn check_zipf(exponent: f64, rows: u64, lookups: f64, published: [f64; 4]) {
    let law = RowFrequencies::new(&Access::Zipf { exponent }, rows).expect("valid");
    let table = TieredLookups { frequencies: &law, lookups, nodes: 16, node_ranks: 8 };
    let [by_rank, by_node, tiers, tiers_by_node] = published;
    let published = Ratios { by_rank, by_node, tiers, tiers_by_node, synced_every_8: 0.0 };
    let name = format!("Zipf {exponent}, {rows} rows, {lookups} look-ups");
    check(&name, &table, published_cut(&table), published);
}

#[test]
fn tiers_gain_less_than_deduplication_by_node_under_zipf_laws() {
    check_zipf(1.05, 10_000_000, 102_400.0, [2.7, 3.8, 3.4, 3.7]);
    check_zipf(1.05, 1_000_000, 102_400.0, [3.3, 5.4, 4.7, 5.2]);
    check_zipf(1.2, 10_000_000, 102_400.0, [6.1, 9.6, 8.7, 9.3]);
    check_zipf(1.05, 10_000_000, 1_020_000.0, [3.9, 6.3, 5.5, 6.1]);
}

#[test]
fn deduplication_by_node_moves_six_times_fewer_bytes_between_nodes() {
    let law = RowFrequencies::new(&Access::Zipf { exponent: 1.05 }, 10_000_000).expect("valid");
    let table = TieredLookups { frequencies: &law, lookups: 1.02e6, nodes: 16, node_ranks: 8 };
    let found = ratios(&table, TierCut::default()).by_node;
    // The same, row by row: a node of 8 ranks touches a row with chance 1 - (1 - p)^(8 n).
    let touched =
        zipf(1.05, 10_000_000).into_iter().map(|p| -(8.0 * 1.02e6 * (-p).ln_1p()).exp_m1());
    let expected = 8.0 * 1.02e6 / touched.sum::<f64>();
    eprintln!("de-duplicated by node: {found:.4} x fewer bytes between nodes");
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {expected}");
    assert!(found >= 6.2, "{found}");
}

#[test]
fn deduplication_by_node_never_moves_more_between_nodes_than_tiers_and_more_inside() {
    let law = RowFrequencies::new(&Access::Zipf { exponent: 1.05 }, 10_000_000).expect("valid");
    let table = TieredLookups { frequencies: &law, lookups: 102_400.0, nodes: 16, node_ranks: 8 };
    let of = |cut, duplicates| table.traffic(cut, duplicates).expect("valid").vectors();
    let by_node = of(TierCut::default(), Duplicates::PerNode);
    for hot in [1, 100, 10_000, 40_000, 1_000_000] {
        let cut = TierCut { replicated: hot / 5, in_node: hot - hot / 5 };
        assert!(by_node.inter_node <= of(cut, Duplicates::PerNode).inter_node, "{hot}");
    }
    // The published figures: from 11 to 67 thousand vectors a rank.
    let row_wise = of(TierCut::default(), Duplicates::Kept);
    assert!((row_wise.in_node / 11e3 - 1.0).abs() < 0.05, "{}", row_wise.in_node);
    assert!((by_node.in_node / 67e3 - 1.0).abs() < 0.05, "{}", by_node.in_node);
}

/// The batch of the first line of a year: its look-ups, and the histogram of how often its rows
/// are looked up.
///
/// Shares are rounded to three decimals. The first bin has rows looked up once, so that its
/// look-ups are its rows. A bin whose mean count is not inside it, because hardly any of the rows
/// are there, gets as many rows as its look-ups make with the mean count three quarters of its
/// largest, or twice 32,768 in the last one.
fn batch_of(year: &str) -> Option<(f64, RowFrequencies)> {
    let text = data::text("dlrm_datasets_locality.csv")?;
    let line = text.lines().find(|line| line.starts_with(year)).expect("a batch of the year");
    let numbers: Vec<f64> =
        line.split(',').skip(4).map(|cell| cell.parse().expect("a number")).collect();
    let (indices, rows) = (numbers[0], numbers[1]);
    let (row_shares, index_shares) = (&numbers[2..19], &numbers[19..36]);
    let mut buckets = Vec::new();
    for bin in 0..17 {
        let lookups = index_shares[bin] * indices;
        let most = f64::from(1_u32 << bin);
        let inside = |rows: f64| {
            let mean = lookups / rows;
            mean > most / 2.0 && (mean <= most || bin == 16)
        };
        let rows = match row_shares[bin] * rows {
            _ if bin == 0 => lookups,
            rows if rows > 0.0 && inside(rows) => rows,
            _ => lookups / if bin == 16 { most } else { 0.75 * most },
        };
        buckets.push(Bucket { rows: rows.round() as u64, lookups: lookups.round() as u64 });
    }
    buckets.reverse();
    let all = buckets.iter().map(|bucket| bucket.lookups).sum::<u64>() as f64;
    let all_rows = buckets.iter().map(|bucket| bucket.rows).sum();
    let histogram = Histogram::new(buckets).expect("descending");
    let law = RowFrequencies::new(&Access::Histogram(histogram), all_rows).expect("valid");
    Some((all, law))
}

/// The batch is global: 1/128 of its look-ups are a rank's.
#[test]
fn tiers_gain_less_than_deduplication_by_node_for_measured_batches() {
    let Some((lookups, law)) = batch_of("2022") else { return };
    let large =
        TieredLookups { frequencies: &law, lookups: lookups / 128.0, nodes: 16, node_ranks: 8 };
    let cut = published_cut(&large);
    assert!((cut.hot() as f64 / 12.7e6 - 1.0).abs() < 0.01, "{}", cut.hot());
    let published =
        Ratios { by_rank: 1.8, by_node: 2.9, tiers: 2.5, tiers_by_node: 2.9, synced_every_8: 4.2 };
    check("Meta 2022, 16 x 8", &large, cut, published);

    // On 4 x 4 ranks the published figures are those of the same hot rows, found again here as the
    // rows that a rank of these asks for more than once. The best cut there has three times as
    // many, and gains more without de-duplication.
    let small =
        TieredLookups { frequencies: &law, lookups: lookups / 16.0, nodes: 4, node_ranks: 4 };
    let best = published_cut(&small);
    let same = TierCut { replicated: best.replicated, in_node: 0 };
    assert_eq!(same.hot(), cut.hot());
    let published =
        Ratios { by_rank: 2.9, by_node: 5.5, tiers: 3.4, tiers_by_node: 5.5, synced_every_8: 6.6 };
    check("Meta 2022, 4 x 4", &small, same, published);
    eprintln!("Meta 2022, 4 x 4, best cut of {} hot rows: {:?}", best.hot(), ratios(&small, best));
    assert!(ratios(&small, best).tiers > 4.5);

    let Some((lookups, law)) = batch_of("2021") else { return };
    let table =
        TieredLookups { frequencies: &law, lookups: lookups / 128.0, nodes: 16, node_ranks: 8 };
    let published =
        Ratios { by_rank: 1.5, by_node: 2.2, tiers: 1.9, tiers_by_node: 2.2, synced_every_8: 2.75 };
    check("Meta 2021, 16 x 8", &table, published_cut(&table), published);
}
