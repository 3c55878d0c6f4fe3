//! Ranks on GPUs that meet by NCCL.
