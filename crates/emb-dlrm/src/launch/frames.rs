//! What the keeper of a rank tells `emb launch`, and what it is told.
//!
//! ```text
//!   keeper -> launcher   8 bytes "embkeep1", then frames: 1 byte kind, 4 bytes length (little-endian), bytes
//!   launcher -> keeper   1 byte an order
//! ```

use super::ending::End;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// First bytes of a keeper.
pub(super) const MAGIC: &[u8; 8] = b"embkeep1";
/// Longest frame: a line of a megabyte, the longest that stays whole.
const MOST_BYTES: usize = (1 << 20) + 1;

/// Longest first frame of a keeper: a version, a key and a host. Strangers cost no more memory.
pub(super) const MOST_HELLO: usize = 4096;

/// Orders to a keeper.
pub(super) const TERMINATE: u8 = b'T';
pub(super) const KILL: u8 = b'K';
/// All is said: the keeper may go.
pub(super) const FINISH: u8 = b'F';

/// Who a keeper is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keeper {
    pub(super) version: String,
    pub(super) key: String,
    pub(super) rank: usize,
    pub(super) world: usize,
    pub(super) host: String,
    /// Of the rank's process.
    pub(super) pid: u32,
}

/// One thing a keeper says.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    Hello(Keeper),
    /// A line of standard output.
    Out(Vec<u8>),
    /// A line of standard error.
    Err(Vec<u8>),
    /// The step the rank is in; said every second.
    Beat(u64),
    Ended(End),
}

impl Frame {
    /// Writes the frame in one piece.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let json = |value: io::Result<Vec<u8>>| value;
        let (kind, bytes) = match self {
            Self::Hello(keeper) => {
                (b'h', json(serde_json::to_vec(keeper).map_err(io::Error::other))?)
            }
            Self::Out(line) => (b'o', line.clone()),
            Self::Err(line) => (b'e', line.clone()),
            Self::Beat(step) => (b'b', step.to_le_bytes().to_vec()),
            Self::Ended(end) => (b'x', json(serde_json::to_vec(end).map_err(io::Error::other))?),
        };
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        to.write_all(&[&[kind], &length.to_le_bytes()[..], &bytes].concat())
    }

    /// Reads the next frame; `None` where the connection ended between two.
    ///
    /// # Errors
    /// The connection broke, or what came is no frame.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        Self::read_up_to(from, MOST_BYTES)
    }

    /// As [`Frame::read`], of at most so many bytes.
    ///
    /// # Errors
    /// As there.
    pub(super) fn read_up_to(from: &mut impl Read, most: usize) -> io::Result<Option<Self>> {
        let mut head = [0; 5];
        match from.read(&mut head[..1])? {
            0 => return Ok(None),
            _ => from.read_exact(&mut head[1..])?,
        }
        let length = head[1..].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        if length > most {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame too long"));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "no frame of emb");
        Ok(Some(match head[0] {
            b'h' => Self::Hello(serde_json::from_slice(&bytes)?),
            b'o' => Self::Out(bytes),
            b'e' => Self::Err(bytes),
            b'b' => Self::Beat(u64::from_le_bytes(bytes.as_slice().try_into().map_err(wrong)?)),
            b'x' => Self::Ended(serde_json::from_slice(&bytes)?),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no frame of emb")),
        }))
    }
}
