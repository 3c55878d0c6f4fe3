//! What travels arrives, and what cannot travel is refused before anything is written.

use emb_comm::{Error, Wire};
use proptest::prelude::*;

const ALL: [Wire; 7] = Wire::ALL;

/// Formats with a scale, which hold finite values alone.
const SCALED: [Wire; 4] = [Wire::Int8Rowwise, Wire::Fp8E4m3, Wire::Fp8E5m2, Wire::Int4];

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
fn formats_with_a_scale_refuse_what_they_cannot_hold_by_row_and_column() {
    for wire in SCALED {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = [1.0f32; 12];
            values[9] = bad;
            let mut out = vec![0xAB; wire.bytes(3, 4).expect("fits")];
            let error = wire.encode(&values, 4, &mut out).expect_err("not finite");
            assert_eq!(
                error.to_string(),
                format!("row 2, column 1: {bad} cannot travel as {wire}, only finite values can")
            );
            assert!(out.iter().all(|&byte| byte == 0xAB), "rows before the bad one were written");
        }
    }
    for wire in [Wire::Int8Rowwise, Wire::Int4] {
        let far = [f32::MIN, f32::MAX];
        let mut out = vec![0; wire.bytes(1, 2).expect("fits")];
        let error = wire.encode(&far, 2, &mut out).expect_err("too far apart");
        assert!(matches!(error, Error::RangeTooWide { row: 0, .. }));
    }
}

#[test]
fn every_name_is_read_and_another_is_refused_with_all_names() {
    for wire in ALL {
        assert_eq!(wire.to_string().parse::<Wire>(), Ok(wire));
    }
    let error = "fp8".parse::<Wire>().expect_err("two formats begin so");
    let names = "one of f32, f16, bf16, int8, fp8-e4m3, fp8-e5m2, int4";
    assert_eq!(error.to_string(), format!("\"fp8\" is no wire format: {names}"));
}

#[test]
fn layouts_are_those_of_the_documentation() {
    // E4M3: 448 is the largest, so the scale is 2 and codes are those of halves.
    let bytes = encode(Wire::Fp8E4m3, &[896.0, -2.0, 3.0], 3);
    assert_eq!(bytes, [0x7E, 0xB8, 0x3C, 0, 0, 0, 0x40]);
    let bytes = encode(Wire::Fp8E5m2, &[-57344.0, 1.0, 1.5], 3);
    assert_eq!(bytes, [0xFB, 0x3C, 0x3E, 0, 0, 0x80, 0x3F]);
    // A group from -1 to 14 has steps of 1: column 0 in the low half of byte 0; the group behind it
    // has one value, its own bias, and the smallest scale.
    let mut row: Vec<f32> = (0..32).map(|column| (column % 16) as f32 - 1.0).collect();
    row.push(0.5);
    let bytes = encode(Wire::Int4, &row, 33);
    assert_eq!(bytes[..8], [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]);
    assert_eq!(bytes[16..], [0, 0x80, 0x3F, 0x80, 0xBF, 0x80, 0, 0, 0x3F]);
    assert_eq!(decode(Wire::Int4, &bytes, 33, 33), row);
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

/// Every value comes back within the bound of its row.
#[track_caller]
fn check_bounds(wire: Wire, values: &[f32], dim: usize) {
    let back = decode(wire, &encode(wire, values, dim), dim, values.len());
    for (row, back) in values.chunks(dim).zip(back.chunks(dim)) {
        let bound = wire.max_error(row);
        for (value, back) in row.iter().zip(back) {
            let error = (f64::from(*value) - f64::from(*back)).abs();
            assert!(
                error <= bound,
                "{wire}: {value} came back as {back}, bound {bound:e}: {row:?}"
            );
        }
    }
}

#[test]
fn bounds_hold_for_odd_rows_and_are_not_generous() {
    let ramp =
        |scale: f32| (0..100).map(|k| scale * ((k * 37 % 100) as f32 / 50.0 - 1.0)).collect();
    let odd: Vec<Vec<f32>> = vec![
        ramp(1.0),
        ramp(1e-30),
        ramp(1e-38),
        ramp(3e-45),
        ramp(6e4),
        (0..100).map(|k| if k % 2 == 0 { 0.25 } else { -0.25 }).collect(),
        (0..100).map(|k| if k == 7 { 1000.0 } else { 1e-3 * k as f32 }).collect(),
        (0..100).map(|k| 1000.0 + k as f32 * 1e-3).collect(),
        vec![0.0; 100],
        vec![-0.1; 100],
        vec![f32::from_bits(1); 100],
        vec![1e37; 100],
    ];
    for wire in ALL {
        for row in &odd {
            for dim in [1, 2, 20, 25, 50, 100] {
                check_bounds(wire, row, dim);
            }
        }
        // Some value errs by more than a third of what is allowed: the bound says something.
        let row = &odd[0];
        let back = decode(wire, &encode(wire, row, 100), 100, 100);
        let pairs = row.iter().zip(&back);
        let most = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).fold(0.0, f64::max);
        assert!(3.0 * most >= wire.max_error(row), "{wire}: {most:e} of {:e}", wire.max_error(row));
    }
}

#[test]
fn large_values_that_fit_stay_finite_in_every_format_with_a_scale() {
    for wire in SCALED {
        for row in [[1e38f32, -1e38, 5e37], [f32::MAX, f32::MAX, 1e38], [-1e38, -3e38, -2e38]] {
            let mut bytes = vec![0; wire.bytes(1, 3).expect("fits")];
            if wire.encode(&row, 3, &mut bytes).is_ok() {
                let back = decode(wire, &bytes, 3, 3);
                assert!(back.iter().all(|value| value.is_finite()), "{wire}: {row:?} as {back:?}");
            }
        }
    }
}

