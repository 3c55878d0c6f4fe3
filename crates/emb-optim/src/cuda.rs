//! The rules for a CUDA compiler: [`RULES_CUH`].

/// The text of `rules.cuh`: the device twins of this crate's rules, which give the same bits.
///
/// It is here, beside the Rust rules, because a rule is one idea in two languages. Its head says
/// what a rule is to the kernel that sums gradients, so that a rule of one's own can be written
/// from it alone. Kernels include it by its name; this text is for those that are compiled while a
/// program runs.
///
/// ```
/// assert!(emb_optim::RULES_CUH.contains("struct RowWiseAdaGrad"));
/// ```
pub const RULES_CUH: &str = include_str!("../cuda/rules.cuh");
