//! Bias correction of moving averages that start at zero.

/// The two corrections of Adam at one step (Kingma and Ba, arXiv 1412.6980, algorithm 1).
///
/// The step is the *global* one: a row that is touched for the first time at step 1000 is corrected
/// like every other row, because its moments count as zero in the steps before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiasCorrection {
    /// `1 - beta1^t`.
    pub first: f64,
    /// `1 - beta2^t`.
    pub second: f64,
}

impl BiasCorrection {
    /// The corrections of step `step`, counted from 1.
    ///
    /// # Panics
    /// When `step` is 0: both corrections would be 0 and every weight would become NaN.
    pub fn at(beta1: f64, beta2: f64, step: u64) -> Self {
        assert!(step >= 1, "steps are counted from 1");
        Self { first: 1.0 - power(beta1, step), second: 1.0 - power(beta2, step) }
    }
}

/// `base^exponent` by repeated squaring: multiplications only, so every machine gets the same bits.
pub(crate) fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_agrees_with_the_library() {
        for exponent in [0_u64, 1, 2, 3, 10, 31, 1000, 123_457, u64::MAX] {
            for base in [0.0, 0.5, 0.9, 0.999, 1.0] {
                let expected = f64::powf(base, exponent as f64);
                let got = power(base, exponent);
                // What counts is the absolute error of 1 - beta^t.
                assert!((got - expected).abs() <= 1e-12, "{base}^{exponent}: {got}");
            }
        }
    }

    #[test]
    fn corrections_go_to_one() {
        let one = BiasCorrection::at(0.9, 0.999, 1);
        assert!((one.first - 0.1).abs() < 1e-15 && (one.second - 0.001).abs() < 1e-15);
        assert_eq!(
            BiasCorrection::at(0.9, 0.999, 1_000_000_000),
            BiasCorrection { first: 1.0, second: 1.0 }
        );
    }

    #[test]
    #[should_panic(expected = "counted from 1")]
    fn step_zero_is_refused() {
        let _ = BiasCorrection::at(0.9, 0.999, 0);
    }
}
