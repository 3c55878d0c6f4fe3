//! The way of gradients to the replicas that sum them: [`Way`], the one of fewest bytes.

/// How replicas bring together the gradients of the rows of a stored part.
///
/// Each of `M` replicas that touched `n` of the `rows` rows, `union` different ones in all, receives
/// so many bytes, and so many counts from each of the others:
///
/// ```text
/// Gathered    (M - 1) n (8 + 4 dim)                1
/// Scattered   (M - 1)/M (n + union) (8 + 4 dim)    3
/// Dense       2 (M - 1)/M rows 4 dim               1
/// ```
///
/// with elements of 4 bytes. Every row is summed in the order of replicas, whatever the way, hence to the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// Every replica tells all others its rows and their gradients: few rows, few replicas.
    #[default]
    Gathered,
    /// Rows are dealt out to the replicas by number; each sums its own and tells all others.
    Scattered,
    /// All rows are summed, touched or not: rows that nearly every replica touches. That is fewer
    /// bytes than `Gathered` once a replica touches more than `2/M` of the rows (`FlexShard`
    /// reconstruction), and than `Scattered` once it touches nearly all.
    Dense,
}

/// A stored part whose gradients are summed over replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its place among the stored parts.
    pub(super) table: usize,
    pub(super) rows: usize,
    pub(super) dim: usize,
    /// Bytes of an element on the wire.
    pub(super) element_bytes: u32,
    /// How its gradients are summed in this step.
    pub(super) way: Way,
    /// Rows that the replicas touched in this step, those of several counted for each.
    pub(super) touched: u64,
    /// How far they touched the same rows in the step before.
    pub(super) overlap: Overlap,
}

/// Rows that replicas touched, and how many different ones these were; zero while unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overlap {
    pub(super) touched: u64,
    pub(super) distinct: u64,
}

/// Bytes of a row's number, and of a count.
const WORD: u128 = 8;

impl Part {
    /// The way of fewest bytes, where each replica touched as many rows as `touched` says: all
    /// replicas know that, and choose alike.
    pub(super) fn cheapest(&self, touched: &[u64]) -> Way {
        let replicas = touched.len() as u128;
        let all = u128::from(touched.iter().sum::<u64>());
        let union = u128::from(self.overlap.guess(touched, self.rows as u64));
        // Times M / (M - 1).
        let gradient = u128::from(self.element_bytes) * self.dim as u128;
        let gathered = replicas * all * (WORD + gradient);
        let scattered = (all + replicas * union) * (WORD + gradient) + 2 * WORD * replicas.pow(2);
        let dense = 2 * replicas * self.rows as u128 * gradient;
        if gathered <= scattered.min(dense) {
            Way::Gathered
        } else if scattered <= dense {
            Way::Scattered
        } else {
            Way::Dense
        }
    }
}

impl Overlap {
    /// About how many different rows replicas touched: the part that it was before. At first as
    /// many as if every row were as likely, which is at least what is expected of any rows that
    /// replicas draw alike (Jensen's inequality: `1 - (1 - p)^M` is concave in `p`).
    fn guess(self, touched: &[u64], rows: u64) -> u64 {
        let all: u64 = touched.iter().sum();
        if self.touched > 0 {
            let part = u128::from(all) * u128::from(self.distinct) / u128::from(self.touched);
            return (part as u64).min(rows);
        }
        let nobody: f64 = touched.iter().map(|&n| 1.0 - n as f64 / rows as f64).product();
        ((rows as f64 * (1.0 - nobody)).ceil() as u64).min(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rows: usize, dim: usize) -> Part {
        let (way, overlap) = (Way::default(), Overlap::default());
        Part { table: 0, rows, dim, element_bytes: 4, way, touched: 0, overlap }
    }

    fn check(rows: usize, touched: &[u64], overlap: Overlap, expect: Way) {
        let part = Part { overlap, ..part(rows, 64) };
        assert_eq!(part.cheapest(touched), expect, "{rows} rows, {touched:?}");
    }

    #[test]
    fn hot_parts_are_summed_whole_and_cold_ones_by_row() {
        let unknown = Overlap::default();
        let overlap = |distinct| Overlap { touched: 8000, distinct };
        check(100, &[0, 0], unknown, Way::Gathered);
        // Above 2/M of the rows, less what ids save.
        check(1000, &[900, 900], unknown, Way::Gathered);
        check(1000, &[980, 980], unknown, Way::Dense);
        check(1000, &[900; 8], unknown, Way::Scattered);
        check(1000, &[960; 8], unknown, Way::Dense);
        check(1_000_000, &[1000; 8], unknown, Way::Gathered);
        // Replicas that touch the same rows.
        check(1_000_000, &[1000; 8], overlap(4000), Way::Scattered);
        check(1_000_000, &[1000; 8], overlap(7900), Way::Gathered);
        check(3000, &[1000; 8], overlap(1500), Way::Scattered);
    }
}
