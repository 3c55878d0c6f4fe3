//! Which id column feeds which feature and table, and how ids become rows.

use serde::{Deserialize, Serialize};

use super::{Error, Result};

/// Integer columns of a row.
pub const DENSE: usize = 13;
/// Id columns of a row.
pub const SPARSE: usize = 26;

/// What to do with an id that is not below the rows of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdPolicy {
    /// Take the id modulo the rows: the hashing trick.
    #[default]
    Modulo,
    /// Refuse it by name: for data prepared with ids below the rows.
    Error,
}

/// One feature: the id column it reads and the table it looks up.
///
/// A table for `rows` ids has `rows + 1` rows: the last one is reserved for missing values, so
/// that no id shares it. Several features may read one column or share one table.
///
/// ```
/// use emb_dlrm::data::{IdPolicy, SparseColumn};
/// let column = SparseColumn {
///     feature: "item".into(),
///     column: 2,
///     table: "items".into(),
///     rows: 1_000_000,
/// };
/// assert_eq!(column.row(Some(9_999_999), IdPolicy::Modulo), Some(999_999));
/// assert_eq!(column.row(Some(9_999_999), IdPolicy::Error), None);
/// assert_eq!(column.row(None, IdPolicy::Error), Some(1_000_000));
/// assert_eq!(column.table_rows(), 1_000_001);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseColumn {
    /// Name of the feature, unique within a list.
    pub feature: String,
    /// Id column, 0 to 25 for `C1` to `C26`.
    pub column: usize,
    /// Name of the table.
    pub table: String,
    /// Rows for ids; the table has one more for missing values.
    pub rows: u64,
}

impl SparseColumn {
    /// Rows of the table, the reserved row of missing values included.
    pub fn table_rows(&self) -> u64 {
        self.rows + 1
    }

    /// The row of an id, or of a missing value; `None` where the policy refuses the id.
    #[inline]
    pub fn row(&self, id: Option<u32>, policy: IdPolicy) -> Option<i64> {
        match id {
            None => Some(self.rows as i64),
            Some(id) if u64::from(id) < self.rows => Some(i64::from(id)),
            Some(id) => match policy {
                // The id is not below the rows, so these fit in 32 bits, where dividing is quick.
                IdPolicy::Modulo => Some(i64::from(id % self.rows as u32)),
                IdPolicy::Error => None,
            },
        }
    }
}

/// Checks a list of features: columns that exist, rows, unique names, one size a table.
///
/// # Errors
/// [`Error::Column`] with the feature and what is wrong.
pub fn check_columns(columns: &[SparseColumn]) -> Result<()> {
    for (position, column) in columns.iter().enumerate() {
        let refuse = |what: String| Err(Error::Column { feature: column.feature.clone(), what });
        if column.column >= SPARSE {
            return refuse(format!(
                "column {} does not exist, columns are 0..{SPARSE}",
                column.column
            ));
        }
        if column.rows == 0 || column.rows >= i64::MAX as u64 {
            return refuse(format!("table {:?} cannot have {} rows", column.table, column.rows));
        }
        for other in &columns[..position] {
            if other.feature == column.feature {
                return refuse("two features of this name".to_owned());
            }
            if other.table == column.table && other.rows != column.rows {
                return refuse(format!(
                    "table {:?} has {} rows here and {} for feature {:?}",
                    column.table, column.rows, other.rows, other.feature
                ));
            }
        }
    }
    Ok(())
}
