//! What ranks say when they meet: [`Hello`], [`Reply`], and how a message lies on the wire.
//!
//! ```text
//!   8 bytes  "embmeet1"
//!   4 bytes  length of what follows, little-endian, at most `MOST_BYTES`
//!   JSON     the message
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// First bytes of every message: who does not say them is a stranger. The digit is that of the
/// format.
pub(super) const MAGIC: &[u8; 8] = b"embmeet1";
/// Bytes before a message.
pub(super) const HEAD: usize = MAGIC.len() + 4;
/// Longest message: hosts of 1,024 ranks with the longest names (253 bytes), twice over.
const MOST_BYTES: usize = 1 << 19;
/// Longest hello: a name of a meeting, a version and a host. Strangers cost no more memory.
pub(super) const MOST_HELLO: usize = 4096;

/// What a rank says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: String,
    pub(super) meeting: String,
    pub(super) world: usize,
    pub(super) rank: usize,
    pub(super) host: String,
}

/// What rank 0 answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// All are there.
    All { hosts: Vec<String>, blob: Vec<u8> },
    /// This rank can't take part.
    Refused(String),
    /// The meeting did not come about.
    Failed(String),
}

/// A message as bytes.
pub(super) fn pack(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    Ok([&MAGIC[..], &length.to_le_bytes(), &body].concat())
}

/// The message that bytes begin with; `None` while it is not whole.
///
/// # Errors
/// No message of this program: something else, or longer than `most` bytes.
pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8], most: usize) -> io::Result<Option<T>> {
    let strange = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return strange("not a message of emb");
    }
    let Some(length) = length(bytes) else { return Ok(None) };
    if length > most {
        return strange("a message too long");
    }
    let Some(body) = bytes.get(HEAD..HEAD + length) else { return Ok(None) };
    serde_json::from_slice(body).map(Some).map_err(io::Error::other)
}

/// How long a message is behind its head, once the head is there.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(MAGIC.len()..HEAD)?;
    Some(length.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
}

/// Sends bytes, for at most `within`.
pub(super) fn send(stream: &TcpStream, bytes: &[u8], within: Duration) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(within.max(Duration::from_millis(1))))?;
    let mut stream = stream;
    stream.write_all(bytes)
}

/// Waits for a reply until `deadline`. What comes behind it stays unread: the connection is used
/// further.
///
/// # Errors
/// The peer left, says something else, or says nothing in time.
pub(super) fn receive(stream: &TcpStream, deadline: Instant) -> io::Result<Reply> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    let mut stream = stream;
    loop {
        if let Some(reply) = unpack(&bytes, MOST_BYTES)? {
            return Ok(reply);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let whole = HEAD + length(&bytes).unwrap_or(0);
        let wanted = (whole - bytes.len()).min(part.len());
        match stream.read(&mut part[..wanted]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
}
