//! A stream of bit fields in 64-bit words: bit `k` of the stream is bit `k % 64` of word `k / 64`.

/// Bits of the smallest field that holds `value`: 0 for 0, 64 from 2^63 on.
pub(super) fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Appends fields to words.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    words: &'a mut Vec<u64>,
    /// Bits that do not fill a word yet.
    rest: u64,
    /// How many: at most 63.
    filled: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(words: &'a mut Vec<u64>) -> Self {
        Self { words, rest: 0, filled: 0 }
    }

    /// Appends `value`, which has no bits from `width` on; `width` is at most 64.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64, width: u32) {
        self.rest |= value << self.filled;
        let filled = self.filled + width;
        if filled >= 64 {
            self.words.push(self.rest);
            // In two steps: all 64 bits may have gone.
            self.rest = value >> 1 >> (63 - self.filled);
        }
        self.filled = filled % 64;
    }

    /// Appends the first `bits` bits of `words`, which are 0 after those.
    pub(super) fn put_words(&mut self, words: &[u64], bits: usize) {
        for (k, &word) in words[..bits.div_ceil(64)].iter().enumerate() {
            self.put(word, (bits - 64 * k).min(64) as u32);
        }
    }

    /// Appends a number of any size: 7 bits say how many follow.
    pub(super) fn put_number(&mut self, value: u64) {
        self.put(u64::from(bits_of(value)), LENGTH);
        self.put(value, bits_of(value));
    }

    /// Completes the last word with zeros.
    pub(super) fn finish(self) {
        if self.filled > 0 {
            self.words.push(self.rest);
        }
    }
}

/// Bits of a field that says how many bits another has: 0 to 64.
pub(super) const LENGTH: u32 = 7;

/// Bits that [`Writer::put_number`] appends.
pub(super) fn number_bits(value: u64) -> usize {
    (LENGTH + bits_of(value)) as usize
}

/// Takes fields from words.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    words: &'a [u64],
    /// Bits taken.
    at: usize,
}

/// What a reader says of words that end before what they hold does, or that hold what no writer
/// writes.
pub(super) type Read<T> = Result<T, &'static str>;

/// The words are too few for what they say they hold.
const SHORT: &str = "the words end before their ids do";

impl<'a> Reader<'a> {
    pub(super) fn new(words: &'a [u64]) -> Self {
        Self { words, at: 0 }
    }

    /// Refuses words behind the one with the last bit taken.
    pub(super) fn finish(&self) -> Read<()> {
        if self.at.div_ceil(64) == self.words.len() { Ok(()) } else { Err("words behind the ids") }
    }

    /// The word that the next bit is in.
    pub(super) fn word(&self) -> usize {
        self.at / 64
    }

    /// Takes a field of at most 64 bits.
    pub(super) fn take(&mut self, width: u32) -> Read<u64> {
        self.holds(width as usize)?;
        let value = field(self.words, self.at, width);
        self.at += width as usize;
        Ok(value)
    }

    /// Takes a width: at most 64.
    pub(super) fn take_width(&mut self) -> Read<u32> {
        let width = self.take(LENGTH)? as u32;
        if width > 64 {
            return Err("a field of more than 64 bits");
        }
        Ok(width)
    }

    /// Takes what [`Writer::put_number`] appended.
    pub(super) fn take_number(&mut self) -> Read<u64> {
        let width = self.take_width()?;
        self.take(width)
    }

    /// Takes `out.len()` fields of one width, at most 64.
    #[inline(always)]
    pub(super) fn take_fields(&mut self, width: u32, out: &mut [u64]) -> Read<()> {
        if width == 0 {
            out.fill(0);
            return Ok(());
        }
        let bits = out.len().checked_mul(width as usize).ok_or(SHORT)?;
        self.holds(bits)?;
        let (first, mut shift) = (self.at / 64, (self.at % 64) as u32);
        // One word more than the fields fill, so that each can be read from two.
        let end = (self.at + bits) / 64 + 1;
        if let Some(words) = self.words.get(first..=end) {
            let (mut word, mask) = (0, u64::MAX >> (64 - width));
            for out in &mut *out {
                let value = words[word] >> shift | words[word + 1] << 1 << (63 - shift);
                *out = value & mask;
                shift += width;
                word += (shift / 64) as usize;
                shift %= 64;
            }
        } else {
            for (k, out) in out.iter_mut().enumerate() {
                *out = field(self.words, self.at + k * width as usize, width);
            }
        }
        self.at += bits;
        Ok(())
    }

    /// Takes a 1 for each of `out`, which `add` is given with the number of 0 before it.
    #[inline(always)]
    pub(super) fn take_unary(
        &mut self,
        out: &mut [u64],
        mut add: impl FnMut(&mut u64, u64),
    ) -> Read<()> {
        let mut word = self.at / 64;
        let mut bits = *self.words.get(word).ok_or(SHORT)?;
        bits &= u64::MAX << (self.at % 64);
        // Bits from `self.at` to the word's first: negative at first, hence wrapping.
        let mut offset = (word * 64).wrapping_sub(self.at) as u64;
        let (mut done, count) = (0, out.len());
        loop {
            let ones = (bits.count_ones() as usize).min(count - done);
            let mut last = 0;
            for out in &mut out[done..done + ones] {
                last = bits.trailing_zeros();
                bits &= bits - 1;
                add(out, offset.wrapping_add(u64::from(last)).wrapping_sub(done as u64));
                done += 1;
            }
            if done == count {
                self.at = word * 64 + last as usize + usize::from(count > 0);
                return Ok(());
            }
            word += 1;
            bits = *self.words.get(word).ok_or(SHORT)?;
            offset = offset.wrapping_add(64);
        }
    }

    fn holds(&self, bits: usize) -> Read<()> {
        if bits > self.words.len() * 64 - self.at { Err(SHORT) } else { Ok(()) }
    }
}

/// The field of `width` bits at bit `at`, all of which is there.
#[inline(always)]
fn field(words: &[u64], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, shift) = (at / 64, at % 64);
    let high = words.get(word + 1).copied().unwrap_or(0);
    let value = words[word] >> shift | high << 1 << (63 - shift);
    value & u64::MAX >> (64 - width)
}
