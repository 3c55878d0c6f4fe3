//! Lines of a stream, without a copy and in bounded memory.

use std::ops::Range;

use super::stream::Stream;
use super::{Result, scan};

/// Longest line kept, in bytes. A Criteo row has at most about 500.
pub(crate) const LINE_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 1 << 20;

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, as a range for [`Lines::bytes`], without `\n` or `\r\n`.
    At(Range<usize>),
    /// A line of more than [`LINE_BYTES`], of which this is the beginning. The next call passes
    /// over the rest.
    TooLong(Range<usize>),
    /// The end of the file.
    End,
}

/// Reads lines through one buffer of 1 MiB.
pub(crate) struct Lines {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes from `start` known to hold no line end.
    searched: usize,
    at_end: bool,
    pass_over: bool,
}

impl Lines {
    /// Takes a stream and the buffer of an earlier reader, or an empty one.
    pub(crate) fn new(stream: Stream, mut buffer: Vec<u8>) -> Self {
        buffer.resize(BUFFER_BYTES, 0);
        let (start, end, searched) = (0, 0, 0);
        Self { stream, buffer, start, end, searched, at_end: false, pass_over: false }
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The next line; `rows` is for error messages.
    #[inline]
    pub(crate) fn next_line(&mut self, rows: u64) -> Result<Line> {
        if self.pass_over {
            self.finish_long_line(rows)?;
        }
        loop {
            let unseen = &self.buffer[self.start + self.searched..self.end];
            if let Some(at) = scan::find(b'\n', unseen) {
                let line = self.start..self.start + self.searched + at;
                self.start = line.end + 1;
                self.searched = 0;
                return Ok(self.checked(line));
            }
            self.searched = self.end - self.start;
            // One more than the limit leaves room for the `\r` of a line of exactly the limit.
            if self.searched > LINE_BYTES + 1 {
                self.pass_over = true;
                return Ok(Line::TooLong(self.start..self.end));
            }
            if self.at_end {
                return Ok(self.last_line());
            }
            self.refill(rows)?;
        }
    }

    /// The rest of the file, which has no line end.
    fn last_line(&mut self) -> Line {
        let line = self.start..self.end;
        self.start = self.end;
        self.searched = 0;
        if line.is_empty() { Line::End } else { self.checked(line) }
    }

    fn checked(&self, line: Range<usize>) -> Line {
        let carriage = self.buffer[line.clone()].last() == Some(&b'\r');
        let line = line.start..line.end - usize::from(carriage);
        if line.len() > LINE_BYTES { Line::TooLong(line) } else { Line::At(line) }
    }

    fn finish_long_line(&mut self, rows: u64) -> Result<()> {
        loop {
            if let Some(at) = scan::find(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                break;
            }
            self.start = self.end;
            if self.at_end {
                break;
            }
            self.refill(rows)?;
        }
        self.searched = 0;
        self.pass_over = false;
        Ok(())
    }

    /// Moves what is left to the front and reads more behind it.
    fn refill(&mut self, rows: u64) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let bytes = self.stream.read(&mut self.buffer[self.end..], rows)?;
        self.end += bytes;
        self.at_end = bytes == 0;
        Ok(())
    }
}
