//! What travels arrives, and what cannot travel is refused before anything is written.

use emb_comm::{Error, Wire};
use proptest::prelude::*;

const ALL: [Wire; 4] = [Wire::F32, Wire::F16, Wire::Bf16, Wire::Int8Rowwise];

fn encode(wire: Wire, values: &[f32], dim: usize) -> Vec<u8> {
    let bytes = wire.bytes(values.len() / dim, dim).expect("fits");
    let mut out = vec![0; bytes];
    wire.encode(values, dim, &mut out).expect("can travel");
    out
}

fn decode(wire: Wire, bytes: &[u8], dim: usize, values: usize) -> Vec<f32> {
    let mut out = vec![0.0; values];
    wire.decode(bytes, dim, &mut out).expect("whole rows");
    out
}

#[test]
fn lengths_that_do_not_fit_are_refused_and_nothing_is_written() {
    for wire in ALL {
        let values = [1.0f32; 12];
        let right = wire.bytes(3, 4).expect("fits");
        for wrong in [0, right - 1, right + 1, right * 2] {
            let mut out = vec![0xAB; wrong];
            let error = wire.encode(&values, 4, &mut out).expect_err("wrong length");
            let expected =
                Error::Length { operation: "encode", what: "out", expected: right, got: wrong };
            assert_eq!(error, expected);
            assert!(out.iter().all(|&byte| byte == 0xAB));
            let mut values = [7.0f32; 12];
            assert!(wire.decode(&out, 4, &mut values).is_err());
            assert_eq!(values, [7.0; 12]);
        }
    }
}

#[test]
fn rows_without_columns_and_partial_rows_are_refused() {
    for wire in ALL {
        let text = |result: emb_comm::Result<()>| result.expect_err("must be refused").to_string();
        assert_eq!(text(wire.encode(&[], 0, &mut [])), "encode: rows of 0 columns cannot travel");
        assert_eq!(
            text(wire.decode(&[0; 8], 0, &mut [])),
            "decode: rows of 0 columns cannot travel"
        );
        assert_eq!(
            text(wire.encode(&[0.0; 5], 4, &mut [0; 64])),
            "encode: 5 values are not whole rows of 4 columns"
        );
        assert!(matches!(wire.bytes(usize::MAX, 2), Err(Error::TooLarge { .. })));
        assert!(matches!(wire.bytes(1, usize::MAX), Err(Error::TooLarge { .. })));
    }
}

#[test]
fn no_rows_are_no_bytes() {
    for wire in ALL {
        assert_eq!(wire.bytes(0, 64).expect("fits"), 0);
        wire.encode(&[], 64, &mut []).expect("nothing to do");
        wire.decode(&[], 64, &mut []).expect("nothing to do");
    }
}

#[test]
fn int8_refuses_what_it_cannot_hold_by_row_and_column() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = [1.0f32; 12];
        values[9] = bad;
        let mut out = vec![0xAB; Wire::Int8Rowwise.bytes(3, 4).expect("fits")];
        let error = Wire::Int8Rowwise.encode(&values, 4, &mut out).expect_err("not finite");
        assert_eq!(
            error.to_string(),
            format!("row 2, column 1: {bad} cannot travel as int8, only finite values can")
        );
        assert!(out.iter().all(|&byte| byte == 0xAB), "rows before the bad one were written");
    }
    let far = [f32::MIN, f32::MAX];
    let error = Wire::Int8Rowwise.encode(&far, 2, &mut [0; 10]).expect_err("too far apart");
    assert!(matches!(error, Error::RangeTooWide { row: 0, .. }));
}

