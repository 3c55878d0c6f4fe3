//! Stable sort of (key, tag) pairs in device memory, and the runs of equal keys.

use super::descriptors::TableDescriptor;
use super::records::Run;
use crate::Result;
use emb_cuda::{Kept, Shape, Stream, View, ViewMut};

/// Pairs of a block: `kSortTile` of `sort.cu`, `kRunTile` of `runs.cuh`.
const TILE: usize = 4096;

/// Values of a digit of 8 bits.
const DIGITS: usize = 256;

/// Keys, and what finds again what they stand for. Two of each: a pass sorts from one to the other.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    keys: [Kept<u64>; 2],
    tags: [Kept<u32>; 2],
    count: usize,
    current: usize,
    counts: Kept<u32>,
    totals: Kept<u32>,
    runs: Runs,
}

/// Runs of sorted pairs.
#[derive(Debug, Default)]
struct Runs {
    list: Kept<Run>,
    count: Kept<u32>,
    tiles: Kept<u32>,
}

/// Pairs that were sorted, with their runs.
pub(super) struct Sorted<'a> {
    pub(super) keys: View<'a, u64>,
    pub(super) tags: View<'a, u32>,
    /// One more than there may be runs: a sentinel follows the last.
    pub(super) runs: View<'a, Run>,
    /// How many runs there are.
    pub(super) count: View<'a, u32>,
    /// Runs that begin before each tile of pairs.
    pub(super) tiles: View<'a, u32>,
}

impl Sorted<'_> {
    /// Shape of a launch of a thread block a tile.
    pub(super) fn tiled(&self) -> Shape {
        Shape::new(self.tiles.len() as u32, DIGITS as u32)
    }
}

impl Pairs {
    /// Room for `count` pairs (below 2^32), which are then written by the caller.
    pub(super) fn room(
        &mut self,
        stream: &Stream,
        count: usize,
    ) -> Result<(ViewMut<'_, u64>, ViewMut<'_, u32>)> {
        (self.count, self.current) = (count, 0);
        let keys = self.keys[0].room(stream, count.max(1))?.view_mut(0..count);
        let tags = self.tags[0].room(stream, count.max(1))?.view_mut(0..count);
        Ok((keys, tags))
    }

    /// Sorts the pairs by the lowest `bits` of their keys; pairs of equal keys stay in order.
    pub(super) fn sort(&mut self, stream: &Stream, bits: u32) -> Result<()> {
        let count = self.count;
        if count == 0 {
            return Ok(());
        }
        let (tiles, device) = (count.div_ceil(TILE), stream.device());
        let counts = self.counts.room(stream, tiles * DIGITS)?;
        let totals = self.totals.room(stream, DIGITS)?;
        let shape = Shape::new(tiles as u32, DIGITS as u32);
        for shift in (0..bits).step_by(8) {
            let [first, second] = &mut self.keys;
            let (from, to) = if self.current == 0 { (first, second) } else { (second, first) };
            let from = from.room(stream, count)?.view(0..count);
            let mut to = to.room(stream, count)?.view_mut(0..count);
            let [first, second] = &mut self.tags;
            let (tags, sorted) = if self.current == 0 { (first, second) } else { (second, first) };
            let tags = tags.room(stream, count)?.view(0..count);
            let mut sorted = sorted.room(stream, count)?.view_mut(0..count);
            let args = (from, count as u32, shift, counts.whole_mut());
            // SAFETY: `count` keys; `counts` has a place for each digit of each tile.
            unsafe { stream.launch(device.kernel("emb_sort_count")?, shape, args) }?;
            let args = (counts.whole_mut(), tiles as u32, totals.whole_mut());
            let threads = tiles.next_power_of_two().clamp(32, DIGITS);
            let digits = Shape::new(DIGITS as u32, threads as u32);
            // SAFETY: as above, and `totals` has one for each digit.
            unsafe { stream.launch(device.kernel("emb_sort_scan")?, digits, args) }?;
            let (to, sorted) = (to.reborrow(), sorted.reborrow());
            let places = (counts.whole(), totals.whole());
            let args = (from, tags, to, sorted, count as u32, shift, places.0, places.1);
            // SAFETY: as above; places are those of a permutation, below `count`.
            unsafe { stream.launch(device.kernel("emb_sort_scatter")?, shape, args) }?;
            self.current = 1 - self.current;
        }
        Ok(())
    }

    /// Finds the runs of the sorted pairs: rows of `tables`, or keys as they are without any.
    pub(super) fn find_runs(
        &mut self,
        stream: &Stream,
        tables: Option<View<'_, TableDescriptor>>,
    ) -> Result<()> {
        let (count, device) = (self.count, stream.device());
        let tiles = count.div_ceil(TILE);
        let keys = self.keys[self.current].room(stream, count.max(1))?.view(0..count);
        let tile_runs = self.runs.tiles.room(stream, tiles.max(1))?;
        let total = self.runs.count.room(stream, 1)?;
        let runs = self.runs.list.room(stream, count + 1)?;
        let shape = Shape::new(tiles.max(1) as u32, DIGITS as u32);
        if count > 0 {
            let args = (keys, count as u32, tile_runs.whole_mut());
            // SAFETY: `count` keys, and a number for each tile.
            unsafe { stream.launch(device.kernel("emb_run_count")?, shape, args) }?;
        }
        let args = (tile_runs.whole_mut(), tiles as u32, total.whole_mut());
        // SAFETY: as above; one total.
        unsafe { stream.launch(device.kernel("emb_run_scan")?, Shape::new(1, 1024), args) }?;
        if count > 0 {
            let tables_count = tables.map_or(0, View::len) as u32;
            let (tile_runs, runs) = (tile_runs.whole(), runs.whole_mut());
            let args = (keys, count as u32, tile_runs, tables, tables_count, runs);
            // SAFETY: as above; there are no more runs than keys, and one sentinel.
            unsafe { stream.launch(device.kernel("emb_run_write")?, shape, args) }?;
        }
        Ok(())
    }

    /// The pairs and their runs, once both were asked for.
    pub(super) fn sorted(&mut self, stream: &Stream) -> Result<Sorted<'_>> {
        let (count, current) = (self.count, self.current);
        // As much as before: asking for more would lose what is there.
        let (room, tiles) = (count.max(1), count.div_ceil(TILE));
        Ok(Sorted {
            keys: self.keys[current].room(stream, room)?.view(0..count),
            tags: self.tags[current].room(stream, room)?.view(0..count),
            runs: self.runs.list.room(stream, count + 1)?.view(0..count + 1),
            count: self.runs.count.room(stream, 1)?.view(0..1),
            tiles: self.runs.tiles.room(stream, tiles.max(1))?.view(0..tiles),
        })
    }
}
