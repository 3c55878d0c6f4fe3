//! How many fused multiply-adds the machine does when nothing leaves the registers.

use std::hint::black_box;
use std::time::Instant;

/// Independent chains: enough to hide the latency of two units.
const CHAINS: usize = 12;
/// Steps of a sample, about a millisecond.
const STEPS: usize = 300_000;

/// The most GFLOP/s of `threads` threads at once, best of some samples.
pub(crate) fn gflops(threads: usize) -> f64 {
    let samples = || (0..60).map(|_| sample()).fold(0.0, f64::max);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(samples)).collect();
        let own = samples();
        own + others.into_iter().map(|t| t.join().expect("no sample panics")).sum::<f64>()
    })
}

fn sample() -> f64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature of the function was detected just now.
        return timed(16, || unsafe { chains_avx512(black_box(0.5)) });
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the features of the function were detected just now.
        return timed(8, || unsafe { chains_avx2(black_box(0.5)) });
    }
    timed(1, || {
        let x = black_box(0.5f32);
        (0..STEPS).fold([0.0f32; CHAINS], |sums, _| sums.map(|sum| sum * x + x))[0]
    })
}

fn timed(lanes: usize, work: impl Fn() -> f32) -> f64 {
    let start = Instant::now();
    black_box(work());
    let seconds = start.elapsed().as_secs_f64();
    (2 * lanes * CHAINS * STEPS) as f64 / seconds / 1e9
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_avx2(x: f32) -> f32 {
    use std::arch::x86_64::{_mm256_add_ps, _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps};
    let x = _mm256_set1_ps(x);
    let mut sums = [x; CHAINS];
    for _ in 0..STEPS {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(x, *sum, x);
        }
    }
    let mut total = x;
    for sum in sums {
        total = _mm256_add_ps(total, sum);
    }
    _mm256_cvtss_f32(total)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn chains_avx512(x: f32) -> f32 {
    use std::arch::x86_64::{_mm512_add_ps, _mm512_cvtss_f32, _mm512_fmadd_ps, _mm512_set1_ps};
    let x = _mm512_set1_ps(x);
    let mut sums = [x; CHAINS];
    for _ in 0..STEPS {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(x, *sum, x);
        }
    }
    let mut total = x;
    for sum in sums {
        total = _mm512_add_ps(total, sum);
    }
    _mm512_cvtss_f32(total)
}
