//! The order of rows in which tiers are cut: [`RowOrder`].

use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// An order of the rows of a table: a bijection of rows to places.
///
/// Either every row has its place written down, or some *hot* rows come first and all others
/// follow in their own order. The second form costs memory for the hot rows alone, 40 to 90 bytes
/// each, whatever the rows of the table: an order by frequency needs no more, since rows of one
/// tier are placed alike and which cold row comes first does not matter.
///
/// Two orders are equal if they are written down alike. Copies share their memory.
#[derive(Clone)]
pub struct RowOrder(Rule);

/// How a [`RowOrder`] is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrderKind<'a> {
    /// `[rows]`: row `r` has place `places[r]`.
    Full(&'a [u64]),
    /// These rows have places 0, 1 and so on; all others follow, ascending.
    HotFirst(&'a [u64]),
}

#[derive(Clone)]
enum Rule {
    /// `[rows]` each: places by row and rows by place.
    Full(Arc<[u64]>, Arc<[u64]>),
    HotFirst(Arc<HotFirst>),
}

struct HotFirst {
    rows: u64,
    /// By place.
    hot: Vec<u64>,
    /// Hot rows, ascending, and their places.
    sorted: Vec<(u64, u32)>,
    /// Of the rows of `sorted`.
    by_row: Buckets,
    /// Of the number of cold rows before each of `sorted`.
    by_cold: Buckets,
}

impl RowOrder {
    /// Row `r` of the table comes at place `places[r]`. Keeps 16 bytes a row.
    ///
    /// # Errors
    /// A place outside `0..places.len()`, or taken twice.
    pub fn new(places: Vec<u64>) -> Result<Self> {
        const FREE: u64 = u64::MAX;
        let rows = places.len() as u64;
        let mut by_place = vec![FREE; places.len()];
        for (row, &place) in (0u64..).zip(&places) {
            let Some(taken) = by_place.get_mut(place as usize).filter(|_| place < rows) else {
                return Err(Error::PermutationRange { row, place, rows });
            };
            if *taken != FREE {
                return Err(Error::PermutationTwice { first: *taken, second: row, place });
            }
            *taken = row;
        }
        Ok(Self(Rule::Full(places.into(), by_place.into())))
    }

    /// Of the `rows` of a table, those of `hot` come first, as listed; all others follow,
    /// ascending.
    ///
    /// # Errors
    /// A hot row beyond the table, or listed twice; 2^32 hot rows or more.
    pub fn hot_first(rows: u64, hot: Vec<u64>) -> Result<Self> {
        let (kind, index) = ("hot row", hot.len());
        u32::try_from(index).map_err(|_| Error::IdTooLarge { kind, index })?;
        if let Some(&row) = hot.iter().find(|&&row| row >= rows) {
            return Err(Error::NoSuch { kind, index: row, count: rows });
        }
        let mut sorted: Vec<(u64, u32)> = hot.iter().copied().zip(0u32..).collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (row, first, second) = (pair[0].0, pair[0].1, pair[1].1);
            return Err(Error::HotRowTwice { row, first, second });
        }
        let by_row = Buckets::new(rows, sorted.iter().map(|&(row, _)| row));
        let before = sorted.iter().enumerate().map(|(position, &(row, _))| row - position as u64);
        let by_cold = Buckets::new(rows, before);
        let hot_first = HotFirst { rows, hot, sorted, by_row, by_cold };
        Ok(Self(Rule::HotFirst(Arc::new(hot_first))))
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Rule::Full(places, _) => places.len() as u64,
            Rule::HotFirst(hot_first) => hot_first.rows,
        }
    }

    /// The place of a row. Takes a time that does not grow with rows or hot rows, where these are
    /// spread over the table; the logarithm of their number where they lie side by side.
    ///
    /// # Panics
    /// If the table has no such row.
    #[inline]
    pub fn place(&self, row: u64) -> u64 {
        match &self.0 {
            Rule::Full(places, _) => places[row as usize],
            Rule::HotFirst(hot_first) => hot_first.place(row),
        }
    }

    /// The row that has a place: the inverse of [`place`](Self::place), as fast.
    ///
    /// # Panics
    /// If the table has no such place.
    #[inline]
    pub fn row(&self, place: u64) -> u64 {
        match &self.0 {
            Rule::Full(_, rows) => rows[place as usize],
            Rule::HotFirst(hot_first) => hot_first.row(place),
        }
    }

    /// How it is written down.
    pub fn kind(&self) -> RowOrderKind<'_> {
        match &self.0 {
            Rule::Full(places, _) => RowOrderKind::Full(places),
            Rule::HotFirst(hot_first) => RowOrderKind::HotFirst(&hot_first.hot),
        }
    }
}

