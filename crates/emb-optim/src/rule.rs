//! The seam between an update rule and whatever stores the rows: [`RowRule`].

/// How much optimizer state one slot keeps for a row of `dim` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// One `f32` for the whole row (row-wise rules).
    Row,
    /// One `f32` for every element of the row.
    Element,
}

/// One named piece of optimizer state; the name is what checkpoints use (`table/<slot>`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Name of the slot, in the words of `PyTorch`: `sum`, `exp_avg`, `exp_avg_sq`; and `sum_local`
    /// for what a replica has added to `sum` since the last sync.
    pub name: &'static str,
    /// Scalars per row or per element.
    pub extent: Extent,
}

/// Number of slots that keep one scalar per row.
pub fn row_slots(slots: &[Slot]) -> usize {
    slots.iter().filter(|slot| slot.extent == Extent::Row).count()
}

/// Number of slots that keep one scalar per element.
pub fn element_slots(slots: &[Slot]) -> usize {
    slots.iter().filter(|slot| slot.extent == Extent::Element).count()
}

/// The optimizer state of one row, borrowed for one step.
#[derive(Debug)]
pub struct RowState<'a> {
    /// `[row slots]`: one scalar for each slot of [`Extent::Row`], in the order of `slots()`.
    pub row: &'a mut [f32],
    /// `[element slots, columns]`, slot-major: the slots of [`Extent::Element`] in order.
    pub element: &'a mut [f32],
}

/// The statistic of a *whole* row, whatever part of its columns the caller holds.
///
/// Row-wise rules need the mean of squares over all `dim` columns. An owner of a column cut calls
/// [`RowRule::statistic`] on its own columns; the parts are added in column order, and the total is
/// what every owner passes to [`RowRule::step`]: a row is a row, however it is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// Sum over all columns of the row of what [`RowRule::statistic`] returns for each part.
    pub total: f64,
    /// Columns of the whole row.
    pub dim: usize,
}

impl Statistic {
    /// `total / dim`: the mean of squares that row-wise rules accumulate.
    #[inline(always)]
    pub fn mean(self) -> f64 {
        self.total / self.dim as f64
    }
}

/// An update rule ready for one step: learning rate, bias corrections and scaling are inside.
///
/// A step of a row has two phases. First [`statistic`](Self::statistic) reduces the row's gradient
/// to one number, then [`step`](Self::step) changes the row and its state; both see the row as it
/// was before the step. `grad` is the sum over
/// *all* duplicates of the row in the step, so a rule runs at most once per row and step; rows
/// without a gradient keep weights and state bitwise (the rules are lazy).
///
/// Implementations are `#[inline(always)]` straight-line loops over slices, so a kernel that calls
/// them inside a `#[target_feature]` function gets vector code; the order of every sum is fixed by
/// the code and not by the instruction set, so results are bitwise equal on every machine.
pub trait RowRule: Copy + Send + Sync {
    /// The state the rule keeps for a row.
    fn slots(&self) -> &'static [Slot];

    /// Whether [`step`](Self::step) reads its `statistic`; when `false` callers may skip phase one.
    fn uses_statistic(&self) -> bool;

    /// Whether [`step`](Self::step) must be given all columns of a row at once; an owner of a
    /// column cut refuses such a rule by name.
    fn needs_whole_row(&self) -> bool {
        false
    }

    /// Bound that every element of an *incoming* (per-bag) gradient is clamped to, `[-c, c]`,
    /// before duplicates are summed (FBGEMM's `gradient_clipping` with `max_gradient`); the kernel
    /// that sums applies it.
    fn max_gradient(&self) -> Option<f32>;

    /// Phase one: what `row` and `grad` (the same columns of one row) add to the row's statistic.
    fn statistic(&self, row: &[f32], grad: &[f32]) -> f64;

    /// Phase two: applies the summed gradient to `row` and its state.
    ///
    /// `row` and `grad` have the same length: the columns held here. `statistic` is of the whole
    /// row.
    fn step(&self, row: &mut [f32], state: RowState<'_>, grad: &[f32], statistic: Statistic);
}
