//! The moves that make the most expensive bucket cheaper: [`Finder`].

use super::state::{Move, State};

/// Looks for the move after which the most expensive of the buckets it touches costs least.
pub(super) struct Finder<'s, 'p, 'a> {
    state: &'s State<'p, 'a>,
    /// The most expensive bucket.
    from: usize,
    /// Every bucket that a move touches must cost less afterwards.
    limit: f64,
    /// Moves looked at so far.
    pub(super) looked: u64,
    /// Cost of the most expensive bucket that it touches, and the move.
    pub(super) best: Option<(f64, Move)>,
}

/// A kind of move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Shifts(Part),
    Exchanges(Part),
    Rows,
}

impl Look {
    /// The coarse ones first.
    pub(super) const ALL: [Self; 5] = [
        Self::Shifts(Part::Whole),
        Self::Exchanges(Part::Whole),
        Self::Shifts(Part::Cut),
        Self::Exchanges(Part::Cut),
        Self::Rows,
    ];
}

/// Whether pieces move whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Cut,
}

impl<'s, 'p, 'a> Finder<'s, 'p, 'a> {
    /// Looks for moves after which all buckets touched cost less than `limit`.
    pub(super) fn new(state: &'s State<'p, 'a>, limit: f64) -> Self {
        Self { state, from: state.most(), limit, looked: 0, best: None }
    }

    /// Looks for moves of one kind.
    pub(super) fn look(&mut self, look: Look) {
        match look {
            Look::Shifts(part) => self.shifts(part),
            Look::Exchanges(part) => self.exchanges(part),
            Look::Rows => self.rows(),
        }
    }

    /// Moves of pieces to other buckets.
    fn shifts(&mut self, part: Part) {
        let (state, from) = (self.state, self.from);
        for &piece in &state.at[from] {
            for to in (0..state.at.len()).filter(|&to| to != from) {
                let want = (state.cost[from] - state.cost[to]) / 2.0;
                for columns in self.amounts(piece, to, want, part).into_iter().flatten() {
                    self.looked += 1;
                    let moved = state.cost_of(piece, columns);
                    let worst = (state.cost[from] - moved).max(state.cost[to] + moved);
                    if self.better(worst)
                        && self.fits(to, state.bytes_moved(piece, to, columns), (0, 0))
                        && self.others_fit(piece, columns)
                    {
                        self.best = Some((worst, Move::Shift { piece, from, to, columns }));
                    }
                }
            }
        }
    }

    /// Moves of pieces to other buckets, against a whole piece that comes back.
    fn exchanges(&mut self, part: Part) {
        let (state, from) = (self.state, self.from);
        for to in (0..state.at.len()).filter(|&to| to != from) {
            let want = (state.cost[from] - state.cost[to]) / 2.0;
            if want <= 0.0 {
                continue;
            }
            for &back in &state.at[to] {
                if !self.may_go(back, from) {
                    continue;
                }
                let returned = state.cost_of(back, state.pieces[back].columns);
                for &piece in &state.at[from] {
                    self.exchange(piece, to, back, returned, want + returned, part);
                }
            }
        }
    }

    fn exchange(
        &mut self,
        piece: usize,
        to: usize,
        back: usize,
        returned: f64,
        want: f64,
        part: Part,
    ) {
        let (state, from) = (self.state, self.from);
        self.looked += 1;
        if state.pieces[piece].item == state.pieces[back].item {
            return;
        }
        for columns in self.amounts(piece, to, want, part).into_iter().flatten() {
            let moved = state.cost_of(piece, columns) - returned;
            let worst = (state.cost[from] - moved).max(state.cost[to] + moved);
            if !self.better(worst) {
                continue;
            }
            let out = state.bytes_moved(piece, to, columns);
            let home = state.bytes_moved(back, from, state.pieces[back].columns);
            if self.fits(to, out, home) && self.others_fit(piece, columns) {
                self.best = Some((worst, Move::Exchange { piece, from, to, columns, back }));
            }
        }
    }

    /// Rows of the pieces here over one bucket more, or over all but this one.
    fn rows(&mut self) {
        let state = self.state;
        for &piece in &state.at[self.from] {
            let freedom = &state.problem.items[state.pieces[piece].item].freedom;
            if freedom.shapes.is_some() {
                continue;
            }
            if state.splits(piece) < freedom.max_splits {
                self.widen(piece);
            }
            if state.splits(piece) > 1 {
                self.narrow(piece);
            }
        }
    }

