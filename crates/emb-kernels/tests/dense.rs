//! The dense operations of [`Cpu`] against their specification.

use emb_kernels::conformance::dense;
use emb_kernels::cpu::{Cpu, CpuOptions};

fn make(threads: usize) -> Cpu {
    Cpu::new(CpuOptions { threads }).expect("threads start")
}

#[test]
fn gemm_passes_the_suite() {
    dense::gemm(make);
}

#[test]
fn bias_activation_passes_the_suite() {
    dense::bias_activation(make);
}

#[test]
fn interact_passes_the_suite() {
    dense::interact(make);
}

#[test]
fn cross_passes_the_suite() {
    dense::cross(make);
}

#[test]
fn bce_with_logits_passes_the_suite() {
    dense::bce_with_logits(make);
}

#[test]
fn dense_update_passes_the_suite() {
    dense::dense_update(make);
}