/// Rows of what one would not send: any bits, with values that are not finite or without, numbers
/// near the largest, of one sign and of both, and subnormal ones.
fn hostile() -> impl Strategy<Value = (usize, Vec<f32>)> {
    let sizes = (1usize..70, 1usize..4, 0..6);
    sizes.prop_flat_map(|(dim, rows, mood)| {
        let value = (any::<u32>(), 0.0f32..1.0).prop_map(move |(bits, part)| {
            let near = f32::MAX * (1.0 - part.powi(4));
            let sign = if bits % 2 == 0 { 1.0 } else { -1.0 };
            match mood {
                0 if bits % 64 == 0 => f32::from_bits(bits | 0x7F80_0000),
                0 | 1 => Some(f32::from_bits(bits)).filter(|x| x.is_finite()).unwrap_or(-0.0),
                2 => near,
                3 => sign * near,
                4 => f32::from_bits(bits & 0x807F_FFFF),
                _ if bits % 16 == 0 => sign * f32::from_bits(1),
                _ => -near / 2.0,
            }
        });
        (Just(dim), prop::collection::vec(value, dim * rows))
    })
}

/// Every row arrives within its bound, or is refused for what is true of it.
#[track_caller]
fn arrives_or_is_refused(wire: Wire, values: &[f32], dim: usize) {
    let mut bytes = vec![0xAB; wire.bytes(values.len() / dim, dim).expect("fits")];
    let Err(error) = wire.encode(values, dim, &mut bytes) else {
        check_bounds(wire, values, dim);
        let back = decode(wire, &bytes, dim, values.len());
        assert!(back.iter().all(|value| value.is_finite()), "{wire}: {values:?} as {back:?}");
        return;
    };
    assert!(bytes.iter().all(|&byte| byte == 0xAB), "{wire}: written all the same");
    let first = values.iter().position(|value| !value.is_finite());
    match error {
        Error::NotFinite { wire: of, row, column, value } => {
            assert_eq!((of, Some(row * dim + column)), (wire, first));
            assert_eq!(value.to_bits(), values[row * dim + column].to_bits());
        }
        Error::RangeTooWide { wire: of, row, min, max } => {
            assert!(of == wire && matches!(wire, Wire::Int8Rowwise | Wire::Int4), "{wire}");
            assert_eq!(first, None);
            let own = &values[row * dim..][..dim];
            let least = own.iter().copied().fold(f32::INFINITY, f32::min);
            let most = own.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!((min, max), (least, most));
            // Whole ranges that are no number, or that end within the rounding of the format; in
            // `int4` also a smallest value that no `bf16` is below.
            let part = if wire == Wire::Int4 { 0.97 } else { 1.0 - 1e-6 };
            let wide = most / 2.0 - least / 2.0 >= f32::MAX / 2.0 * part;
            let low = wire == Wire::Int4 && least < half::bf16::MIN.to_f32();
            assert!(wide || low || most >= f32::MAX * part, "{wire}: {least:e} to {most:e}");
        }
        other => panic!("{wire}: {other}"),
    }
}

#[test]
fn a_row_of_int8_whose_last_step_is_no_number_is_refused() {
    // The range and its 255th part are rounded, up in this case: 255 scales and the bias are more
    // than the largest number.
    let row = [f32::from_bits(0x7EBC_8F17), f32::MAX];
    let mut bytes = [0; 10];
    let error = Wire::Int8Rowwise.encode(&row, 2, &mut bytes).expect_err("would arrive as inf");
    assert!(matches!(error, Error::RangeTooWide { row: 0, .. }), "{error}");
    arrives_or_is_refused(Wire::Int8Rowwise, &[0.0, f32::MAX], 2);
    arrives_or_is_refused(Wire::Int8Rowwise, &[f32::MIN, 0.0], 2);
}

#[test]
fn rows_of_int4_at_the_end_of_the_numbers_arrive_or_are_refused() {
    let least = half::bf16::MIN.to_f32();
    let mut bytes = [0; 5];
    let error = Wire::Int4.encode(&[least.next_down()], 1, &mut bytes).expect_err("no such bias");
    assert!(matches!(error, Error::RangeTooWide { row: 0, .. }), "{error}");
    Wire::Int4.encode(&[least], 1, &mut bytes).expect("is a bias itself");
    assert_eq!(decode(Wire::Int4, &bytes, 1, 1), [least]);
    // The last step, before the bias below zero is added to it, is beyond the largest number.
    arrives_or_is_refused(Wire::Int4, &[3.376_550_8e38, -1.292_882e36], 2);
    for value in [f32::MIN, least.next_down(), least, least.next_up()] {
        arrives_or_is_refused(Wire::Int4, &[value], 1);
        arrives_or_is_refused(Wire::Int4, &[value, 0.0], 2);
    }
}

fn rows() -> impl Strategy<Value = (usize, Vec<f32>)> {
    // Long rows cross the blocks in which conversions are made.
    (1usize..300, 0usize..5).prop_flat_map(|(dim, rows)| {
        let magnitude = prop_oneof![Just(1e-40f32), Just(1e-9f32), Just(1.0f32), Just(3e4f32)];
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
    fn no_error_is_beyond_the_bound_of_its_format((dim, values) in rows()) {
        for wire in ALL {
            check_bounds(wire, &values, dim);
        }
    }

    #[test]
    fn hostile_rows_arrive_within_their_bound_or_are_refused_by_row_and_column(
        (dim, values) in hostile()
    ) {
        for wire in SCALED {
            arrives_or_is_refused(wire, &values, dim);
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
