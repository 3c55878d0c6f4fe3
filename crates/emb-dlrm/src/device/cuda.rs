//! Ranks that compute on NVIDIA GPUs: [`Gpus`].

#[cfg(feature = "data")]
use super::machine::{Machine, Work, all};
#[cfg(feature = "data")]
use crate::config::{Device, PrecisionKind};
use crate::{Error, Result};
use emb_comm::Local;
