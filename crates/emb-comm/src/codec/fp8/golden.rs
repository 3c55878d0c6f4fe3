//! 8-bit floats against those of `ml_dtypes`, bit for bit: `golden.txt`, which `golden.py` wrote.

use super::*;

/// The lines of a kind, in words.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("golden.txt").lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let kind = kind.to_owned();
    lines.filter(move |words| words[0] == kind).map(|words| words[1..].to_vec())
}

fn hex(word: &str) -> u32 {
    u32::from_str_radix(word, 16).expect("hexadecimal bits")
}

fn number(word: &str) -> f32 {
    f32::from_bits(hex(word))
}

fn bytes(word: &str) -> Vec<u8> {
    let pairs = word.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| hex(pair) as u8).collect()
}

#[test]
fn golden_values_of_all_codes() {
    let mut codes = 0..=u8::MAX;
    for line in lines("value") {
        let byte = hex(line[0]) as u8;
        assert_eq!(codes.next(), Some(byte));
        for (got, expected) in
            [(value::<E4m3>(byte), number(line[1])), (value::<E5m2>(byte), number(line[2]))]
        {
            let both = got.is_nan() && expected.is_nan();
            assert!(both || got.to_bits() == expected.to_bits(), "{byte:#x}: {got}, {expected}");
        }
    }
    assert_eq!(codes.next(), None);
}

/// Ours for what `ml_dtypes` makes of `x`: the same, but for magnitudes that it has no number for.
fn saturated<F: Float8>(theirs: u8) -> u8 {
    if u32::from(theirs & 0x7F) > F::LARGEST { theirs & 0x80 | F::LARGEST as u8 } else { theirs }
}

#[test]
fn golden_codes_of_ties_and_tiny_and_huge_numbers() {
    let (mut compared, mut beyond) = (0, [0, 0]);
    for word in lines("code").flatten() {
        let [x, e4m3, e5m2] = word.split(':').collect::<Vec<_>>()[..] else { panic!("{word}") };
        let (x, theirs) = (number(x), [hex(e4m3) as u8, hex(e5m2) as u8]);
        if x.is_nan() {
            // Refused before there are codes, as are infinite numbers; theirs have one for each.
            assert_eq!(theirs.map(|code| code & 0x7F), [0x7F, 0x7E]);
            continue;
        }
        let ours = [code::<E4m3>(x), code::<E5m2>(x)];
        let expected = [saturated::<E4m3>(theirs[0]), saturated::<E5m2>(theirs[1])];
        assert_eq!(ours, expected, "{x:e}");
        for (beyond, (theirs, ours)) in beyond.iter_mut().zip(theirs.iter().zip(ours)) {
            *beyond += usize::from(*theirs != ours);
        }
        compared += 1;
    }
    assert!(compared > 1300, "{compared} numbers");
    // Theirs overflow: to NaN in E4M3, to infinity in E5M2.
    assert!(beyond.iter().all(|&count| count > 6), "{beyond:?} beyond the largest");
}

#[test]
fn golden_rows_with_their_scale() {
    let mut rows = 0;
    for line in lines("row") {
        let row: Vec<f32> = line[4..].iter().map(|word| number(word)).collect();
        for (wire, scale, codes) in
            [(Wire::Fp8E4m3, line[0], line[1]), (Wire::Fp8E5m2, line[2], line[3])]
        {
            let mut expected = bytes(codes);
            expected.extend(number(scale).to_le_bytes());
            let mut out = vec![0; expected.len()];
            wire.encode(&row, row.len(), &mut out).expect("finite");
            assert_eq!(out, expected, "{wire}: {row:?}");
        }
        rows += 1;
    }
    assert_eq!(rows, 16);
}
