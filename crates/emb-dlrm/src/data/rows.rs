//! The rows of one file, bad rows refused or skipped.

use std::path::Path;

use super::bad_rows::{self, BadRow, BadRowPolicy, BadRows, Reason};
use super::lines::{LINE_BYTES, Line, Lines};
use super::row::{self, FIELDS, Fault, Labels, Layout, Row};
use super::stream::Stream;
use super::{Error, Result};

/// What rows must look like, what happens to others, and how many there were.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    labels: Labels,
    policy: BadRowPolicy,
    /// Decided by the first row where labels are optional.
    layout: Option<Layout>,
    /// The layout of rows of 40 fields, where the first row decides.
    forty: Layout,
    pub(crate) skipped: BadRows,
}

impl Rules {
    pub(crate) fn new(labels: Labels, soft: bool, policy: BadRowPolicy) -> Self {
        let layout = (labels == Labels::Required).then_some(Layout::Labelled { soft });
        Self { labels, policy, layout, forty: Layout::Ignored, skipped: BadRows::default() }
    }

    /// Takes rows with or without label, as the first one has it, and skips bad ones.
    pub(crate) fn detect() -> Self {
        let forty = Layout::Labelled { soft: true };
        Self { forty, ..Self::new(Labels::Optional, true, BadRowPolicy::Skip) }
    }

    /// The layout, once it is known.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    pub(crate) fn labelled(&self) -> bool {
        self.labels == Labels::Required
    }
}

/// An open file that hands out rows.
pub(crate) struct Rows {
    lines: Lines,
    line: u64,
    good: u64,
    skipped: u64,
    first_skipped: Option<Box<BadRow>>,
}

impl Rows {
    pub(crate) fn open(path: &Path, buffer: Vec<u8>) -> Result<Self> {
        let lines = Lines::new(Stream::open(path)?, buffer);
        Ok(Self { lines, line: 0, good: 0, skipped: 0, first_skipped: None })
    }

    /// Refuses a file without a single line.
    pub(crate) fn check_not_empty(&mut self) -> Result<()> {
        match self.lines.next_line(0)? {
            Line::End => Err(Error::Empty {
                path: self.lines.stream().path().to_owned(),
                skipped: 0,
                first: None,
            }),
            _ => Ok(()),
        }
    }

    /// Good rows handed out.
    pub(crate) fn rows(&self) -> u64 {
        self.good
    }

    /// The first row of this file that was skipped.
    pub(crate) fn first_skipped(&self) -> Option<&BadRow> {
        self.first_skipped.as_deref()
    }

    /// Line of the last row handed out, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.lines.into_buffer()
    }

    /// Reads the next good row, or says that there is none.
    #[inline]
    pub(crate) fn next_row(&mut self, rules: &mut Rules, row: &mut Row) -> Result<bool> {
        loop {
            let range = match self.lines.next_line(self.good)? {
                Line::At(range) => range,
                Line::TooLong(text) => {
                    self.line += 1;
                    let reason = Reason::LineLength { limit: LINE_BYTES };
                    self.refuse(
                        rules,
                        0,
                        Fault { column: None, text: 0..text.len(), reason },
                        text.start,
                    )?;
                    continue;
                }
                Line::End => {
                    if self.good == 0 {
                        let path = self.lines.stream().path().to_owned();
                        let (skipped, first) = (self.skipped, self.first_skipped.take());
                        return Err(Error::Empty { path, skipped, first });
                    }
                    return Ok(false);
                }
            };
            self.line += 1;
            let line = self.lines.bytes(range.clone());
            let layout = rules.layout.unwrap_or_else(|| match row::count_fields(line) {
                FIELDS => rules.forty,
                _ => Layout::Bare,
            });
            match row::parse(line, layout, row) {
                Ok(()) => {
                    rules.layout = Some(layout);
                    self.good += 1;
                    return Ok(true);
                }
                Err(fault) => self.refuse(rules, layout.fields(), fault, range.start)?,
            }
        }
    }

    /// Counts a bad row or turns it into an error.
    #[cold]
    fn refuse(
        &mut self,
        rules: &mut Rules,
        fields: usize,
        fault: Fault,
        start: usize,
    ) -> Result<()> {
        let path = self.lines.stream().path();
        let Fault { column, text, mut reason } = fault;
        if let (Reason::Fields { found, expected, .. }, Labels::Optional) =
            (&mut reason, rules.labels)
        {
            if rules.layout.is_some() && (*found == FIELDS || *found == FIELDS - 1) {
                let (path, line) = (path.to_owned(), self.line);
                return Err(Error::MixedFields { path, line, found: *found, first: fields });
            }
            if rules.layout.is_none() {
                *expected = FIELDS;
            }
        }
        let report = |reason| {
            let text = bad_rows::shown(self.lines.bytes(start + text.start..start + text.end));
            Box::new(BadRow { path: path.to_owned(), line: self.line, column, text, reason })
        };
        if rules.policy == BadRowPolicy::Error {
            return Err(Error::BadRow(report(reason)));
        }
        if self.skipped == 0 {
            self.first_skipped = Some(report(reason));
        }
        rules.skipped.add(reason);
        self.skipped += 1;
        Ok(())
    }
}
