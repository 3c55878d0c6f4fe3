//! Words and numbers of the command line.

use crate::config::did_you_mean;
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

/// A word as files spell it; an unknown one is refused with the nearest and all known ones.
pub(super) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let reader: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(reader).map_err(|error| {
        let message = error.to_string();
        format!("{}{message}", did_you_mean(&message).unwrap_or_default())
    })
}

/// A word of several parts, joined by `-` as flags are or by `_` as plan files have it.
pub(super) fn joined_word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    word(&text.replace('-', "_"))
}

/// A number of bytes as a person writes it: `1073741824`, `512MiB`, `1.5 GiB`.
///
/// # Errors
/// Anything else.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1)];
    let unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, *bytes)));
    let (number, factor) = unit.unwrap_or((text, 1));
    match number.trim().parse::<f64>().map(|number| number * factor as f64) {
        // Beyond 2^53 floats skip numbers.
        Ok(bytes) if (0.0..=(1_u64 << 53) as f64).contains(&bytes) => Ok(bytes as u64),
        _ => Err("must be bytes, or a number with B, KiB, MiB, GiB or TiB, as 512MiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emb_shard::{Kind, ValueType};

    #[test]
    fn words_are_those_of_files_and_have_their_neighbours() {
        assert_eq!(word("bf16"), Ok(ValueType::Bf16));
        assert_eq!(joined_word("table-row-wise"), Ok(Kind::TableRowWise));
        assert_eq!(joined_word("table_row_wise"), Ok(Kind::TableRowWise));
        let error = word::<ValueType>("bf1").expect_err("misspelt");
        assert!(error.starts_with("\"bf1\": did you mean \"bf16\"? "), "{error}");
        assert!(error.contains("`bf16`"), "{error}");
    }

    #[test]
    fn bytes_are_read_with_and_without_units() {
        assert_eq!(parse_bytes("1048576"), Ok(1 << 20));
        assert_eq!(parse_bytes("1MiB"), Ok(1 << 20));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("12 B"), Ok(12));
        for bad in ["", "MiB", "-1", "1GB", "nan", "1e300", "1 1"] {
            assert!(parse_bytes(bad).is_err(), "{bad:?}");
        }
    }
}
