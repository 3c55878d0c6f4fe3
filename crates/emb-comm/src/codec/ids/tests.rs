//! Damage that the checksum does not see: contents are refused or read as other ids, in bounds.

use super::*;

/// `SplitMix64`.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn with_checksum(encoding: u32, ids: usize, body: &[u64]) -> Vec<u64> {
    let low = (body.len() as u32) << ENCODING_BITS | encoding;
    let sum = checksum(low, ids, body);
    let mut words = vec![u64::from(sum) << 32 | u64::from(low)];
    words.extend_from_slice(body);
    words
}

#[test]
fn forged_words_of_every_encoding_are_read_or_refused() {
    let (mut state, mut scratch) = (1, Scratch::default());
    let (mut read, mut refused) = ([0; 8], [0; 8]);
    for case in 0..20_000 {
        let encoding = case % 8;
        let count = 1 + random(&mut state) as usize % 300;
        let words = random(&mut state) % 60;
        // Fewer bits set make smaller fields, which get further.
        let masks = [u64::MAX, random(&mut state), random(&mut state) & random(&mut state)];
        let mask = masks[random(&mut state) as usize % 3];
        let mut body: Vec<u64> = (0..words).map(|_| random(&mut state) & mask).collect();
        if encoding == 4
            && let Some(first) = body.first_mut()
        {
            *first = ((*first >> 32) << 32) | (random(&mut state) % 8);
        }
        let words = with_checksum(encoding, count, &body);
        let mut out = vec![0; count];
        match unpack(&words, &mut scratch, &mut out) {
            Ok(length) => {
                assert_eq!(length, words.len());
                read[encoding as usize] += 1;
            }
            Err(Error::PackedIds { word, .. }) => {
                assert!(word <= words.len());
                refused[encoding as usize] += 1;
            }
            Err(other) => unreachable!("invariant: no other error, but {other}"),
        }
    }
    assert_eq!(read[5..], [0; 3], "encodings that are none");
    assert!(refused[..5].iter().all(|&count| count > 100), "{read:?} {refused:?}");
}

#[test]
fn a_damaged_body_never_leaves_its_bounds() {
    let (mut state, mut scratch) = (2, Scratch::default());
    for case in 0..5000 {
        let end = [8, 1 << 12, 1 << 50][case % 3];
        let mut ids: Vec<u64> = (0..260).map(|_| random(&mut state) % end).collect();
        if case % 2 == 0 {
            ids.sort_unstable();
        }
        let mut words = Vec::new();
        pack(&ids, &mut scratch, &mut words).expect("not too long");
        let bit = random(&mut state) as usize % (64 * (words.len() - 1));
        words[1 + bit / 64] ^= 1 << (bit % 64);
        let encoding = words[0] as u32 % (1 << ENCODING_BITS);
        let words = with_checksum(encoding, ids.len(), &words[1..]);
        let mut out = vec![0; ids.len()];
        if unpack(&words, &mut scratch, &mut out).is_ok() {
            // Padding has no meaning; every other bit has.
            assert!(out != ids || bit / 64 + 2 == words.len(), "case {case}, bit {bit}");
        }
    }
}
