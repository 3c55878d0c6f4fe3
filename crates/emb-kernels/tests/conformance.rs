//! The CPU backend passes the public suite, with the same bits however it is set up.

use emb_kernels::conformance::embedding;
use emb_kernels::cpu::{Cpu, CpuOptions, Instructions};

fn cpu(threads: usize) -> Cpu {
    Cpu::new(CpuOptions { threads }).expect("threads")
}

#[test]
fn one_thread_passes_the_embedding_suite() {
    embedding::all(|| cpu(1));
}

#[test]
fn two_threads_pass_the_embedding_suite() {
    embedding::all(|| cpu(2));
}

#[test]
fn threads_do_not_change_a_bit() {
    embedding::equal_runs_have_equal_bits(|| cpu(1), || cpu(2));
    embedding::equal_runs_have_equal_bits(|| cpu(2), || cpu(5));
}

#[test]
fn instruction_sets_do_not_change_a_bit() {
    let baseline = || cpu(1).limit_instructions(Instructions::Baseline);
    embedding::equal_runs_have_equal_bits(baseline, || cpu(1));
    embedding::equal_runs_have_equal_bits(baseline, || {
        cpu(1).limit_instructions(Instructions::Avx2)
    });
}
