//! Counter-based random bits: Philox4x32-10.
//!
//! A value is a pure function of a key and a counter, so initial weights and stochastic rounding
//! have the same bits whatever plan, rank, thread or instruction set asks for them.

use crate::Init;

#[cfg(test)]
mod tests;

/// Counters evaluated at once; the loops over lanes become vector code.
pub(crate) const LANES: usize = 8;

/// Columns that one [`RoundingBits::fill`] covers: 8 lanes of 4 words of 2 halves.
pub(crate) const ROUNDING_COLUMNS: usize = LANES * 8;

/// Columns that one batch of initial weights covers: 8 lanes of 4 words.
const INIT_COLUMNS: usize = LANES * 4;

/// What a stream of random bits is for; part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Initial weights.
    Init,
    /// Stochastic rounding of updated weights.
    Rounding,
}

/// The key of one table's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u32; 2]);

impl Key {
    /// The stream of a table, from the seed of the run and the *name* of the table: adding or
    /// removing another table changes nothing.
    pub(crate) fn new(seed: u64, table: &str, purpose: Purpose) -> Self {
        // FNV-1a over the name, then the finaliser of SplitMix64 to spread seed and purpose.
        let name = table.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let purpose = match purpose {
            Purpose::Init => 1,
            Purpose::Rounding => 2,
        };
        let key = mix(mix(name ^ mix(seed)).wrapping_add(purpose));
        Self([key as u32, (key >> 32) as u32])
    }

    /// What kernels are told.
    #[cfg(feature = "cuda")]
    pub(crate) fn words(self) -> [u32; 2] {
        self.0
    }
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The largest initial weight of an interval: rounding of `low + u * (high - low)` may reach
/// `high`, which is not included.
pub(crate) fn last_below(low: f32, high: f32) -> f32 {
    if high > low { high.next_down() } else { low }
}

/// Initial weights of global `row`, global columns `first_column..first_column + out.len()`.
///
/// Column `c` takes word `c % 4` of counter `(row, c / 4)`; its upper 24 bits are the fraction.
#[inline(always)]
pub(crate) fn initial_weights(
    key: Key,
    init: Init,
    row: u64,
    first_column: usize,
    out: &mut [f32],
) {
    let (low, high) = match init {
        Init::Constant(value) => return out.fill(value),
        Init::Uniform { low, high } => (low, high),
    };
    let last = last_below(low, high);
    let end = first_column + out.len();
    let mut start = first_column / INIT_COLUMNS * INIT_COLUMNS;
    while start < end {
        let mut counter =
            [[row as u32; LANES], [(row >> 32) as u32; LANES], [0; LANES], [0; LANES]];
        for (lane, block) in counter[2].iter_mut().enumerate() {
            *block = (start / 4 + lane) as u32;
        }
        let words = philox(counter, key);
        let mut values = [0.0; INIT_COLUMNS];
        for (block, values) in values.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            for (word, value) in values.iter_mut().enumerate() {
                let fraction = (words[word][block] >> 8) as f32 * (1.0 / 16_777_216.0);
                *value = (low + fraction * (high - low)).min(last);
            }
        }
        let (from, to) = (start.max(first_column), (start + INIT_COLUMNS).min(end));
        out[from - first_column..to - first_column]
            .copy_from_slice(&values[from - start..to - start]);
        start += INIT_COLUMNS;
    }
}

/// Normal numbers of mean 0 and the given standard deviation, for the initial weights of a dense
/// parameter: element `i` is a function of (seed, name, i), so other parameters change nothing.
///
/// Box and Muller 1958: elements `2k` and `2k + 1` are the cosine and sine parts of counter `k`,
/// computed in `f64`.
///
/// ```
/// let mut weights = [0.0; 3];
/// emb_kernels::normal(7, "bottom.0.weight", 0.1, &mut weights);
/// assert!(weights.iter().all(|weight| *weight != 0.0 && weight.abs() < 1.0));
/// ```
pub fn normal(seed: u64, name: &str, deviation: f32, out: &mut [f32]) {
    let key = Key::new(seed, name, Purpose::Init);
    for (block, chunk) in out.chunks_mut(2 * LANES).enumerate() {
        let number = |lane| (block * LANES + lane) as u64;
        let low = std::array::from_fn(|lane| number(lane) as u32);
        let high = std::array::from_fn(|lane| (number(lane) >> 32) as u32);
        let words = philox([low, high, [0; LANES], [0; LANES]], key);
        for (i, value) in chunk.iter_mut().enumerate() {
            let lane = i / 2;
            let bits = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            let fraction = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            let radius = (-2.0 * fraction(bits(words[0][lane], words[1][lane])).ln()).sqrt();
            let angle = std::f64::consts::TAU * fraction(bits(words[2][lane], words[3][lane]));
            let part = if i % 2 == 0 { angle.cos() } else { angle.sin() };
            *value = (f64::from(deviation) * radius * part) as f32;
        }
    }
}

/// The random bits that round one row in one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundingBits {
    key: Key,
    step: u64,
}

impl RoundingBits {
    pub(crate) fn new(key: Key, step: u64) -> Self {
        Self { key, step }
    }

    /// 16 bits for each of the global columns `block * ROUNDING_COLUMNS..` of global `row`:
    /// column `c` takes half `c / 8 % 2` of word `c / 16 % 4` of counter
    /// `(row, step, c / 64 * 8 + c % 8)`.
    #[inline(always)]
    pub(crate) fn fill(&self, row: u64, block: usize, out: &mut [u16; ROUNDING_COLUMNS]) {
        let high = ((self.step >> 32) as u32) << 14;
        let mut counter = [
            [row as u32; LANES],
            [(row >> 32) as u32; LANES],
            [self.step as u32; LANES],
            [high; LANES],
        ];
        for (lane, word) in counter[3].iter_mut().enumerate() {
            *word = word.wrapping_add((block * LANES + lane) as u32);
        }
        let words = philox(counter, self.key);
        for (w, lanes) in words.iter().enumerate() {
            for (lane, &word) in lanes.iter().enumerate() {
                out[w * 2 * LANES + lane] = word as u16;
                out[w * 2 * LANES + LANES + lane] = (word >> 16) as u16;
            }
        }
    }
}

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3;
/// SC 2011) on eight counters at once: `counter[word][lane]`.
#[inline(always)]
fn philox(mut counter: [[u32; LANES]; 4], Key([mut k0, mut k1]): Key) -> [[u32; LANES]; 4] {
    for _ in 0..10 {
        let mut next = [[0; LANES]; 4];
        for lane in 0..LANES {
            let a = u64::from(counter[0][lane]) * 0xd251_1f53;
            let b = u64::from(counter[2][lane]) * 0xcd9e_8d57;
            next[0][lane] = (b >> 32) as u32 ^ counter[1][lane] ^ k0;
            next[1][lane] = b as u32;
            next[2][lane] = (a >> 32) as u32 ^ counter[3][lane] ^ k1;
            next[3][lane] = a as u32;
        }
        counter = next;
        k0 = k0.wrapping_add(0x9e37_79b9);
        k1 = k1.wrapping_add(0xbb67_ae85);
    }
    counter
}
