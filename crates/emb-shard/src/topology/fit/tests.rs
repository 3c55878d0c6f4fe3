//! Parameters are found again, nonsense is refused, bends are followed.

use super::*;
use proptest::prelude::*;

/// Deterministic noise of about a normal distribution: the sum of twelve uniform numbers.
fn noise(seed: u64, index: u64) -> f64 {
    let mut sum = -6.0;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index << 20);
    for _ in 0..12 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_tables_parameters_are_recovered_within_5_percent_at_2_percent_of_noise(
        latency in -7.0_f64..-3.0,
        bandwidth in 8.0_f64..12.0,
        seed in 0_u64..1 << 32,
    ) {
        let (latency, bandwidth) = (10.0_f64.powf(latency), 10.0_f64.powf(bandwidth));
        // From where latency is all to where it is nothing, two sizes an octave.
        let half = latency * bandwidth;
        let sizes = (-14..=14).map(|step| (half * 2.0_f64.powf(f64::from(step) / 2.0)) as u64);
        let points: Vec<(u64, f64)> = sizes
            .filter(|&bytes| bytes > 0)
            .enumerate()
            .map(|(index, bytes)| {
                let exact = latency + bytes as f64 / bandwidth;
                (bytes, exact * (1.0 + 0.02 * noise(seed, index as u64)))
            })
            .collect();
        let mut points = points;
        points.dedup_by_key(|point| point.0);
        let fit = line(&points).expect("a rising line");
        prop_assert!((fit.latency / latency - 1.0).abs() < 0.05, "{fit:?} for {latency}");
        prop_assert!((fit.bandwidth / bandwidth - 1.0).abs() < 0.05, "{fit:?} for {bandwidth}");
        let whole = LinkFit::of(&points).expect("a fit");
        for &(bytes, seconds) in &points {
            prop_assert!((whole.seconds(bytes as f64) / seconds - 1.0).abs() < 0.12);
        }
    }

    #[test]
    fn seconds_never_fall_with_the_bytes(seconds in prop::collection::vec(1e-6_f64..1e-3, 3..30)) {
        let points: Vec<(u64, f64)> =
            seconds.iter().enumerate().map(|(index, &seconds)| (8 << index, seconds)).collect();
        if let Ok(fit) = LinkFit::of(&points) {
            let mut before = 0.0;
            for step in 0..200 {
                let seconds = fit.seconds(4.0 * 1.1_f64.powi(step));
                prop_assert!(seconds >= before, "{fit:?}");
                before = seconds;
            }
        }
    }
}

#[test]
fn a_protocol_that_switches_at_a_size_is_followed() {
    let seconds = |bytes: f64| match bytes {
        bytes if bytes <= 4096.0 => 2e-6 + bytes / 4e9,
        bytes if bytes <= 1048576.0 => 6e-6 + bytes / 1e10,
        bytes => 6e-6 + 1048576.0 / 1e10 + (bytes - 1048576.0) / 5e9,
    };
    let at = |powers: std::ops::Range<i32>, from: f64| {
        powers.map(move |power| (from * 2.0_f64.powi(power)) as u64).collect::<Vec<u64>>()
    };
    let train: Vec<(u64, f64)> =
        at(3..27, 1.0).into_iter().map(|bytes| (bytes, seconds(bytes as f64))).collect();
    let fit = LinkFit::of(&train).expect("a fit");
    assert!(!fit.transfers.is_empty());
    for &(bytes, exact) in &train {
        assert!((fit.seconds(bytes as f64) / exact - 1.0).abs() < 1e-9);
    }
    for bytes in at(3..26, 1.5).into_iter().filter(|&bytes| !(4096..8192).contains(&bytes)) {
        let miss = fit.seconds(bytes as f64) / seconds(bytes as f64) - 1.0;
        assert!(miss.abs() < 0.1, "{bytes} bytes: {miss}");
    }
}

#[test]
fn nonsense_is_refused_by_its_numbers() {
    let cases: &[(&[(u64, f64)], &str)] = &[
        (&[(8, 1.0), (16, 2.0)], "2 sizes of messages: needs at least 3"),
        (&[(8, 1.0), (16, -2.0), (32, 3.0)], "16 bytes in -2 seconds"),
        (&[(8, 1.0), (16, f64::NAN), (32, 3.0)], "16 bytes in NaN seconds"),
        (&[(8, 1.0), (8, 2.0), (32, 3.0)], "8 bytes after 8"),
        (&[(0, 1.0), (8, 2.0), (32, 3.0)], "0 bytes after 0"),
        (&[(8, 3.0), (16, 2.0), (32, 1.0)], "32 bytes take no longer than 8"),
    ];
    for (points, words) in cases {
        let error = LinkFit::of(points).expect_err("refused").to_string();
        assert!(error.contains(words), "{words:?} is missing from: {error}");
    }
}
