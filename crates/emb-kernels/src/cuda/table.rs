//! Tables in device memory.

use super::Cuda;
use crate::{Result, TableSpec};

/// The tables of one group in a device.
#[derive(Debug)]
pub struct CudaTables {
    specs: Vec<TableSpec>,
}

impl CudaTables {
    pub(super) fn specs(&self) -> &[TableSpec] {
        &self.specs
    }
}

pub(super) fn create(_cuda: &mut Cuda, _specs: &[TableSpec], _seed: u64) -> Result<CudaTables> {
    Err(crate::Error::NotAvailable("create_tables", String::new()))
}
