//! Rows and their state in plain vectors, with the one step that all tests here drive.

use emb_optim::{Extent, Optimizer, RowRule, RowState, RuleVisitor, Statistic};

/// Some rows of one table.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) optimizer: Optimizer,
    pub(crate) dim: usize,
    /// `[rows, dim]`.
    pub(crate) weights: Vec<f32>,
    /// For each slot `[rows]` or `[rows, dim]`.
    pub(crate) slots: Vec<Vec<f32>>,
}

impl Store {
    pub(crate) fn new(optimizer: Optimizer, dim: usize, weights: Vec<f32>) -> Self {
        let rows = weights.len() / dim;
        let slots = optimizer
            .slots()
            .iter()
            .map(|&slot| {
                let width = if slot.extent == Extent::Row { 1 } else { dim };
                vec![optimizer.initial_state(slot); rows * width]
            })
            .collect();
        Self { optimizer, dim, weights, slots }
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.weights[row * self.dim..(row + 1) * self.dim]
    }

    /// The values of a slot, by its name.
    pub(crate) fn slot(&self, name: &str) -> &[f32] {
        let at = self.optimizer.slots().iter().position(|slot| slot.name == name);
        &self.slots[at.unwrap_or_else(|| panic!("no slot {name}"))]
    }

    /// One step of one row with its whole gradient.
    pub(crate) fn step(&mut self, row: usize, lr: f64, step: u64, grad: &[f32]) {
        assert_eq!(grad.len(), self.dim, "one gradient element per column");
        let rule = self.optimizer.rule(lr, step);
        rule.visit(StepRow { store: self, row, grad });
    }
}

struct StepRow<'a> {
    store: &'a mut Store,
    row: usize,
    grad: &'a [f32],
}

impl RuleVisitor for StepRow<'_> {
    type Output = ();

    fn visit<R: RowRule>(self, rule: R) {
        let Store { dim, weights, slots, .. } = self.store;
        let (dim, row) = (*dim, self.row);
        let columns = row * dim..(row + 1) * dim;
        let (mut row_state, mut element_state) = (Vec::new(), Vec::new());
        for (slot, values) in rule.slots().iter().zip(slots.iter()) {
            match slot.extent {
                Extent::Row => row_state.push(values[row]),
                Extent::Element => element_state.extend_from_slice(&values[columns.clone()]),
            }
        }
        let weights = &mut weights[columns.clone()];
        let statistic = Statistic { total: rule.statistic(weights, self.grad), dim };
        let state = RowState { row: &mut row_state, element: &mut element_state };
        rule.step(weights, state, self.grad, statistic);
        let (mut row_state, mut element_state) = (row_state.iter(), element_state.chunks(dim));
        for (slot, values) in rule.slots().iter().zip(slots.iter_mut()) {
            match slot.extent {
                Extent::Row => values[row] = *row_state.next().expect("one per row slot"),
                Extent::Element => values[columns.clone()]
                    .copy_from_slice(element_state.next().expect("one per element slot")),
            }
        }
    }
}