impl PartialEq for RowOrder {
    fn eq(&self, other: &Self) -> bool {
        self.rows() == other.rows() && self.kind() == other.kind()
    }
}

impl Eq for RowOrder {}

impl fmt::Debug for RowOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowOrder").field("rows", &self.rows()).field("kind", &self.kind()).finish()
    }
}

impl HotFirst {
    #[inline]
    fn place(&self, row: u64) -> u64 {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let (below, near) = self.by_row.below(row, |position| self.sorted[position].0);
        if near
            && let Some(&(hot, place)) = self.sorted.get(below)
            && hot == row
        {
            return u64::from(place);
        }
        row - below as u64 + self.hot.len() as u64
    }

    #[inline]
    fn row(&self, place: u64) -> u64 {
        assert!(place < self.rows, "place {place} of {}", self.rows);
        let Some(cold) = place.checked_sub(self.hot.len() as u64) else {
            return self.hot[place as usize];
        };
        // Hot rows with no more than `cold` cold rows before them are before the row.
        let before = |position: usize| self.sorted[position].0 - position as u64;
        let (below, _) = self.by_cold.below(cold + 1, before);
        cold + below as u64
    }
}

/// How many values of an ascending list are below any number, by buckets of consecutive numbers:
/// about one for each value. A bucket has 64 slots; where none has two values, bits of the slots
/// are counted, so that most answers take one look into memory and no search.
struct Buckets {
    /// A bucket is `2^shift` numbers, a slot a 64th of that.
    shift: u32,
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// Which slots have values.
    slots: u64,
    /// Values of all buckets before.
    start: u32,
    /// Whether a slot has two values or more.
    crowded: bool,
}

/// Slots of a bucket: as many as there are bits to count at once, `2^6`.
const SLOTS_SHIFT: u32 = 6;

impl Buckets {
    /// For numbers up to and with `most`.
    fn new(most: u64, ascending: impl ExactSizeIterator<Item = u64>) -> Self {
        let count = ascending.len() as u64;
        let wanted = count.max(2).next_power_of_two().trailing_zeros();
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(wanted).max(SLOTS_SHIFT);
        // One more, where the last one ends.
        let mut buckets = vec![Bucket::default(); (most >> shift) as usize + 2];
        for value in ascending {
            let bucket = &mut buckets[(value >> shift) as usize];
            let slot = 1 << (value >> (shift - SLOTS_SHIFT) & 63);
            bucket.crowded |= bucket.slots & slot != 0;
            bucket.slots |= slot;
            // Values of this bucket, until they are summed up.
            bucket.start += 1;
        }
        let mut start = 0;
        for bucket in &mut buckets {
            (bucket.start, start) = (start, start + bucket.start);
        }
        Self { shift, buckets }
    }

    /// Values of the list below `number`, and whether the next one may be `number` itself;
    /// `value` is the value at a position of the list.
    #[inline]
    fn below(&self, number: u64, value: impl Fn(usize) -> u64) -> (usize, bool) {
        let at = (number >> self.shift) as usize;
        let bucket = self.buckets[at];
        let mut low = bucket.start as usize;
        if bucket.crowded {
            let mut high = self.buckets[at + 1].start as usize;
            // Most often values are crowded because they follow each other without a gap.
            let guess = low.saturating_add(number.saturating_sub(value(low)) as usize);
            if low < guess && guess < high && value(guess) == number && value(guess - 1) < number {
                return (guess, true);
            }
            while low < high {
                let middle = low.midpoint(high);
                if value(middle) < number {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return (low, true);
        }
        let slot = 1 << (number >> (self.shift - SLOTS_SHIFT) & 63);
        low += (bucket.slots & (slot - 1)).count_ones() as usize;
        let near = bucket.slots & slot != 0;
        // A slot of one number has no other value.
        if near && self.shift > SLOTS_SHIFT && value(low) < number {
            low += 1;
        }
        (low, near)
    }
}