#[test]
fn sixteen_bit_floats_carry_infinities_and_nan_and_round_ties_to_even() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 65519.0, 65520.0];
    let back = decode(Wire::F16, &encode(Wire::F16, &values, 6), 6, 6);
    assert!(back[0].is_nan());
    assert_eq!(back[1..], [f32::INFINITY, f32::NEG_INFINITY, 0.0, 65504.0, f32::INFINITY]);
    assert!(back[3].is_sign_negative());
    // 1 + 2^-11 lies half way between two f16; 1 + 3 * 2^-11 too.
    let ties = [1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11)];
    let back = decode(Wire::F16, &encode(Wire::F16, &ties, 2), 2, 2);
    assert_eq!(back, [1.0, 1.0 + 2.0 * 2f32.powi(-10)]);

    let back = decode(Wire::Bf16, &encode(Wire::Bf16, &values, 6), 6, 6);
    assert!(back[0].is_nan());
    assert_eq!(back[1..3], [f32::INFINITY, f32::NEG_INFINITY]);
    let ties = [1.0 + 2f32.powi(-8), 1.0 + 3.0 * 2f32.powi(-8)];
    let back = decode(Wire::Bf16, &encode(Wire::Bf16, &ties, 2), 2, 2);
    assert_eq!(back, [1.0, 1.0 + 2.0 * 2f32.powi(-7)]);
}

#[test]
fn a_row_of_equal_values_survives_int8_exactly() {
    for value in [0.0f32, -3.25, 1e-30, f32::MAX] {
        let row = [value; 5];
        assert_eq!(decode(Wire::Int8Rowwise, &encode(Wire::Int8Rowwise, &row, 5), 5, 5), row);
    }
}

fn rows() -> impl Strategy<Value = (usize, Vec<f32>)> {
    // Long rows cross the blocks in which conversions are made.
    (1usize..300, 0usize..5).prop_flat_map(|(dim, rows)| {
        let magnitude = prop_oneof![Just(1e-9f32), Just(1.0f32), Just(3e4f32)];
        let value = (magnitude, -1.0f32..1.0).prop_map(|(scale, unit)| scale * unit);
        (Just(dim), prop::collection::vec(value, dim * rows))
    })
}

proptest! {
    #[test]
    fn every_value_arrives_as_if_converted_alone((dim, values) in rows()) {
        let back = |wire| decode(wire, &encode(wire, &values, dim), dim, values.len());
        prop_assert_eq!(back(Wire::F32), values.clone());
        let f16: Vec<f32> = values.iter().map(|&v| half::f16::from_f32_const(v).to_f32_const()).collect();
        prop_assert_eq!(back(Wire::F16), f16);
        let bf16: Vec<f32> = values.iter().map(|&v| half::bf16::from_f32_const(v).to_f32_const()).collect();
        prop_assert_eq!(back(Wire::Bf16), bf16);
    }

    #[test]
    fn int8_errs_by_at_most_half_a_step((dim, values) in rows()) {
        let bytes = encode(Wire::Int8Rowwise, &values, dim);
        let back = decode(Wire::Int8Rowwise, &bytes, dim, values.len());
        for (row, back) in values.chunks(dim).zip(back.chunks(dim)) {
            let max = row.iter().fold(f64::MIN, |max, &v| max.max(f64::from(v)));
            let min = row.iter().fold(f64::MAX, |min, &v| min.min(f64::from(v)));
            let step = (max - min) / 255.0;
            // The epsilon of the inverse scale shifts values of rows narrower than about 1e-6.
            let shift = (max - min) * (1e-8 / (max - min + 1e-8));
            let rounding = 4.0 * f64::from(f32::EPSILON) * max.abs().max(min.abs());
            for (value, back) in row.iter().zip(back) {
                let error = (f64::from(*value) - f64::from(*back)).abs();
                prop_assert!(error <= 0.5001 * step + shift + rounding, "{} came back as {}", value, back);
            }
        }
    }

    #[test]
    fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), dim in 1usize..40) {
        for wire in ALL {
            let row = wire.bytes(1, dim).expect("fits");
            let rows = bytes.len() / row;
            let mut out = vec![0.0; rows * dim];
            wire.decode(&bytes[..rows * row], dim, &mut out).expect("whole rows");
        }
    }
}
