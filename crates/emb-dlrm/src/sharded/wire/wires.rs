//! Which format what has: [`Wires`].

use crate::sharded::error::{Error, Result};
use emb_comm::Wire;

/// The formats of what ranks tell each other; all [`Wire::F32`] at first, which is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wires {
    /// Rows, and sums of bags, on their way to the samples.
    pub forward: Wire,
    /// Their gradients, on the way to the owners.
    pub backward: Wire,
    /// What replicas tell each other, weights that are averaged and gradients that are summed:
    /// [`Wire::F32`], [`Wire::F16`] or [`Wire::Bf16`]. Optimizer state travels unchanged. Weights
    /// that are averaged are rounded to the format in every sync.
    pub sync: Wire,
    /// Dense gradients that are summed over all ranks: [`Wire::F32`], [`Wire::F16`] or
    /// [`Wire::Bf16`].
    pub dense: Wire,
    /// Samples of a step of all ranks together. Gradients of the mean over them are so many times
    /// smaller than those of a sample, which formats of a narrow range are made for: on the way
    /// they are multiplied by the largest power of two up to this.
    pub batch: usize,
}

impl Default for Wires {
    fn default() -> Self {
        let exact = Wire::F32;
        Self { forward: exact, backward: exact, sync: exact, dense: exact, batch: 1 }
    }
}

impl Wires {
    /// Refuses formats that what is summed or averaged on all ranks can't have.
    ///
    /// # Errors
    /// By what it is for, with those that can be had.
    pub fn check(self) -> Result<()> {
        self.refusal().map_or(Ok(()), |why| Err(Error::Mismatch(format!("wire format {why}"))))
    }

    /// What [`check`](Self::check) refuses, and why: for messages that begin in their own way.
    pub(crate) fn refusal(self) -> Option<String> {
        let rounded = [
            ("sync", self.sync, "weights that are averaged stay as they were rounded"),
            ("dense", self.dense, "every dense gradient is summed over all ranks"),
        ];
        let narrow = |wire| matches!(wire, Wire::F32 | Wire::F16 | Wire::Bf16);
        let (what, wire, why) = rounded.into_iter().find(|(_, wire, _)| !narrow(*wire))?;
        Some(format!("{what}={wire}: {why}, so it is one of f32, f16, bf16"))
    }

    /// How rows and sums travel.
    pub(in crate::sharded) fn forward(self) -> Format {
        Format { wire: self.forward, loss_scale: 1.0, gradients: false }
    }

    /// How their gradients do.
    pub(in crate::sharded) fn backward(self) -> Format {
        self.of_gradients(self.backward)
    }

    /// How gradients that replicas sum do.
    pub(in crate::sharded) fn summed(self) -> Format {
        self.of_gradients(self.sync)
    }

    /// How weights that replicas average do.
    pub(in crate::sharded) fn averaged(self) -> Format {
        Format { wire: self.sync, loss_scale: 1.0, gradients: false }
    }

    /// How dense gradients do.
    pub(crate) fn of_dense(self) -> Format {
        self.of_gradients(self.dense)
    }

    fn of_gradients(self, wire: Wire) -> Format {
        Format { wire, loss_scale: loss_scale(wire, self.batch), gradients: true }
    }
}

/// What gradients of a mean over `batch` samples are multiplied by on their way: a power of two, so
/// that it is taken off exactly.
///
/// Formats with the exponents of `f32` need none, nor do those whose scale follows the row.
/// [`Wire::Int8Rowwise`] does: the `1e-8` in its inverse scale, small beside gradients of a sample,
/// is not small beside those of a mean over a large batch.
fn loss_scale(wire: Wire, batch: usize) -> f32 {
    match wire {
        Wire::F16 | Wire::Int8Rowwise => 2_f32.powi(batch.max(1).ilog2() as i32),
        _ => 1.0,
    }
}

/// A format, and what is done before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Format {
    pub(crate) wire: Wire,
    /// A power of two.
    loss_scale: f32,
    /// Whether finite values beyond the format are cut, as gradients are, or become infinite.
    gradients: bool,
}

impl Default for Format {
    fn default() -> Self {
        Wires::default().forward()
    }
}

