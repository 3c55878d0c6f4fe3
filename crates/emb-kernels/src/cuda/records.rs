//! Structures that the kernels of updates and routing share with the host, byte for byte.

/// One run of equal keys; twin of `emb::Run` of `runs.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// Row of its table; the key itself where there are no tables.
    pub(super) row: u64,
    /// First of its sorted pairs.
    pub(super) begin: u32,
    pub(super) table: u32,
}

/// One chunk of a long run; twin of `emb::Chunk` of `runs.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    begin: u32,
    end: u32,
    table: u32,
    padding: u32,
}

/// Where the gradient of a lookup comes from; twin of `emb::Source` of `keys.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Source {
    bag: u32,
    scale: f32,
}

/// The upstream gradient of a sequence feature; twin of `emb::Sequence` of `keys.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) gradient: u64,
    pub(super) stride: u64,
}

/// The rule of one table in one step; twin of `emb::RuleRecord` of `update.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RuleRecord {
    /// Number of the launch that updates the table.
    pub(super) group: u32,
    /// Infinite for none.
    pub(super) max_gradient: f32,
    /// Bytes of the rule, as its structure in `rules.cuh` has them.
    pub(super) rule: [u64; 9],
}

/// What a launch over runs is told; twin of `emb::Launch` of `update.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) pooled_stride: u64,
    pub(super) rows_stride: u64,
    pub(super) step: u64,
    pub(super) batch: u32,
    pub(super) group: u32,
    pub(super) lanes: u32,
    pub(super) stage_stride: u32,
}

/// Which owner has which row; twin of `emb::RowMap` of `route.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowMap {
    pub(super) owners: u64,
    pub(super) first: u64,
    pub(super) modulo: u32,
    pub(super) padding: u32,
}

/// The kernels assert the same sizes, which leave no room for padding between the fields.
macro_rules! plain {
    ($($name:ident $bytes:literal)*) => {$(
        const _: () = assert!(size_of::<$name>() == $bytes);
        // SAFETY: numbers without padding between them.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: as above; any bits are a value.
        unsafe impl bytemuck::Pod for $name {}
    )*};
}

plain! { Run 16 Chunk 16 Source 8 Sequence 16 RuleRecord 80 Launch 40 RowMap 24 }
