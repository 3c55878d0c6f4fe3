//! The CPU backend: [`Cpu`].
//!
//! Tables lie in anonymous maps that cost what is touched. Kernels are compiled for several
//! instruction sets and chosen once; every sum has one order, so results are the same bits on
//! all of them and on any number of threads. All `unsafe` of the embedding operations rests on
//! two facts: ids are checked before anything else, and no two parts of a parallel region write
//! the same row.

mod apply;
mod arena;
mod backend;
mod columns;
mod cross;
mod dense;
pub(crate) mod detect;
mod dtype;
mod gather;
mod gemm;
mod ids;
mod interaction;
mod keys;
mod loss;
mod options;
mod parallel;
mod pointwise;
mod pool;
mod route;
mod rows;
mod shape;
mod shared;
pub(crate) mod sort;
mod sum;
mod table;
#[cfg(test)]
mod testing;
mod update;
mod weights;

pub use backend::Cpu;
pub use detect::Instructions;
pub use options::CpuOptions;
pub use table::CpuTables;
