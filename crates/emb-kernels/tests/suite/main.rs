//! The CPU backend against stated numbers: field reports, stored runs, huge tables.

mod field_lookup;
mod field_update;
mod golden;
#[cfg(target_os = "linux")]
mod huge;
mod row_transfer;
mod support;
