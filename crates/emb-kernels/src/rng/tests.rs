use super::*;

fn one(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let words = philox(counter.map(|word| [word; LANES]), Key(key));
    words.map(|lanes| {
        assert!(lanes.iter().all(|&word| word == lanes[0]));
        lanes[0]
    })
}

/// The known-answer vectors published with Random123 (`philox4x32 10`).
#[test]
fn known_answers_of_random123() {
    assert_eq!(one([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        one([u32::MAX; 4], [u32::MAX; 2]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    assert_eq!(
        one([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

#[test]
fn a_window_of_columns_has_the_bits_of_the_whole_row() {
    let key = Key::new(7, "user", Purpose::Init);
    let init = Init::Uniform { low: -0.5, high: 0.25 };
    let mut whole = [0.0; 200];
    initial_weights(key, init, 1 << 37, 0, &mut whole);
    for first in [0, 1, 3, 31, 32, 33, 100] {
        for width in [1, 2, 31, 64, 100] {
            let mut part = vec![0.0; width];
            initial_weights(key, init, 1 << 37, first, &mut part);
            assert_eq!(part, whole[first..first + width]);
        }
    }
}

#[test]
fn uniform_weights_fill_their_interval_evenly() {
    let key = Key::new(7, "user", Purpose::Init);
    let mut values = vec![0.0; 64];
    let (mut sum, mut sum_of_squares, mut rows) = (0.0, 0.0, 0_u32);
    for row in 0..2000 {
        initial_weights(key, Init::Uniform { low: -2.0, high: 1.0 }, row, 0, &mut values);
        assert!(values.iter().all(|&value| (-2.0..1.0).contains(&value)));
        sum += values.iter().map(|&v| f64::from(v)).sum::<f64>();
        sum_of_squares += values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>();
        rows += 1;
    }
    let n = f64::from(rows) * 64.0;
    let mean = sum / n;
    let variance = sum_of_squares / n - mean * mean;
    assert!((mean + 0.5).abs() < 0.01, "mean {mean}");
    assert!((variance - 0.75).abs() < 0.01, "variance {variance}");
}

#[test]
fn an_interval_of_one_value_keeps_its_upper_end_out() {
    let key = Key::new(1, "t", Purpose::Init);
    let (low, high) = (1.0_f32, 1.0_f32.next_up());
    let mut values = [0.0; 64];
    initial_weights(key, Init::Uniform { low, high }, 3, 0, &mut values);
    assert!(values.iter().all(|&value| value == low));
}

#[test]
fn seed_name_purpose_row_and_step_all_matter() {
    let keys = [
        Key::new(7, "user", Purpose::Init),
        Key::new(8, "user", Purpose::Init),
        Key::new(7, "item", Purpose::Init),
        Key::new(7, "user", Purpose::Rounding),
    ];
    let mut seen = std::collections::HashSet::new();
    for key in keys {
        for (row, step, block) in
            [(0, 0, 0), (1, 0, 0), (1 << 32, 0, 0), (0, 1, 0), (0, 1 << 32, 0), (0, 0, 1)]
        {
            let mut bits = [0; ROUNDING_COLUMNS];
            RoundingBits::new(key, step).fill(row, block, &mut bits);
            assert!(seen.insert(bits));
        }
    }
}

#[test]
fn normal_numbers_have_their_mean_and_deviation_and_depend_on_the_name_alone() {
    let mut many = vec![0.0; 200_001];
    super::normal(3, "w", 2.0, &mut many);
    let mean = many.iter().map(|&x| f64::from(x)).sum::<f64>() / many.len() as f64;
    let square = many.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / many.len() as f64;
    let fourth = many.iter().map(|&x| f64::from(x).powi(4)).sum::<f64>() / many.len() as f64;
    // Standard errors: 0.0045 of the mean, 0.013 of the square, 0.35 of the fourth power.
    assert!(mean.abs() < 0.02, "{mean}");
    assert!((square - 4.0).abs() < 0.06, "{square}");
    assert!((fourth - 48.0).abs() < 2.0, "{fourth}");
    let mut few = vec![0.0; 7];
    super::normal(3, "w", 2.0, &mut few);
    assert_eq!(few, many[..7]);
    super::normal(3, "v", 2.0, &mut few);
    assert_ne!(few, many[..7]);
}
