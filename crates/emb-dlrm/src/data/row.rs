//! One line of a Criteo file to one row: label, 13 integers, 26 hexadecimal ids.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::bad_rows::{Column, Reason};
use super::{DENSE, SPARSE, scan};

/// Fields of a row with a label.
pub(crate) const FIELDS: usize = 1 + DENSE + SPARSE;

/// Whether rows have a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// 40 fields with a label, which is checked: for training and evaluation.
    #[default]
    Required,
    /// 39 fields without a label, or 40 with one that is ignored: for prediction. The first row
    /// decides for all. Batches have no labels.
    Optional,
}

/// What a row must look like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    /// 40 fields; the label is parsed, hard or soft.
    Labelled { soft: bool },
    /// 40 fields; the label is not looked at.
    Ignored,
    /// 39 fields.
    Bare,
}

impl Layout {
    pub(crate) fn fields(self) -> usize {
        match self {
            Self::Labelled { .. } | Self::Ignored => FIELDS,
            Self::Bare => FIELDS - 1,
        }
    }
}

/// One parsed row; `None` is a missing value.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) label: f32,
    pub(crate) integers: [Option<i32>; DENSE],
    pub(crate) ids: [Option<u32>; SPARSE],
}

impl Default for Row {
    fn default() -> Self {
        Self { label: 0.0, integers: [None; DENSE], ids: [None; SPARSE] }
    }
}

/// What is wrong with a line, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) column: Option<Column>,
    pub(crate) text: Range<usize>,
    pub(crate) reason: Reason,
}

/// Number of tab-separated fields of a line.
pub(crate) fn count_fields(line: &[u8]) -> usize {
    scan::split(b'\t', line, &mut [])
}

/// Parses a line without its line end.
///
/// # Errors
/// The first fault from the left, the number of fields before all.
#[inline]
pub(crate) fn parse(line: &[u8], layout: Layout, row: &mut Row) -> Result<(), Fault> {
    let mut ends = [0_u32; FIELDS];
    let found = scan::split(b'\t', line, &mut ends);
    if found != layout.fields() {
        return Err(fields_fault(line, found, layout.fields()));
    }
    let mut start = 0;
    let mut fields = ends.iter().map(|&end| {
        let field = start..end as usize;
        start = field.end + 1;
        field
    });
    let mut next = || fields.next().expect("invariant: as many fields as were counted");
    match layout {
        Layout::Bare => {}
        Layout::Ignored => drop(next()),
        Layout::Labelled { soft } => {
            let field = next();
            row.label = label(&line[field.clone()], soft).map_err(|reason| Fault {
                column: Some(Column::Label),
                text: field,
                reason,
            })?;
        }
    }
    for (column, integer) in row.integers.iter_mut().enumerate() {
        let field = next();
        *integer = parse_integer(&line[field.clone()]).map_err(|reason| Fault {
            column: Some(Column::Integer(column)),
            text: field,
            reason,
        })?;
    }
    for (column, id) in row.ids.iter_mut().enumerate() {
        let field = next();
        *id = parse_id(&line[field.clone()]).map_err(|reason| Fault {
            column: Some(Column::Id(column)),
            text: field,
            reason,
        })?;
    }
    Ok(())
}

#[cold]
fn fields_fault(line: &[u8], found: usize, expected: usize) -> Fault {
    let commas = line.iter().map(|&byte| usize::from(byte == b',')).sum();
    Fault { column: None, text: 0..line.len(), reason: Reason::Fields { found, expected, commas } }
}

#[inline]
fn label(field: &[u8], soft: bool) -> Result<f32, Reason> {
    match field {
        b"0" => Ok(0.0),
        b"1" => Ok(1.0),
        _ if soft => std::str::from_utf8(field)
            .ok()
            .and_then(|text| text.parse::<f32>().ok())
            .filter(|label| (0.0..=1.0).contains(label))
            .ok_or(Reason::SoftLabel),
        _ => Err(Reason::Label),
    }
}

#[inline]
fn parse_integer(field: &[u8]) -> Result<Option<i32>, Reason> {
    let Some(&first) = field.first() else { return Ok(None) };
    let negative = first == b'-';
    let digits = &field[usize::from(negative)..];
    if digits.is_empty() {
        return Err(Reason::Integer);
    }
    let mut value = 0_i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Reason::Integer);
        }
        // Saturates far outside 32 bits, so that any number of digits is judged at the end.
        value = (value * 10 + i64::from(digit)).min(1 << 40);
    }
    let value = if negative { -value } else { value };
    i32::try_from(value).map(Some).map_err(|_| Reason::IntegerRange)
}

#[inline]
fn parse_id(field: &[u8]) -> Result<Option<u32>, Reason> {
    if field.is_empty() {
        return Ok(None);
    }
    let mut value = 0_u32;
    let mut invalid = 0_u8;
    for &byte in field.iter().take(8) {
        let digit = HEX[usize::from(byte)];
        invalid |= digit;
        value = value << 4 | u32::from(digit & 15);
    }
    if invalid & 0x80 != 0 || field.iter().skip(8).any(|&byte| HEX[usize::from(byte)] > 15) {
        return Err(Reason::Id);
    }
    if field.len() > 8 {
        return Err(Reason::IdDigits);
    }
    Ok(Some(value))
}

/// Value of each hexadecimal digit, `0x80` for other bytes.
static HEX: [u8; 256] = {
    let mut table = [0x80; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};
