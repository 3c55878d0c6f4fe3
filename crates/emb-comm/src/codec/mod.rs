//! How rows of `f32` travel: [`Wire`]; and how ids do: [`ids`].

mod float;
pub mod ids;
mod int8;

use crate::{Error, Result};

/// The format of `f32` rows on the wire. All formats are little-endian and have no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// 4 bytes a value, unchanged.
    F32,
    /// IEEE binary16, 2 bytes a value, rounded to nearest, ties to even; magnitudes from 65520 on
    /// become infinite, NaN stays NaN.
    F16,
    /// bfloat16, 2 bytes a value, rounded to nearest, ties to even; NaN stays NaN.
    Bf16,
    /// 8-bit integers with a scale and a bias for each row: `dim` bytes `q`, then `scale`, then
    /// `bias`, both `f32`. A value is `q * scale + bias` with
    /// `bias = min`, `scale = (max - min) / 255` and
    /// `q = round((x - min) * (255 / ((max - min) + 1e-8)))`, ties to even, every operation in
    /// `f32`: byte for byte the fused 8-bit row-wise format of FBGEMM. Decoding rounds
    /// `q * scale + bias` once. The error of a value is at most half a `scale`, plus rounding.
    Int8Rowwise,
}

impl Wire {
    /// Bytes of `rows` rows of `dim` columns.
    ///
    /// # Errors
    /// No columns; more bytes than can be addressed.
    pub fn bytes(self, rows: usize, dim: usize) -> Result<usize> {
        if dim == 0 {
            return Err(Error::NoColumns { operation: "bytes" });
        }
        let row = match self {
            Self::F32 => dim.checked_mul(4),
            Self::F16 | Self::Bf16 => dim.checked_mul(2),
            Self::Int8Rowwise => dim.checked_add(int8::SUFFIX),
        };
        row.and_then(|row| row.checked_mul(rows)).ok_or(Error::TooLarge { rows, dim })
    }

    /// Writes `values`, rows of `dim` columns, into `out`, which must be exactly
    /// [`bytes`](Self::bytes) long.
    ///
    /// # Errors
    /// No columns, a partial row, an `out` of another length; for [`Wire::Int8Rowwise`] also a
    /// value that is not finite, or a row whose values are further apart than the largest `f32`,
    /// because the format cannot hold them. `out` is untouched then.
    pub fn encode(self, values: &[f32], dim: usize, out: &mut [u8]) -> Result<()> {
        self.check("encode", values.len(), dim, "out", out.len())?;
        match self {
            Self::F32 => float::encode_f32(values, out),
            Self::F16 => float::encode_f16(values, out),
            Self::Bf16 => float::encode_bf16(values, out),
            Self::Int8Rowwise => {
                int8::check_rows(values, dim)?;
                int8::encode(values, dim, out);
            }
        }
        Ok(())
    }

    /// Reads rows of `dim` columns from `bytes`, which must be exactly [`bytes`](Self::bytes)
    /// long, into `out`.
    ///
    /// Any bytes decode: a damaged scale or bias gives wrong, infinite or NaN values, nothing
    /// worse.
    ///
    /// # Errors
    /// No columns, a partial row, `bytes` of another length; `out` is untouched then.
    pub fn decode(self, bytes: &[u8], dim: usize, out: &mut [f32]) -> Result<()> {
        self.check("decode", out.len(), dim, "bytes", bytes.len())?;
        match self {
            Self::F32 => float::decode_f32(bytes, out),
            Self::F16 => float::decode_f16(bytes, out),
            Self::Bf16 => float::decode_bf16(bytes, out),
            Self::Int8Rowwise => int8::decode(bytes, dim, out),
        }
        Ok(())
    }

    fn check(
        self,
        operation: &'static str,
        values: usize,
        dim: usize,
        what: &'static str,
        got: usize,
    ) -> Result<()> {
        if dim == 0 {
            return Err(Error::NoColumns { operation });
        }
        if !values.is_multiple_of(dim) {
            return Err(Error::PartialRow { operation, values, dim });
        }
        let expected = self.bytes(values / dim, dim)?;
        if expected != got {
            return Err(Error::Length { operation, what, expected, got });
        }
        Ok(())
    }
}
