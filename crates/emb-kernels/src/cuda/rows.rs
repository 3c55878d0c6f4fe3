//! Rows copied by number.

use super::{Cuda, CudaTables};
use crate::{Result, RowTransfer};

/// Memory of these operations.
#[derive(Debug, Default)]
pub(super) struct Scratch {}

pub(super) fn read_rows(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _table: usize,
    _first: u64,
    _weights: &mut [f32],
    _state: &mut [Vec<f32>],
) -> Result<()> {
    Err(crate::Error::NotAvailable("read_rows", String::new()))
}

pub(super) fn write_rows(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _table: usize,
    _first: u64,
    _weights: &[f32],
    _state: &[Vec<f32>],
) -> Result<()> {
    Err(crate::Error::NotAvailable("write_rows", String::new()))
}

pub(super) fn transfer_rows(
    _cuda: &mut Cuda,
    _tables: &mut CudaTables,
    _table: usize,
    _numbers: &[u64],
    _transfer: RowTransfer<'_>,
) -> Result<()> {
    Err(crate::Error::NotAvailable("transfer_rows", String::new()))
}
