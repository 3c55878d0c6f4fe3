//! Column blocks onto positions, costliest first, under a limit of columns: [`Positions`].

/// A column block to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) columns: usize,
    pub(super) bytes: u64,
    /// Seconds of its look-ups and updates.
    pub(super) cost: f64,
    /// The position that it must have.
    pub(super) pinned: Option<u32>,
}

/// A block without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) number: usize,
    pub(super) needs: u64,
    pub(super) has: u64,
}

impl Short {
    pub(super) fn missing(self) -> u64 {
        self.needs - self.has
    }
}

/// What is on every position so far, `[S]` each.
pub(super) struct Positions {
    cost: Vec<f64>,
    room: Vec<u64>,
    columns: Vec<usize>,
}

/// Limits of columns that are tried, over the mean: 1.0 to 1.5 in eleven steps, then none.
pub(super) fn limits() -> impl Iterator<Item = f64> {
    (0..=10).map(|step| 1.0 + 0.05 * f64::from(step)).chain([f64::INFINITY])
}

impl Positions {
    pub(super) fn new(positions: u32, budget: u64) -> Self {
        let count = positions as usize;
        Self { cost: vec![0.0; count], room: vec![budget; count], columns: vec![0; count] }
    }

    /// Places `parts` in their order, each where there is least cost (then most room, then the
    /// lower position) among positions with room and at most `most` columns; `None` where only
    /// columns forbid it.
    ///
    /// # Errors
    /// The first part that has no room anywhere.
    pub(super) fn place(mut self, parts: &[Part], most: f64) -> Result<Option<Vec<u32>>, Short> {
        let mut chosen = Vec::with_capacity(parts.len());
        for part in parts {
            let found = match part.pinned {
                Some(position) => Some(position as usize).filter(|&at| self.room[at] >= part.bytes),
                None => self.least(part, most),
            };
            let Some(position) = found else {
                let has = match part.pinned {
                    Some(position) => self.room[position as usize],
                    None => self.room.iter().copied().max().unwrap_or(0),
                };
                let short = Short { number: part.number, needs: part.bytes, has };
                return if part.bytes > has { Err(short) } else { Ok(None) };
            };
            self.cost[position] += part.cost;
            self.room[position] -= part.bytes;
            self.columns[position] += part.columns;
            chosen.push(position as u32);
        }
        Ok(Some(chosen))
    }

    fn least(&self, part: &Part, most: f64) -> Option<usize> {
        let fits = |&at: &usize| {
            self.room[at] >= part.bytes && (self.columns[at] + part.columns) as f64 <= most
        };
        (0..self.cost.len()).filter(fits).min_by(|&a, &b| {
            self.cost[a].total_cmp(&self.cost[b]).then(self.room[b].cmp(&self.room[a]))
        })
    }
}
