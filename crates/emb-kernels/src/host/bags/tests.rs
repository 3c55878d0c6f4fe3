use super::*;
use crate::host::{add, add_rows, copy_rows};

/// Distinct multiples of a quarter, so that sums are exact but for their order.
fn values(len: usize) -> Vec<f32> {
    (0..len).map(|k| ((k * 7919) % 1021) as f32 * 0.1 - 50.0).collect()
}

/// `rows` rows with gaps between them, backwards.
fn starts(rows: usize, width: usize) -> Vec<usize> {
    (0..rows).rev().map(|row| row * (width + 3)).collect()
}

const LENGTHS: [u32; 6] = [0, 3, 1, 40, 0, 7];
const ROWS: usize = 9;

fn row_of() -> Vec<u32> {
    (0..51_u32).map(|k| (k * k + 3) % ROWS as u32).collect()
}

/// Of bag and lookup, in order.
fn each(mut each: impl FnMut(usize, usize)) {
    let mut k = 0;
    for (b, &length) in LENGTHS.iter().enumerate() {
        for _ in 0..length {
            each(b, k);
            k += 1;
        }
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn bags_are_added_lookup_by_lookup_at_every_width() {
    for width in [1, 3, 4, 16, 23, 64, 100, 150] {
        let (starts, row_of, stride) = (starts(ROWS, width), row_of(), width + 2);
        let rows = values(ROWS * (width + 3));
        for weights in [Vec::new(), values(row_of.len())] {
            let mut expected = values(LENGTHS.len() * stride);
            let mut got = expected.clone();
            each(|b, k| {
                for c in 0..width {
                    let x = rows[starts[row_of[k] as usize] + c];
                    expected[b * stride + c] += weights.get(k).map_or(x, |weight| x * weight);
                }
            });
            let lookups = Lookups { starts: &starts, row_of: &row_of, weights: &weights };
            let out = Mat::with_stride(&mut got[..], LENGTHS.len(), width, stride);
            add_bags(&rows, lookups, &LENGTHS, out);
            assert_eq!(bits(&got), bits(&expected), "{width} columns, {} weights", weights.len());
        }
    }
}

#[test]
fn gradients_are_scaled_bounded_and_added_lookup_by_lookup() {
    let divisors = [2.0, 0.0, 3.0, 1.0, 0.5, 7.0];
    for width in [1, 5, 16, 64, 70] {
        let (starts, row_of, stride) = (starts(ROWS, width), row_of(), width + 1);
        let mut gradient = values(LENGTHS.len() * stride);
        gradient[stride] = f32::NAN;
        for (scale, divisors, bound, weights) in [
            (1.0, &[][..], None, Vec::new()),
            (0.3, &divisors[..], None, Vec::new()),
            (1.0, &divisors[..], Some(3.0), values(row_of.len())),
            (1.0, &[], Some(0.5), Vec::new()),
        ] {
            let mut expected = values(ROWS * (width + 3));
            let mut got = expected.clone();
            each(|b, k| {
                let divided = divisors.get(b).map_or(scale, |&divisor| match divisor {
                    0.0 => 0.0,
                    divisor => scale / divisor,
                });
                let scale = weights.get(k).map_or(divided, |weight| divided * weight);
                for c in 0..width {
                    let x = gradient[b * stride + c] * scale;
                    let bounded = bound.map_or(x, |bound: f32| x.clamp(-bound, bound));
                    expected[starts[row_of[k] as usize] + c] += bounded;
                }
            });
            let lookups = Lookups { starts: &starts, row_of: &row_of, weights: &weights };
            let gradient = Mat::with_stride(&gradient[..], LENGTHS.len(), width, stride);
            let upstream = Upstream { gradient, scale, divisors, bound };
            add_gradients(upstream, Sources::Bags(&LENGTHS), lookups, &mut got);
            assert_eq!(bits(&got), bits(&expected), "{width} columns, scale {scale}");
        }
    }
}

#[test]
fn rows_that_are_not_pooled_are_added_where_they_are_used() {
    let (width, row_of) = (6, row_of());
    let starts = starts(ROWS, width);
    let positions: Vec<usize> = (0..row_of.len()).rev().collect();
    let gradient = values(row_of.len() * width);
    let mut expected = vec![0.0; ROWS * (width + 3)];
    let mut got = expected.clone();
    for (k, &row) in row_of.iter().enumerate() {
        for c in 0..width {
            expected[starts[row as usize] + c] += gradient[positions[k] * width + c] * 2.0;
        }
    }
    let lookups = Lookups { starts: &starts, row_of: &row_of, weights: &[] };
    let gradient = Mat::new(&gradient[..], row_of.len(), width);
    let upstream = Upstream { gradient, scale: 2.0, divisors: &[], bound: None };
    add_gradients(upstream, Sources::Rows(&positions), lookups, &mut got);
    assert_eq!(bits(&got), bits(&expected));
}

#[test]
fn dense_rows_are_copied_and_added_by_number() {
    for width in [1, 7, 16, 70] {
        let (rows, numbers) = (values(ROWS * width), row_of());
        let mut copied = vec![5.0];
        copy_rows(&rows, width, &numbers, &mut copied);
        let row = |n: u32| &rows[n as usize * width..][..width];
        let mut expected = vec![5.0];
        for &n in &numbers {
            expected.extend_from_slice(row(n));
        }
        assert_eq!(bits(&copied), bits(&expected));

        let (mut sums, from) = (rows.clone(), values(numbers.len() * width));
        let mut expected = rows.clone();
        for (&n, from) in numbers.iter().zip(from.chunks_exact(width)) {
            let to = &mut expected[n as usize * width..][..width];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        add_rows(Mat::new(&from[..], numbers.len(), width), &numbers, &mut sums);
        assert_eq!(bits(&sums), bits(&expected));

        let mut sum = rows.clone();
        add(&mut sum, &from[..rows.len()]);
        assert!((0..sum.len()).all(|k| sum[k] == rows[k] + from[k]));
    }
}
