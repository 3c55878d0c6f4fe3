//! What scores and labels cannot be measured.

/// Scores or labels that have no metric, with their position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Scores and labels of different numbers.
    #[error("{scores} scores and {labels} labels")]
    Lengths {
        /// Number of scores.
        scores: usize,
        /// Number of labels.
        labels: usize,
    },
    /// A score that is not a number.
    #[error("the score of row {row} is NaN")]
    NanScore {
        /// Row, counted over all rows pushed.
        row: u64,
    },
    /// A score that is no probability.
    #[error("the score {score} of row {row} is not a probability from 0 to 1")]
    ScoreRange {
        /// Row, counted over all rows pushed.
        row: u64,
        /// The score.
        score: f64,
    },
    /// A label strictly between 0 and 1, for which AUC is not defined.
    #[error("the label {label} of row {row} is soft: AUC is defined for labels 0 and 1 only")]
    SoftLabel {
        /// Row, counted over all rows pushed.
        row: u64,
        /// The label.
        label: f32,
    },
    /// A label outside `[0, 1]`.
    #[error("the label {label} of row {row} is not from 0 to 1")]
    LabelRange {
        /// Row, counted over all rows pushed.
        row: u64,
        /// The label.
        label: f32,
    },
}
