//! Which instruction set runs the kernels, decided once.

use std::sync::OnceLock;

/// Instruction sets that the embedding kernels are compiled for. Results are bitwise equal on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// What every machine of the target has.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512 (F, VL, BW, DQ).
    Avx512,
}

impl Instructions {
    /// The widest that this machine has.
    pub fn detect() -> Self {
        static FOUND: OnceLock<Instructions> = OnceLock::new();
        *FOUND.get_or_init(find)
    }
}

/// A piece of work to be compiled for every instruction set; `run` must be `#[inline(always)]`.
pub(crate) trait Kernel {
    /// What the work returns.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs a kernel compiled for `instructions`.
#[inline]
pub(crate) fn dispatch<K: Kernel>(instructions: Instructions, kernel: K) -> K::Output {
    debug_assert!(instructions <= Instructions::detect());
    #[cfg(target_arch = "x86_64")]
    match instructions {
        Instructions::Baseline => {}
        // SAFETY: a value of `Instructions` above the baseline is only made where `detect` found
        // these features.
        Instructions::Avx2 => return unsafe { avx2(kernel) },
        // SAFETY: as above.
        Instructions::Avx512 => return unsafe { avx512(kernel) },
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe,avx512f,avx512vl,avx512bw,avx512dq")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
fn find() -> Instructions {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("movbe");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    match (avx2, avx512) {
        (true, true) => Instructions::Avx512,
        (true, false) => Instructions::Avx2,
        (false, _) => Instructions::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn find() -> Instructions {
    Instructions::Baseline
}

/// Asks for the cache lines of `slice` to be brought into the second-level cache.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T]) {
    prefetch_bytes(slice.as_ptr().cast(), size_of_val(slice));
}

/// As [`prefetch`], of any address.
///
/// Into the second level rather than the first: some cores have more outstanding misses there
/// (Zen 4: 1.3 to 2 times the rows a second; Zen 3: the same).
#[inline(always)]
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let mut at = 0;
        while at < bytes {
            // SAFETY: a prefetch has no effect but on caches, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(start.wrapping_add(at).cast()) };
            at += 64;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes);
}
