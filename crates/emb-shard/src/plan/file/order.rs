//! An order of rows in a plan file: [`OrderFile`].

use crate::{Result, RowOrder, RowOrderKind};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// `[2, 0, 1]`, the place of every row, or `{"hot": [8, 3]}`, the rows that come first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum OrderFile {
    Full(Vec<u64>),
    HotFirst { hot: Vec<u64> },
}

impl OrderFile {
    pub(super) fn new(order: &RowOrder) -> Self {
        match order.kind() {
            RowOrderKind::Full(places) => Self::Full(places.to_vec()),
            RowOrderKind::HotFirst(hot) => Self::HotFirst { hot: hot.to_vec() },
        }
    }

    /// The order, of a table of `rows` rows where it lists hot rows alone.
    pub(super) fn into_order(self, rows: u64) -> Result<RowOrder> {
        match self {
            Self::Full(places) => RowOrder::new(places),
            Self::HotFirst { hot } => RowOrder::hot_first(rows, hot),
        }
    }
}

/// By hand: what `untagged` derives copies the list and hides which key is unknown.
impl<'de> Deserialize<'de> for OrderFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = OrderFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the places of all rows as a list, or {\"hot\": [rows that come first]}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OrderFile, A::Error> {
        let mut places = Vec::new();
        while let Some(place) = items.next_element()? {
            places.push(place);
        }
        Ok(OrderFile::Full(places))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<OrderFile, A::Error> {
        let mut hot = None;
        while let Some(key) = entries.next_key::<String>()? {
            if key != "hot" {
                return Err(A::Error::unknown_field(&key, &["hot"]));
            }
            if hot.replace(entries.next_value()?).is_some() {
                return Err(A::Error::duplicate_field("hot"));
            }
        }
        let hot = hot.ok_or_else(|| A::Error::missing_field("hot"))?;
        Ok(OrderFile::HotFirst { hot })
    }
}
