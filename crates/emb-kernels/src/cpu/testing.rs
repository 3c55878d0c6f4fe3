//! What the tests of the dense operations share.

/// Values in -1..1, mixed by `SplitMix64`.
pub(crate) fn values(len: usize, salt: u64) -> Vec<f32> {
    let mixed = |k: u64| {
        let z = (salt << 32 | k).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (1..=len as u64).map(mixed).collect()
}

/// Runs on a pool of `threads`, or right here for one.
pub(crate) fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    if threads == 1 {
        return work();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("invariant: threads start").install(work)
}

/// Whether two slices have the same bits.
pub(crate) fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The same numbers in `f64`.
pub(crate) fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().copied().map(f64::from).collect()
}

/// Asserts that `got` is `want` within `tolerance`, absolute or relative.
pub(crate) fn assert_close(what: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (&got, &want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(got) - want).abs();
        assert!(error <= tolerance * want.abs().max(1.0), "{what} {k}: {got} vs {want}");
    }
}
