//! Zipf's law over any number of rows in constant time.
//!
//! Sums over rows are taken one by one where they are few or hot, and by the Euler-Maclaurin
//! formula behind:
//! `sum f(x), x = A..=B = integral of f + (f(A) + f(B)) / 2 + (f'(B) - f'(A)) / 12 - ...`
//! (Graham, Knuth, Patashnik, *Concrete Mathematics*, 9.5).

use super::frequencies::touched;

/// `x^-a` over `x = 1..=rows`, divided by its sum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zipf {
    exponent: f64,
    /// Sums of the first `0, 1, .. , HEAD` powers.
    head: Vec<f64>,
    /// Sum of all powers.
    total: f64,
    /// `ln(1 - p)` of the first [`TOUCHED_HEAD`] ranks.
    head_logs: Vec<f64>,
}

/// Powers that are summed one by one. The first term left out of the formula, `f'''''(x) / 30240`,
/// is below 2e-13 there for every exponent.
const HEAD: u64 = 64;

/// Rows whose chance to be touched is summed one by one.
const TOUCHED_HEAD: u64 = 1024;

impl Zipf {
    pub(super) fn new(exponent: f64, rows: u64) -> Self {
        let mut head = vec![0.0];
        let mut sum = 0.0;
        for x in 1..=rows.min(HEAD) {
            sum += (x as f64).powf(-exponent);
            head.push(sum);
        }
        let mut zipf = Self { exponent, head, total: 1.0, head_logs: Vec::new() };
        zipf.total = zipf.power_sum(rows);
        let logs = (1..=rows.min(TOUCHED_HEAD)).map(|x| (-zipf.at(x as f64)).ln_1p());
        zipf.head_logs = logs.collect();
        zipf
    }

    pub(super) fn probability(&self, rank: u64) -> f64 {
        self.at(rank as f64 + 1.0)
    }

    pub(super) fn share_of_top(&self, rows: u64) -> f64 {
        (self.power_sum(rows) / self.total).min(1.0)
    }

    /// Sum over the ranks `start..end` of the chance that `lookups` draws touch them.
    pub(super) fn sum_touched(&self, start: u64, end: u64, lookups: f64) -> f64 {
        if lookups == 0.0 {
            return 0.0;
        }
        // Ranks `start..end` are `x = start + 1..=end`.
        let behind = start.max(TOUCHED_HEAD).min(end);
        let logs =
            &self.head_logs[start.min(TOUCHED_HEAD) as usize..end.min(TOUCHED_HEAD) as usize];
        let hot: f64 = logs.iter().map(|log| -(lookups * log).exp_m1()).sum();
        if end - behind > TOUCHED_HEAD {
            return hot + self.touched_tail(behind as f64 + 1.0, end as f64, lookups);
        }
        let one_by_one = (behind + 1..=end).map(|x| touched(self.at(x as f64), lookups));
        hot + one_by_one.sum::<f64>()
    }

    /// Probability at `x`, from 1.
    fn at(&self, x: f64) -> f64 {
        x.powf(-self.exponent) / self.total
    }

    /// `1^-a + .. + rows^-a`.
    fn power_sum(&self, rows: u64) -> f64 {
        if rows <= HEAD {
            return self.head[rows as usize];
        }
        let (a, from, to) = (self.exponent, HEAD as f64, rows as f64);
        let power = |x: f64| x.powf(-a);
        let slope = |x: f64| -a * x.powf(-a - 1.0);
        let third = |x: f64| -a * (a + 1.0) * (a + 2.0) * x.powf(-a - 3.0);
        let integral = integral_of_power(a, from, to);
        // The head counts `f(HEAD)` whole, the trapezoid half of it.
        self.head[HEAD as usize]
            + integral
            + (power(to) - power(from)) / 2.0
            + (slope(to) - slope(from)) / 12.0
            - (third(to) - third(from)) / 720.0
    }

    /// The chances to be touched of `x = from..=to`, `from` behind [`TOUCHED_HEAD`].
    ///
    /// The chance is a smooth function of `ln x` with a step of width `1 / a`, so its integral is
    /// taken over `ln x` by Gauss-Legendre rules of eight points on pieces of at most half of that.
    fn touched_tail(&self, from: f64, to: f64, lookups: f64) -> f64 {
        let chance = |x: f64| touched(self.at(x), lookups);
        let slope = |x: f64| {
            let p = self.at(x);
            -self.exponent / x * lookups * p * ((lookups - 1.0) * (-p).ln_1p()).exp()
        };
        let (low, high) = (from.ln(), to.ln());
        let pieces = ((high - low) * 2.0 * self.exponent.max(1.0)).ceil().max(1.0);
        let width = (high - low) / pieces;
        let mut integral = 0.0;
        for piece in 0..pieces as u32 {
            let middle = low + (f64::from(piece) + 0.5) * width;
            for (node, weight) in GAUSS_LEGENDRE {
                for t in [middle - node * width / 2.0, middle + node * width / 2.0] {
                    let x = t.exp();
                    integral += weight * width / 2.0 * x * chance(x);
                }
            }
        }
        integral + f64::midpoint(chance(from), chance(to)) + (slope(to) - slope(from)) / 12.0
    }
}

/// Nodes (of both signs) and weights on `-1..1` of the rule of eight points.
const GAUSS_LEGENDRE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_3),
];

/// Integral of `x^-a` over `from..to`, sound near `a = 1`.
fn integral_of_power(a: f64, from: f64, to: f64) -> f64 {
    let log = (to / from).ln();
    let rise = 1.0 - a;
    if rise == 0.0 { log } else { from.powf(rise) * (rise * log).exp_m1() / rise }
}
