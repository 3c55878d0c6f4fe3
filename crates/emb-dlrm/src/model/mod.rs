//! DLRM and DLRM-DCNv2: bottom MLP, embedding bags, interaction, top MLP.
//!
//! ```text
//! dense [B, 13] -> bottom MLP --+
//!                               +-> x [B, (1 + F) * dim] -> dot | cross -> top MLP -> logit [B]
//! ids (jagged)  -> embedding bags
//! ```
//! The bottom MLP and the embedding bags write straight into one buffer `x`: nothing is
//! concatenated, and the gradient of `x` is what the fused update reads.

mod batch;
mod cross;
mod dense;
mod dlrm;
mod mlp;
mod scratch;

pub use batch::DeviceBatch;
pub use dense::{Dense, Layout, Parameter};
pub use dlrm::{Dlrm, Interaction, Shape};
