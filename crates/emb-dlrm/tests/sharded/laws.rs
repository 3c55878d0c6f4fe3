//! How the ids of a table are drawn: [`Law`].

use crate::random_plans::permutation;
use crate::support::Random;

/// Rows by how often they are looked up.
pub(crate) struct Law {
    /// Up to and with each row, in the order of frequency.
    sums: Vec<f64>,
    /// Rows by frequency rank; none where they are in this order.
    rows: Vec<u64>,
}

impl Law {
    /// Row `r` has the probability `(r + 1)^-exponent`, up to a factor.
    pub(crate) fn zipf(rows: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=rows).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { sums: sums.collect(), rows: Vec::new() }
    }

    /// The same law with the hot rows anywhere.
    pub(crate) fn anywhere(self, random: &mut Random) -> Self {
        let rows = permutation(random, self.sums.len() as u64);
        Self { rows, ..self }
    }

    /// The place of each row in the order of frequency.
    pub(crate) fn places(&self) -> Vec<u64> {
        let mut places: Vec<u64> = (0..self.sums.len() as u64).collect();
        for (place, &row) in self.rows.iter().enumerate() {
            places[row as usize] = place as u64;
        }
        places
    }

    pub(crate) fn id(&self, random: &mut Random) -> i64 {
        let all = self.sums[self.sums.len() - 1];
        let point = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        let rank = self.sums.partition_point(|&sum| sum <= point).min(self.sums.len() - 1);
        self.rows.get(rank).map_or(rank as i64, |&row| row as i64)
    }
}
