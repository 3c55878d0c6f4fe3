//! Finding one byte among many, eight at a time.

const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Bit 7 of each byte of the result is set exactly where `word` holds `byte`.
///
/// `word ^ pattern` has a zero byte at each hit; adding `0x7f` to the low seven bits of a byte
/// carries into bit 7 unless they are zero, and no byte carries into the next.
#[inline(always)]
fn hits(word: u64, byte: u8) -> u64 {
    let x = word ^ (ONES * u64::from(byte));
    !(((x & LOW) + LOW) | x | LOW)
}

/// Position of the first `byte`.
#[inline]
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        let found = hits(word_of(word), byte);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    words.remainder().iter().position(|&other| other == byte).map(|rest| at + rest)
}

/// Splits `bytes` at each `byte`: the end of field `i` goes to `ends[i]` as far as there is room;
/// the next field begins one later. Returns the number of fields, at least 1.
#[inline]
pub(crate) fn split(byte: u8, bytes: &[u8], ends: &mut [u32]) -> usize {
    let mut fields = 0;
    let mut end_at = |at: usize| {
        if let Some(end) = ends.get_mut(fields) {
            *end = at as u32;
        }
        fields += 1;
    };
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        let mut found = hits(word_of(word), byte);
        while found != 0 {
            end_at(at + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
        at += 8;
    }
    for (rest, _) in words.remainder().iter().enumerate().filter(|&(_, &other)| other == byte) {
        end_at(at + rest);
    }
    end_at(bytes.len());
    fields
}

#[inline(always)]
fn word_of(chunk: &[u8]) -> u64 {
    u64::from_le_bytes(chunk.try_into().expect("invariant: chunks of exactly 8 bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn find_and_split_agree_with_the_plain_way(
            bytes in proptest::collection::vec(prop_oneof![Just(9_u8), Just(8), Just(10), any::<u8>()], 0..80),
            byte in prop_oneof![Just(9_u8), any::<u8>()],
        ) {
            prop_assert_eq!(find(byte, &bytes), bytes.iter().position(|&other| other == byte));
            let mut ends = [0; 100];
            let fields = split(byte, &bytes, &mut ends);
            let mut at = 0;
            let plain: Vec<u32> = bytes
                .split(|&other| other == byte)
                .map(|field| {
                    let end = at + field.len();
                    at = end + 1;
                    end as u32
                })
                .collect();
            prop_assert_eq!(&ends[..fields], &plain[..]);
            let mut few = [0; 2];
            prop_assert_eq!(split(byte, &bytes, &mut few), fields);
        }
    }
}
