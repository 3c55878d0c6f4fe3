//! The solver against every cut, and every assignment, of small tables.

use crate::common::machines;
use emb_shard::{
    Access, Histogram, Layout, Mesh, Objective, RowFrequencies, TierCut, TierKind, TierSolution,
    TierSolver, TieredTable, Topology, Travel,
};
use proptest::prelude::*;

/// Machines of `N` nodes with `G` ranks each.
#[derive(Clone, Debug)]
struct Machines {
    nodes: u32,
    ranks: u32,
    topology: Topology,
}

/// What a row costs in each tier: seconds and bytes; replicated, in a node, the rest.
type Costs = [(f64, f64); 3];

impl Machines {
    fn new(nodes: u32, ranks: u32, ratio: f64) -> Self {
        Self { nodes, ranks, topology: machines(nodes, ranks, ratio, 1 << 40) }
    }

    fn solver(&self) -> TierSolver {
        let world = self.nodes * self.ranks;
        let kind = |group| {
            let mesh = Mesh::new(world, group, Layout::Contiguous).expect("divides");
            TierKind::new(mesh, self.ranks, &self.topology, Objective::StepSeconds).expect("valid")
        };
        TierSolver::new(kind(world), Some(kind(self.ranks)), Some(kind(1)))
    }

    /// The published costs of one row, and bytes in parts of a row.
    fn costs(&self, table: &TieredTable<'_>, row: u64) -> Costs {
        let (nodes, ranks) = (f64::from(self.nodes), f64::from(self.ranks));
        let world = nodes * ranks;
        let levels = self.topology.levels();
        let (near, far) = (1.0 / levels[0].bandwidth(), 1.0 / levels[1].bandwidth());
        let p = table.frequencies.probability(row).expect("a row");
        let x = match table.travel {
            Travel::Distinct => 1.0 - (1.0 - p).powf(table.lookups),
            _ => table.lookups * p,
        };
        let travels = 2.0 * table.row_bytes + table.id_bytes;
        let kept = 4.0 * table.row_bytes + 2.0 * table.id_bytes;
        let (stored, summed) = (table.stored_bytes, table.summed_bytes);
        let between = 2.0 * (nodes - 1.0) / (nodes * ranks) * far * summed;
        let inside = 2.0 * (ranks - 1.0) / ranks * near * summed;
        let rest = (nodes - 1.0) / nodes * far + (ranks - 1.0) / world * near;
        [
            (inside + between, stored + summed),
            (
                x * (ranks - 1.0) / ranks * near * travels + between,
                (stored + summed) / ranks + x * kept,
            ),
            (x * rest * travels, stored / world + x * kept),
        ]
    }

    /// `[rows]`
    fn table_costs(&self, table: &TieredTable<'_>) -> Vec<Costs> {
        (0..table.frequencies.rows()).map(|row| self.costs(table, row)).collect()
    }
}

/// Sum over the rows of a cut.
fn sum(costs: &[Costs], cut: TierCut, of: impl Fn((f64, f64)) -> f64) -> f64 {
    let tier = |row: u64| {
        if row < cut.replicated {
            0
        } else if row < cut.hot() {
            1
        } else {
            2
        }
    };
    costs.iter().zip(0..).map(|(costs, row)| of(costs[tier(row)])).sum()
}

fn all_cuts(rows: u64) -> impl Iterator<Item = TierCut> {
    (0..=rows).flat_map(move |replicated| {
        (0..=rows - replicated).map(move |in_node| TierCut { replicated, in_node })
    })
}

/// A law of random counts, or of Zipf.
fn any_law(rows: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = RowFrequencies> {
    let zipf = (rows.clone(), 0.0..2.0_f64).prop_map(|(rows, exponent)| {
        RowFrequencies::new(&Access::Zipf { exponent }, rows).expect("valid")
    });
    let most = *rows.end() as usize;
    let counts = prop::collection::vec(1_u64..500, *rows.start() as usize..=most);
    let measured = counts.prop_map(|counts| {
        let rows = counts.len() as u64;
        let histogram = Histogram::of_counts(counts).expect("counts above 0");
        RowFrequencies::new(&Access::Histogram(histogram), rows).expect("valid")
    });
    prop_oneof![zipf, measured]
}

/// A table over `law`; look-ups from few to many a row.
fn table(law: &RowFrequencies, density: f64, dim: u32, distinct: bool) -> TieredTable<'_> {
    let row = 4.0 * f64::from(dim);
    TieredTable {
        frequencies: law,
        lookups: density * law.rows() as f64,
        travel: if distinct { Travel::Distinct } else { Travel::Lookups },
        row_bytes: row,
        id_bytes: 8.0,
        summed_bytes: row,
        stored_bytes: row + 4.0,
        least_replicated: 0,
    }
}

