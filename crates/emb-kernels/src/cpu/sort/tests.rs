use super::*;

/// A small multiplicative generator: enough to scatter keys.
fn scattered(n: usize, rows: u64) -> Vec<u64> {
    let mut state = 0x1234_5678_9abc_def1_u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 16) % rows
        })
        .collect()
}

fn check(n: usize, rows: u64) {
    let low = bits_for(n as u64);
    let width = bits_for(rows);
    let mut keys: Vec<u64> =
        scattered(n, rows).iter().enumerate().map(|(p, row)| row << low | p as u64).collect();
    let mut expected = keys.clone();
    expected.sort_unstable();
    sort(&mut keys, &mut Vec::new(), low, width);
    assert_eq!(keys, expected, "{n} keys, {rows} rows");
}

#[test]
fn sorts_as_the_standard_library_does_at_every_width() {
    for n in [0, 1, 2, 100, SMALL, SMALL + 1, 5000, 70_000] {
        for rows in [1, 2, 3, 1000, 1 << 11, (1 << 11) + 1, 1_000_000, 5_000_000_000, 1 << 40] {
            check(n, rows);
        }
    }
}

#[test]
fn bits_hold_every_number_below_the_count() {
    assert_eq!([0, 1, 2, 3, 4, 5, 1 << 40].map(bits_for), [0, 0, 1, 2, 2, 3, 40]);
    assert_eq!(bits_for(u64::MAX), 64);
}
