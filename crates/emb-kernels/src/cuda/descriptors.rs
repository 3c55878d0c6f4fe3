//! What kernels are told about tables and features: twins of the structures of `cuda/tables.cuh`.

/// One table of a group; twin of `emb::Table`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TableDescriptor {
    pub(super) weights: u64,
    pub(super) row_state: u64,
    pub(super) element_state: u64,
    pub(super) row_numbers: u64,
    pub(super) rows: u64,
    pub(super) first_key: u64,
    pub(super) first_row: u64,
    pub(super) row_step: u64,
    pub(super) dim: u32,
    pub(super) dtype: u32,
    pub(super) row_slots: u32,
    pub(super) element_slots: u32,
    pub(super) first_column: u32,
    pub(super) table_dim: u32,
    pub(super) stochastic: u32,
    pub(super) rounding_key: [u32; 2],
    pub(super) padding: u32,
}

/// One feature of a batch; twin of `emb::Feature`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FeatureDescriptor {
    pub(super) table: u32,
    pub(super) pooling: u32,
    pub(super) column: u32,
    pub(super) dim: u32,
    pub(super) weights: u64,
    pub(super) rows: u64,
    pub(super) first_key: u64,
    pub(super) dtype: u32,
    pub(super) sequence: u32,
}

// The kernels assert the same sizes.
const _: () = assert!(size_of::<TableDescriptor>() == 104 && size_of::<FeatureDescriptor>() == 48);

// SAFETY: numbers without padding between them, by the sizes above.
unsafe impl bytemuck::Zeroable for TableDescriptor {}
// SAFETY: as above; any bits are a value.
unsafe impl bytemuck::Pod for TableDescriptor {}
// SAFETY: as above.
unsafe impl bytemuck::Zeroable for FeatureDescriptor {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for FeatureDescriptor {}
