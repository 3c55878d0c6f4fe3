//! How rows of `f32` travel: [`Wire`]; and how ids do: [`ids`].

mod bound;
mod float;
mod fp8;
pub mod ids;
mod int4;
mod int8;
mod name;
mod rows;

use crate::{Error, Result};
use fp8::{E4m3, E5m2};
use int4::Int4;
use int8::Int8;
use rows::RowCodec;

/// The format of `f32` rows on the wire. All formats are little-endian and have no header; bits,
/// bounds and speeds are in `docs/wire.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wire {
    /// 4 bytes a value, unchanged.
    #[default]
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
    /// `q * scale + bias` once. The error of a value is at most half a `scale`, plus rounding. Rows
    /// of which `255 * scale + bias` is beyond `f32` are refused: they would arrive as infinity.
    Int8Rowwise,
    /// 8-bit floats of 4 exponent and 3 mantissa bits (OCP E4M3) with a scale for each row: `dim`
    /// bytes `q`, then `scale`, an `f32`. A value is `q * scale` with
    /// `scale = max(max|x| / 448, 2^-126)` and `q` the code nearest to `x * (1 / scale)`, ties to
    /// even, every operation in `f32`. The error of a value is at most 1/28 of `max|x|`, and 1/16
    /// of the value unless that is below `scale / 64`.
    Fp8E4m3,
    /// The same of 5 exponent and 2 mantissa bits (OCP E5M2), whose largest value is 57344. The
    /// error of a value is at most 1/14 of `max|x|`, and 1/8 of the value unless that is below
    /// `scale / 16384`.
    Fp8E5m2,
    /// 4-bit integers with a scale and a bias for each group of 32 columns, of which the last may
    /// have fewer: `ceil(dim / 2)` bytes of values, column `2k` in the low half of byte `k` and
    /// column `2k + 1` in the high half, a missing one 0; then of each group `scale` and `bias`,
    /// both bfloat16. A value is `q * scale + bias` with `bias` the smallest value of the group,
    /// rounded down, `scale = (max - bias) / 15`, rounded up, at least 2^-126, and
    /// `q = round((x - bias) * (1 / scale))`, ties to even, at most 15, every operation in `f32`.
    /// The error of a value is at most half a `scale`, plus rounding.
    ///
    /// Scale and bias are bfloat16, where other formats of 4 bits have binary16, because gradients
    /// of a mean over a batch are below what binary16 can say, and weights may be above.
    Int4,
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
            Self::Int8Rowwise => Int8::row_bytes(dim),
            Self::Fp8E4m3 => E4m3::row_bytes(dim),
            Self::Fp8E5m2 => E5m2::row_bytes(dim),
            Self::Int4 => Int4::row_bytes(dim),
        };
        let bytes = row.and_then(|row| row.checked_mul(rows));
        bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(Error::TooLarge { rows, dim })
    }

    /// Writes `values`, rows of `dim` columns, into `out`, which must be exactly
    /// [`bytes`](Self::bytes) long.
    ///
    /// # Errors
    /// No columns, a partial row, an `out` of another length; for formats with a scale also a
    /// value that is not finite, or a row whose values are further apart than the format can say.
    /// `out` is untouched then.
    pub fn encode(self, values: &[f32], dim: usize, out: &mut [u8]) -> Result<()> {
        self.check("encode", values.len(), dim, "out", out.len())?;
        match self {
            Self::F32 => float::encode_f32(values, out),
            Self::F16 => float::encode_f16(values, out),
            Self::Bf16 => float::encode_bf16(values, out),
            Self::Int8Rowwise => return encode::<Int8>(values, dim, out),
            Self::Fp8E4m3 => return encode::<E4m3>(values, dim, out),
            Self::Fp8E5m2 => return encode::<E5m2>(values, dim, out),
            Self::Int4 => return encode::<Int4>(values, dim, out),
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
            Self::Int8Rowwise => rows::decode::<Int8>(bytes, dim, out),
            Self::Fp8E4m3 => rows::decode::<E4m3>(bytes, dim, out),
            Self::Fp8E5m2 => rows::decode::<E5m2>(bytes, dim, out),
            Self::Int4 => rows::decode::<Int4>(bytes, dim, out),
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

fn encode<C: RowCodec>(values: &[f32], dim: usize, out: &mut [u8]) -> Result<()> {
    rows::check::<C>(values, dim)?;
    rows::encode::<C>(values, dim, out);
    Ok(())
}