    fn widen(&mut self, piece: usize) {
        let (state, splits) = (self.state, self.state.splits(piece) + 1);
        let (item, columns) = (state.pieces[piece].item, state.pieces[piece].columns);
        let new = state.problem.cost(item, columns, splits);
        let bytes = state.problem.bytes(item, columns, splits);
        let less = state.cost_of(piece, columns) - new;
        let here =
            state.pieces[piece].buckets.iter().map(|&bucket| state.cost[bucket as usize] - less);
        let here = here.fold(0.0, f64::max);
        for to in 0..state.at.len() {
            self.looked += 1;
            let worst = here.max(state.cost[to] + new);
            if self.better(worst) && self.may_go(piece, to) && self.room(to) >= bytes {
                self.best = Some((worst, Move::Widen { piece, to }));
            }
        }
    }

    fn narrow(&mut self, piece: usize) {
        let (state, from, splits) = (self.state, self.from, self.state.splits(piece) - 1);
        let (item, columns) = (state.pieces[piece].item, state.pieces[piece].columns);
        let old = state.cost_of(piece, columns);
        let (bytes, new) =
            (state.problem.bytes(item, columns, splits), state.problem.cost(item, columns, splits));
        let grown = bytes - state.problem.bytes(item, columns, splits + 1);
        let mut worst = state.cost[from] - old;
        let mut fits = true;
        for &bucket in &state.pieces[piece].buckets {
            let bucket = bucket as usize;
            self.looked += 1;
            if bucket != from {
                worst = worst.max(state.cost[bucket] + new - old);
                // On one bucket alone it joins what is there, which takes no more.
                fits &= self.room(bucket) >= grown;
            }
        }
        if fits && self.better(worst) {
            self.best = Some((worst, Move::Narrow { piece, from }));
        }
    }

    fn better(&self, worst: f64) -> bool {
        worst < self.best.map_or(self.limit, |(best, _)| best.min(self.limit))
    }

    fn room(&self, bucket: usize) -> u64 {
        self.state.problem.budget - self.state.bytes[bucket]
    }

    /// Whether what comes fits, `(freed at home, needed there)` of both ways.
    fn fits(&self, to: usize, out: (u64, u64), home: (u64, u64)) -> bool {
        self.room(to) + home.0 >= out.1 && self.room(self.from) + out.0 >= home.1
    }

    /// Whether the other buckets of a piece have room for its two parts: bytes of a whole row are
    /// stored with each.
    fn others_fit(&self, piece: usize, columns: usize) -> bool {
        let moved = &self.state.pieces[piece];
        let splits = self.state.splits(piece);
        let bytes = |columns| self.state.problem.bytes(moved.item, columns, splits);
        let more = bytes(columns) + bytes(moved.columns - columns) - bytes(moved.columns);
        let others = moved.buckets.iter().map(|&bucket| bucket as usize);
        more == 0
            || others.filter(|&other| other != self.from).all(|other| self.room(other) >= more)
    }

    /// A rank has one part of a block, and pieces of tables in fixed shapes stay apart.
    fn may_go(&self, piece: usize, to: usize) -> bool {
        let moved = &self.state.pieces[piece];
        let fixed = self.state.problem.items[moved.item].freedom.shapes.is_some();
        moved.buckets.binary_search(&(to as u32)).is_err()
            && !(fixed && self.state.alone(moved.item, to).is_some())
    }

    /// The columns of a piece that cost about `want`: all, or the two numbers next to it that may
    /// be cut off.
    fn amounts(&self, piece: usize, to: usize, want: f64, part: Part) -> [Option<usize>; 2] {
        let moved = &self.state.pieces[piece];
        let freedom = &self.state.problem.items[moved.item].freedom;
        if part == Part::Whole {
            return [self.may_go(piece, to).then_some(moved.columns), None];
        }
        let joins = moved.buckets.len() == 1 && self.state.alone(moved.item, to).is_some();
        let least = if joins { freedom.step } else { freedom.min_columns };
        let most = moved.columns.saturating_sub(freedom.min_columns);
        if freedom.shapes.is_some() || most < least || want <= 0.0 || !self.may_go(piece, to) {
            return [None, None];
        }
        let steps = (want / self.state.cost_of(piece, freedom.step)) as usize;
        let below = steps.saturating_mul(freedom.step).clamp(least, most);
        let above = below.saturating_add(freedom.step).clamp(least, most);
        [Some(below), (above > below).then_some(above)]
    }
}
