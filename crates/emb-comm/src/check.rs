//! Whether ranks of several processes compare what they call: [`Check`].

/// Whether calls are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// Before anything is written, every rank knows that all have called the same with counts
    /// that agree, and errors name who differs.
    #[default]
    Calls,
    /// Ranks that call different things hang until the timeout, and what they receive is
    /// unspecified: for runs whose calls are known to agree. Between threads of one process calls
    /// cost a microsecond or two; between processes an exchange of a few hundred bytes.
    Nothing,
}
