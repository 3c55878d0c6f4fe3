//! Scores and labels packed into integers that sort as the scores do.

use super::{Error, Result};

/// A type of score: `f32` or `f64`.
pub trait Score: Copy + Into<f64> + sealed::Sealed {
    /// A score and a label in one integer, ordered by score, then by label.
    type Packed: Copy + Ord + std::fmt::Debug;

    /// Packs a score other than NaN; -0 counts as 0.
    fn pack(self, positive: bool) -> Self::Packed;

    /// The score and the label.
    fn unpack(packed: Self::Packed) -> (Self, bool);

    /// Whether two packed scores are equal, whatever their labels.
    fn ties(a: Self::Packed, b: Self::Packed) -> bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Flips the bits of a float so that unsigned integers sort as the floats do: negative ones all,
/// others the sign alone. The label goes below, in bit 0.
macro_rules! score {
    ($float:ty, $bits:ty, $packed:ty) => {
        impl Score for $float {
            type Packed = $packed;

            #[inline]
            fn pack(self, positive: bool) -> $packed {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                // Adding 0 turns -0 into 0.
                let bits = (self + 0.0).to_bits();
                let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
                <$packed>::from(ordered) << 1 | <$packed>::from(positive)
            }

            #[inline]
            fn unpack(packed: $packed) -> (Self, bool) {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let ordered = (packed >> 1) as $bits;
                let bits = if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN };
                (Self::from_bits(bits), packed & 1 == 1)
            }

            #[inline]
            fn ties(a: $packed, b: $packed) -> bool {
                a >> 1 == b >> 1
            }
        }
    };
}

score!(f32, u32, u64);
score!(f64, u64, u128);

/// Checks one score and one hard label and packs them; `row` is for errors.
#[inline]
pub(crate) fn pack_checked<S: Score>(score: S, label: f32, row: u64) -> Result<S::Packed> {
    if score.into().is_nan() {
        return Err(Error::NanScore { row });
    }
    if label == 0.0 || label == 1.0 {
        return Ok(score.pack(label == 1.0));
    }
    if label > 0.0 && label < 1.0 {
        return Err(Error::SoftLabel { row, label });
    }
    Err(Error::LabelRange { row, label })
}

/// Refuses scores and labels of different numbers.
pub(crate) fn check_lengths(scores: usize, labels: usize) -> Result<()> {
    if scores == labels { Ok(()) } else { Err(Error::Lengths { scores, labels }) }
}
