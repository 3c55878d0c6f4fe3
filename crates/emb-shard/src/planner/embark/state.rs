//! Pieces of tables in buckets, with cost and bytes of every bucket: [`State`].

use super::problem::{Problem, Shape};

/// Columns of a table, on one bucket or with their rows split over several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) item: usize,
    /// None where the piece was taken away.
    pub(super) columns: usize,
    /// Ascending.
    pub(super) buckets: Vec<u32>,
}

/// A step from one state to another. Costs change on the buckets named, and on those of a piece
/// whose row split changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// `columns` of a piece leave one of its buckets for another.
    Shift { piece: usize, from: usize, to: usize, columns: usize },
    /// As a shift, and a piece of `to` comes back whole.
    Exchange { piece: usize, from: usize, to: usize, columns: usize, back: usize },
    /// Rows are split over one more bucket.
    Widen { piece: usize, to: usize },
    /// Rows are split over one bucket less.
    Narrow { piece: usize, from: usize },
}

/// Pieces in buckets.
#[derive(Clone, Debug)]
pub(super) struct State<'p, 'a> {
    pub(super) problem: &'p Problem<'a>,
    pub(super) pieces: Vec<Piece>,
    /// `[K]` the pieces of each bucket.
    pub(super) at: Vec<Vec<usize>>,
    pub(super) cost: Vec<f64>,
    /// `[K]` of the fullest rank.
    pub(super) bytes: Vec<u64>,
    /// `[items][K]` the piece of a table that is on this bucket alone.
    alone: Vec<Option<u32>>,
}

impl<'p, 'a> State<'p, 'a> {
    pub(super) fn new(problem: &'p Problem<'a>) -> Self {
        let buckets = problem.buckets.count as usize;
        Self {
            problem,
            pieces: Vec::new(),
            at: vec![Vec::new(); buckets],
            cost: problem.base_cost.clone(),
            bytes: problem.base_bytes.clone(),
            alone: vec![None; buckets * problem.items.len()],
        }
    }

    /// The state that consists of `pieces`.
    pub(super) fn of(problem: &'p Problem<'a>, pieces: Vec<Piece>) -> Self {
        let mut state = Self::new(problem);
        for piece in pieces {
            state.put(piece.item, piece.columns, piece.buckets);
        }
        state
    }

    pub(super) fn into_pieces(self) -> Vec<Piece> {
        self.pieces.into_iter().filter(|piece| piece.columns > 0).collect()
    }

    /// The most expensive bucket, the first of several.
    pub(super) fn most(&self) -> usize {
        (1..self.cost.len()).fold(
            0,
            |most, next| {
                if self.cost[next] > self.cost[most] { next } else { most }
            },
        )
    }

    pub(super) fn max(&self) -> f64 {
        self.cost[self.most()]
    }

    /// The piece of `item` that is on `bucket` alone.
    pub(super) fn alone(&self, item: usize, bucket: usize) -> Option<usize> {
        self.alone[item * self.at.len() + bucket].map(|piece| piece as usize)
    }

    pub(super) fn splits(&self, piece: usize) -> u32 {
        self.pieces[piece].buckets.len() as u32
    }

    /// Cost of `columns` columns of a piece on each of its buckets.
    pub(super) fn cost_of(&self, piece: usize, columns: usize) -> f64 {
        self.problem.cost(self.pieces[piece].item, columns, self.splits(piece))
    }

    /// Bytes that `from` gets rid of and that `to` takes, if `columns` of a piece move.
    pub(super) fn bytes_moved(&self, piece: usize, to: usize, columns: usize) -> (u64, u64) {
        let (moved, splits) = (&self.pieces[piece], self.splits(piece));
        let bytes = |columns| self.problem.bytes(moved.item, columns, splits);
        let there = match self.alone(moved.item, to) {
            Some(there) if splits == 1 => self.pieces[there].columns,
            _ => 0,
        };
        let freed = bytes(moved.columns) - bytes(moved.columns - columns);
        (freed, bytes(there + columns) - bytes(there))
    }

    /// Adds `columns` of an item on `buckets`, to what is there where rows are not split.
    pub(super) fn put(&mut self, item: usize, columns: usize, buckets: Vec<u32>) {
        if let [bucket] = buckets[..]
            && let Some(there) = self.alone(item, bucket as usize)
        {
            self.load(there, -1.0);
            self.pieces[there].columns += columns;
            self.load(there, 1.0);
            return;
        }
        let piece = self.pieces.len();
        for &bucket in &buckets {
            self.at[bucket as usize].push(piece);
        }
        if let [bucket] = buckets[..] {
            self.alone[item * self.at.len() + bucket as usize] = Some(piece as u32);
        }
        self.pieces.push(Piece { item, columns, buckets });
        self.load(piece, 1.0);
    }

    /// Takes a piece out of its buckets, which it returns.
    pub(super) fn take(&mut self, piece: usize) -> Piece {
        self.load(piece, -1.0);
        let taken = self.pieces[piece].clone();
        for &bucket in &taken.buckets {
            self.at[bucket as usize].retain(|&there| there != piece);
        }
        if let [bucket] = taken.buckets[..] {
            self.alone[taken.item * self.at.len() + bucket as usize] = None;
        }
        self.pieces[piece].columns = 0;
        taken
    }

    pub(super) fn apply(&mut self, step: Move) {
        match step {
            Move::Shift { piece, from, to, columns } => self.shift(piece, from, to, columns),
            Move::Exchange { piece, from, to, columns, back } => {
                let all = self.pieces[back].columns;
                self.shift(piece, from, to, columns);
                self.shift(back, to, from, all);
            }
            Move::Widen { piece, to } => {
                let Piece { item, columns, mut buckets } = self.take(piece);
                buckets.push(to as u32);
                buckets.sort_unstable();
                self.put(item, columns, buckets);
            }
            Move::Narrow { piece, from } => {
                let Piece { item, columns, mut buckets } = self.take(piece);
                buckets.retain(|&bucket| bucket as usize != from);
                self.put(item, columns, buckets);
            }
        }
    }

    fn shift(&mut self, piece: usize, from: usize, to: usize, columns: usize) {
        let Piece { item, columns: all, buckets } = self.take(piece);
        if all > columns {
            self.put(item, all - columns, buckets.clone());
        }
        let moved =
            buckets.iter().map(|&bucket| if bucket as usize == from { to as u32 } else { bucket });
        let mut moved: Vec<u32> = moved.collect();
        moved.sort_unstable();
        self.put(item, columns, moved);
    }

    /// Adds a piece to cost and bytes of its buckets, or takes it away.
    fn load(&mut self, piece: usize, sign: f64) {
        let (item, columns, splits) =
            (self.pieces[piece].item, self.pieces[piece].columns, self.splits(piece));
        let cost = self.problem.cost(item, columns, splits);
        let bytes = self.problem.bytes(item, columns, splits);
        for &bucket in &self.pieces[piece].buckets {
            let bucket = bucket as usize;
            self.cost[bucket] += sign * cost;
            if sign > 0.0 {
                self.bytes[bucket] += bytes;
            } else {
                self.bytes[bucket] -= bytes;
            }
        }
    }
}

impl Shape {
    /// Shards of the table, all told.
    pub(super) fn shards(self) -> usize {
        self.blocks * self.splits as usize
    }
}