/// The largest finite binary16.
const LARGEST_F16: f32 = 65504.0;

impl Format {
    /// Whether everything arrives as it was.
    pub(crate) fn is_exact(self) -> bool {
        self.wire == Wire::F32
    }

    /// What is done to values before they are encoded.
    pub(crate) fn before(self, values: &mut [f32]) {
        if self.loss_scale > 1.0 {
            let scale = self.loss_scale;
            for value in values.iter_mut() {
                *value *= scale;
            }
        }
        self.cut(values);
    }

    /// Cuts finite gradients that the format would make infinite. What is infinite already stays so,
    /// and is found.
    pub(crate) fn cut(self, values: &mut [f32]) {
        if self.gradients && self.wire == Wire::F16 {
            for value in values {
                let cut = value.clamp(-LARGEST_F16, LARGEST_F16);
                *value = if value.is_finite() { cut } else { *value };
            }
        }
    }

    /// What is done to values after they were decoded.
    pub(crate) fn after(self, values: &mut [f32]) {
        if self.loss_scale > 1.0 {
            let inverse = 1.0 / self.loss_scale;
            for value in values {
                *value *= inverse;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of values that travel as gradients of a mean over `batch` samples.
    fn travelled(wire: Wire, batch: usize, values: &[f32]) -> Vec<f32> {
        let format = Wires { backward: wire, batch, ..Wires::default() }.backward();
        let (mut sent, mut back) = (values.to_vec(), vec![0.0; values.len()]);
        format.before(&mut sent);
        let mut bytes = vec![0; wire.bytes(1, values.len()).expect("fits")];
        wire.encode(&sent, values.len(), &mut bytes).expect("finite");
        wire.decode(&bytes, values.len(), &mut back).expect("whole rows");
        format.after(&mut back);
        back
    }

    #[test]
    fn gradients_of_a_mean_over_65536_samples_keep_their_digits_in_every_format() {
        let batch = 65_536;
        // Of a sample: 0.003 to 0.1.
        let values: Vec<f32> =
            (0..64).map(|k| 0.1 / (1.0 + k as f32 / 2.0) / batch as f32).collect();
        for wire in Wire::ALL {
            let back = travelled(wire, batch, &values);
            let most = wire.max_error(&values.iter().map(|v| v * 65_536.0).collect::<Vec<_>>());
            for (value, back) in values.iter().zip(&back) {
                let apart = f64::from((value - back).abs()) * 65_536.0;
                assert!(apart <= most, "{wire}: {value:e} came back as {back:e}");
            }
        }
        // Without the scale, half of the digits of binary16 are gone, and int8 shrinks rows.
        let spread = |wire, batch| {
            let back = travelled(wire, batch, &values);
            (values[63] - back[63]).abs() / values[63]
        };
        assert!(spread(Wire::F16, 1) > 10.0 * spread(Wire::F16, batch));
        assert!(spread(Wire::F16, batch) <= 2_f32.powi(-11));
        let first =
            |batch| (travelled(Wire::Int8Rowwise, batch, &values)[0] / values[0] - 1.0).abs();
        assert!(first(1) > 5e-3 && first(batch) < 1e-4, "{} {}", first(1), first(batch));
    }

    #[test]
    fn finite_gradients_beyond_binary16_are_cut_and_infinite_ones_stay() {
        let back = travelled(Wire::F16, 1 << 16, &[3.0, -7.0, 0.5, f32::INFINITY]);
        let most = LARGEST_F16 / 65_536.0;
        assert_eq!(back, [most, -most, 0.5, f32::INFINITY]);
    }

    #[test]
    fn the_scale_is_a_power_of_two_and_none_where_the_format_follows_the_row() {
        for (wire, batch, scale) in [
            (Wire::F16, 1, 1.0),
            (Wire::F16, 65_535, 32_768.0),
            (Wire::Int8Rowwise, 65_536, 65_536.0),
            (Wire::Bf16, 65_536, 1.0),
            (Wire::Fp8E4m3, 65_536, 1.0),
            (Wire::Int4, 65_536, 1.0),
        ] {
            assert_eq!(loss_scale(wire, batch), scale, "{wire}");
        }
    }
}
