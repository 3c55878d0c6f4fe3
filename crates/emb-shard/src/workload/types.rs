//! Samples, element types and dense time of a workload.

use crate::{Error, Rank, Result};
use serde::{Deserialize, Serialize};

/// Samples of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batch {
    /// Of all ranks together: more ranks have less each.
    Global(u64),
    /// Of every rank: more ranks have more together.
    PerRank(u64),
}

impl Batch {
    /// Samples of `world` ranks together.
    ///
    /// # Errors
    /// No ranks; more than 64 bits of samples.
    pub fn global(self, world: u32) -> Result<u64> {
        let samples = match self {
            _ if world == 0 => None,
            Self::Global(samples) => Some(samples),
            Self::PerRank(samples) => samples.checked_mul(u64::from(world)),
        };
        samples.ok_or(Error::BatchOfRanks { batch: self, world })
    }

    /// Samples of one of `world` ranks: a global batch is shared out so that shares differ by at
    /// most one, and the first ranks have more.
    ///
    /// # Errors
    /// A rank outside the world.
    pub fn of_rank(self, rank: Rank, world: u32) -> Result<u64> {
        let (number, world) = (u64::from(rank.get()), u64::from(world));
        if number >= world {
            return Err(Error::NoSuch { kind: "rank", index: number, count: world });
        }
        Ok(match self {
            Self::Global(samples) => samples / world + u64::from(number < samples % world),
            Self::PerRank(samples) => samples,
        })
    }
}

/// Type of the values of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// 4 bytes.
    #[default]
    F32,
    /// 2 bytes.
    F16,
    /// 2 bytes.
    Bf16,
    /// 1 byte, and 8 bytes of scale and bias a row; on the wire only.
    Int8Rowwise,
    /// 1 byte, and 4 bytes of scale a row; on the wire only.
    #[serde(rename = "fp8_e4m3")]
    Fp8E4m3,
    /// The same.
    #[serde(rename = "fp8_e5m2")]
    Fp8E5m2,
    /// Half a byte, and 4 bytes of scale and bias for every 32 columns of a row or fewer; on the
    /// wire only.
    Int4,
}

/// Columns that share a scale in [`ValueType::Int4`].
const GROUP: usize = 32;

impl ValueType {
    /// Bytes of one value; half a byte counts as one.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Int8Rowwise | Self::Fp8E4m3 | Self::Fp8E5m2 | Self::Int4 => 1,
        }
    }

    /// Whether weights are stored in it; other types are for the wire alone.
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Bytes of a row of `dim` values; the largest 64-bit number where they are more.
    pub const fn row_bytes(self, dim: usize) -> u64 {
        let (values, suffix) = match self {
            Self::Int8Rowwise => (dim, 8),
            Self::Fp8E4m3 | Self::Fp8E5m2 => (dim, 4),
            Self::Int4 => (dim.div_ceil(2), 4 * dim.div_ceil(GROUP) as u64),
            Self::F32 | Self::F16 | Self::Bf16 => (dim, 0),
        };
        (values as u64).saturating_mul(self.bytes() as u64).saturating_add(suffix)
    }
}

/// Type of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdType {
    /// 4 bytes.
    I32,
    /// 8 bytes.
    #[default]
    I64,
}

impl IdType {
    /// Bytes of one id.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }
}

/// Time that a rank spends in the dense model, forward and backward, beside the embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenseTime {
    /// As measured: seconds for each sample of the rank.
    SecondsPerSample(f64),
    /// As counted: floating-point operations for each sample of the rank.
    FlopsPerSample(f64),
}

impl Default for DenseTime {
    /// None.
    fn default() -> Self {
        Self::SecondsPerSample(0.0)
    }
}

impl DenseTime {
    /// Seconds for `samples` samples, a mean perhaps, on a rank of `flops` operations a second.
    pub fn seconds_of(self, samples: f64, flops: f64) -> f64 {
        match self {
            Self::SecondsPerSample(seconds) => seconds * samples,
            Self::FlopsPerSample(operations) => operations * samples / flops,
        }
    }
}

/// What the dense model takes beside its [time](DenseTime).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DenseModel {
    /// Bytes of gradients that are summed over all ranks every step.
    pub gradient_bytes: u64,
    /// Bytes of memory of every rank: weights, gradients, optimizer state.
    pub memory_bytes: u64,
    /// Bytes of memory for each sample of the rank: activations.
    pub memory_bytes_per_sample: u64,
}