fn any_machines() -> impl Strategy<Value = Machines> {
    (2_u32..=16, 2_u32..=8, 1.0..20.0_f64).prop_map(|(n, g, ratio)| Machines::new(n, g, ratio))
}

type Shape = (RowFrequencies, f64, u32, bool);

fn any_shape(rows: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Shape> {
    (any_law(rows), 0.02..5.0_f64, 1_u32..64, any::<bool>())
}

fn tables(shapes: &[Shape]) -> Vec<TieredTable<'_>> {
    shapes
        .iter()
        .map(|(law, density, dim, distinct)| table(law, *density, *dim, *distinct))
        .collect()
}

/// A budget between the fewest bytes and those without a limit.
fn budget(solver: &TierSolver, tables: &[TieredTable<'_>], part: f64) -> f64 {
    let least = solver.leanest(tables).expect("valid").bytes;
    let most = solver.solve(tables, f64::INFINITY).expect("valid").expect("no limit").bytes;
    // Whole rows may make the leanest cuts the larger ones.
    least + part * (most - least).max(0.0)
}

fn solve(solver: &TierSolver, tables: &[TieredTable<'_>], budget: f64) -> TierSolution {
    let found = solver.solve(tables, budget).expect("valid").expect("more than the least");
    assert!(found.bytes <= budget, "{} of {budget}", found.bytes);
    assert!(solver.bytes(tables, &found.cuts).expect("valid") <= budget);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With the multiplier found, no cut of any table is better than one within a row.
    #[test]
    fn thresholds_are_within_a_row_of_the_best_of_all_cuts(
        machines in any_machines(),
        shapes in prop::collection::vec(any_shape(1..=200), 2..=3),
        part in 0.0..1.2_f64,
    ) {
        let (solver, tables) = (machines.solver(), tables(&shapes));
        let found = solve(&solver, &tables, budget(&solver, &tables, part));
        for (table, &cut) in tables.iter().zip(&found.cuts) {
            let costs = machines.table_costs(table);
            let price = |(seconds, bytes): (f64, f64)| seconds + found.multiplier * bytes;
            // Prefix sums, so that every cut takes constant time.
            let prefix = |tier: usize| {
                let mut sums = vec![0.0];
                sums.extend(costs.iter().scan(0.0, |sum, costs| {
                    *sum += price(costs[tier]);
                    Some(*sum)
                }));
                sums
            };
            let sums = [prefix(0), prefix(1), prefix(2)];
            let rows = costs.len() as u64;
            let of = |cut: TierCut| {
                let (a, b) = (cut.replicated as usize, cut.hot() as usize);
                sums[0][a] + sums[1][b] - sums[1][a] + sums[2][rows as usize] - sums[2][b]
            };
            let best = all_cuts(rows).map(of).fold(f64::INFINITY, f64::min);
            let near = all_cuts(rows).filter(|other| {
                other.replicated.abs_diff(cut.replicated) <= 1 && other.hot().abs_diff(cut.hot()) <= 1
            });
            let near = near.map(of).fold(f64::INFINITY, f64::min);
            prop_assert!(near <= best * (1.0 + 1e-9), "{cut:?}: {near} for {best}");
            prop_assert!((of(cut) - sum(&costs, cut, price)).abs() <= 1e-9 * of(cut));
        }
    }

    /// Two thresholds lose nothing against any assignment of rows to tiers.
    #[test]
    fn no_assignment_of_rows_to_tiers_is_better_than_two_thresholds(
        machines in any_machines(), shape in any_shape(1..=7), part in 0.0..1.2_f64,
    ) {
        let shapes = [shape];
        let (solver, tables) = (machines.solver(), tables(&shapes));
        let found = solve(&solver, &tables, budget(&solver, &tables, part));
        let costs = machines.table_costs(&tables[0]);
        let price = |(seconds, bytes): (f64, f64)| seconds + found.multiplier * bytes;
        let mut best = f64::INFINITY;
        for assignment in 0..3_usize.pow(costs.len() as u32) {
            let tier = |row: usize| assignment / 3_usize.pow(row as u32) % 3;
            let rows = costs.iter().enumerate().map(|(row, costs)| price(costs[tier(row)]));
            best = best.min(rows.sum());
        }
        let cuts = all_cuts(costs.len() as u64).map(|cut| sum(&costs, cut, price));
        prop_assert!(cuts.fold(f64::INFINITY, f64::min) <= best * (1.0 + 1e-9));
    }

    /// What the solver says of a cut is what its rows cost one by one.
    #[test]
    fn seconds_and_bytes_are_those_of_the_rows(
        machines in any_machines(), shape in any_shape(1..=200), a in 0.0..1.0_f64, b in 0.0..1.0_f64,
    ) {
        let shapes = [shape];
        let (solver, tables) = (machines.solver(), tables(&shapes));
        let rows = tables[0].frequencies.rows();
        let replicated = (a * rows as f64) as u64;
        let cut = TierCut { replicated, in_node: (b * (rows - replicated) as f64) as u64 };
        let costs = machines.table_costs(&tables[0]);
        let seconds = solver.seconds(&tables, &[cut]).expect("valid");
        let expected = sum(&costs, cut, |(seconds, _)| seconds);
        prop_assert!((seconds / expected - 1.0).abs() < 1e-9, "{seconds} for {expected}");
        // Ranks store whole rows: less than one more in each of two tiers.
        let bytes = solver.bytes(&tables, &[cut]).expect("valid");
        let expected = sum(&costs, cut, |(_, bytes)| bytes);
        let row = tables[0].stored_bytes + tables[0].summed_bytes;
        prop_assert!(bytes >= expected * (1.0 - 1e-9), "{bytes} for {expected}");
        prop_assert!(bytes < expected + 2.0 * row + 1e-6 * expected, "{bytes} for {expected}");
    }

    /// Of all cuts of all tables that fit, none is better by more than rows that do not fit whole
    /// are worth.
    #[test]
    fn no_cuts_that_fit_are_better_by_more_than_rows_are_worth(
        machines in any_machines(),
        shapes in prop::collection::vec(any_shape(1..=16), 2..=2),
        part in 0.0..1.0_f64,
    ) {
        let (solver, tables) = (machines.solver(), tables(&shapes));
        let budget = budget(&solver, &tables, part);
        let found = solve(&solver, &tables, budget);
        let all: Vec<Vec<(f64, f64)>> = tables.iter().map(|table| {
            all_cuts(table.frequencies.rows()).map(|cut| {
                let one = [*table];
                let seconds = solver.seconds(&one, &[cut]).expect("valid");
                (seconds, solver.bytes(&one, &[cut]).expect("valid"))
            }).collect()
        }).collect();
        let mut best = f64::INFINITY;
        for (seconds, bytes) in &all[0] {
            for (more_seconds, more_bytes) in &all[1] {
                if bytes + more_bytes <= budget {
                    best = best.min(seconds + more_seconds);
                }
            }
        }
        // A table's parts are up to two rows longer than in the mean, a row at each threshold may
        // be on either side, and one did not fit.
        let row = |table: &TieredTable<'_>| 5.0 * (table.stored_bytes + table.summed_bytes);
        let slack = found.multiplier * tables.iter().map(row).sum::<f64>();
        prop_assert!(found.seconds <= best * (1.0 + 1e-9) + slack, "{} for {best}, {found:?}", found.seconds);
    }
}

#[test]
fn a_thousand_million_rows_take_no_time() {
    let law = RowFrequencies::new(&Access::Zipf { exponent: 1.05 }, 1_000_000_000).expect("valid");
    let machines = Machines::new(16, 8, 12.0);
    let solver = machines.solver();
    let many = vec![TieredTable { lookups: 1e6, ..table(&law, 1.0, 128, false) }; 100];
    let most = solver.solve(&many, f64::INFINITY).expect("valid").expect("no limit");
    let least = solver.leanest(&many).expect("valid").bytes;
    let start = std::time::Instant::now();
    let found = solve(&solver, &many, f64::midpoint(least, most.bytes));
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("100 tables of 10^9 rows under a budget: {:.1} ms", seconds * 1e3);
    assert!(found.multiplier > 0.0 && found.cuts[0].replicated > 0);
    assert!(seconds < 2.0, "{seconds} s");
}
