//! What a sync averages at once: selected rows, cut into rounds of bounded memory.

/// Elements of weights and state that are averaged at once, 1 MiB: what a sync needs of memory,
/// several times.
pub(super) const ROUND: usize = 1 << 18;

/// The rows of a stored part that are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// Place of the part among those stored.
    pub(super) table: usize,
    pub(super) rows: usize,
    /// Elements of a row, weights and state.
    pub(super) elements: usize,
    /// Where its rows begin in the list of rows; all rows where there is none.
    pub(super) listed: Option<usize>,
}

/// Rows `first..first + rows` of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Place of the selection.
    pub(super) selection: usize,
    pub(super) first: usize,
    pub(super) rows: usize,
}

/// How far the rounds have come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    selection: usize,
    row: usize,
}

impl Cursor {
    /// The next round, about [`ROUND`] elements, at least a row; `false` once there are no more.
    pub(super) fn next_round(&mut self, selections: &[Selection], round: &mut Vec<Span>) -> bool {
        round.clear();
        let mut room = ROUND;
        while let Some(selection) = selections.get(self.selection) {
            let left = selection.rows - self.row;
            if left == 0 {
                *self = Self { selection: self.selection + 1, row: 0 };
                continue;
            }
            if room < selection.elements && !round.is_empty() {
                break;
            }
            let rows = (room / selection.elements).clamp(1, left);
            round.push(Span { selection: self.selection, first: self.row, rows });
            self.row += rows;
            room = room.saturating_sub(rows * selection.elements);
        }
        !round.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_cover_every_row_once_in_order_and_are_bounded() {
        for shapes in [
            vec![],
            vec![(0, 1)],
            vec![(1, 1)],
            vec![(3, ROUND)],
            vec![(2, 3 * ROUND), (7, 1)],
            vec![(100_000, 65), (1, 3), (0, 9), (ROUND, 2)],
        ] {
            let selection = |(table, &(rows, elements)): (usize, &(usize, usize))| Selection {
                table,
                rows,
                elements,
                listed: None,
            };
            let selections: Vec<_> = shapes.iter().enumerate().map(selection).collect();
            let (mut cursor, mut round) = (Cursor::default(), Vec::new());
            let mut spans = Vec::new();
            while cursor.next_round(&selections, &mut round) {
                let elements = |span: &Span| span.rows * selections[span.selection].elements;
                let total: usize = round.iter().map(elements).sum();
                assert!(total <= ROUND || (round.len() == 1 && round[0].rows == 1), "{round:?}");
                spans.extend_from_slice(&round);
            }
            let mut spans = spans.into_iter();
            for (number, &(rows, _)) in shapes.iter().enumerate() {
                let mut next = 0;
                while next < rows {
                    let span = spans.next().expect("rows are left");
                    assert_eq!((span.selection, span.first), (number, next));
                    next += span.rows;
                }
            }
            assert_eq!(spans.next(), None);
        }
    }
}
