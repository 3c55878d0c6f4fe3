//! What a CPU backend is made from: [`CpuOptions`].

/// How a [`Cpu`](super::Cpu) is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuOptions {
    /// Threads of every operation; at least 1.
    pub threads: usize,
}

impl Default for CpuOptions {
    /// One thread.
    fn default() -> Self {
        Self { threads: 1 }
    }
}
