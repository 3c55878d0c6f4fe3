//! Rows on their way between ranks in the format that was chosen: [`Carrier`].

use super::{Format, Kinds, Parcel, Wires};
use crate::sharded::error::{Error, Result};
use emb_comm::Collective;

/// What carries the rows of an exchange, and memory for it.
#[derive(Debug, Default)]
pub(in crate::sharded) struct Carrier {
    /// Rows and sums to the samples.
    pub(in crate::sharded) forward: Format,
    /// Gradients to the owners.
    pub(in crate::sharded) backward: Format,
    /// Names of the tables of the layout's tiers, for errors.
    names: Vec<String>,
    sent: Vec<u8>,
    received: Vec<u8>,
    /// Bytes for, and from, every peer.
    send_counts: Vec<usize>,
    counts: Vec<usize>,
}

/// Values for peers, or from them: elements of each, and what these are.
#[derive(Debug)]
pub(in crate::sharded) struct Side<'a, V, P> {
    pub(in crate::sharded) values: V,
    pub(in crate::sharded) counts: &'a [usize],
    pub(in crate::sharded) parcels: P,
}

/// Values whose rows are listed.
pub(in crate::sharded) type Lists<'a> = Side<'a, &'a mut [f32], &'a Kinds>;

impl<'a, P> Side<'a, &'a mut [f32], P> {
    pub(in crate::sharded) fn new(values: &'a mut [f32], counts: &'a [usize], parcels: P) -> Self {
        Self { values, counts, parcels }
    }
}

impl<'a> Lists<'a> {
    pub(in crate::sharded) fn of(
        values: &'a mut [f32],
        counts: &'a [usize],
        parcels: &'a Kinds,
    ) -> Self {
        Self { values, counts, parcels }
    }
}

impl Carrier {
    /// For tiers of tables of these names.
    pub(in crate::sharded) fn new(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }

    pub(in crate::sharded) fn set(&mut self, wires: Wires) {
        (self.forward, self.backward) = (wires.forward(), wires.backward());
    }

    /// An all-to-all; what was sent is anything afterwards.
    ///
    /// # Errors
    /// A value that the format can't hold, by table; a peer that fails.
    pub(in crate::sharded) fn carry<'p, C: Collective>(
        &mut self,
        set: &mut C,
        format: Format,
        send: Side<'_, &mut [f32], impl Iterator<Item = Parcel<'p>>>,
        recv: Side<'_, &mut [f32], impl Iterator<Item = Parcel<'p>> + Clone>,
    ) -> Result<()> {
        if format.is_exact() {
            let (send, counts) = (send.values, send.counts);
            return Ok(set.all_to_all_v::<f32>(send, counts, recv.values, recv.counts)?);
        }
        self.encode(format, send.values, send.parcels)?;
        self.counts.clear();
        for parcel in recv.parcels.clone() {
            self.counts.push(parcel.bytes(format.wire)?);
        }
        self.received.resize(self.counts.iter().sum(), 0);
        let (sent, received) = (&self.sent, &mut self.received);
        set.all_to_all_v::<u8>(sent, &self.send_counts, received, &self.counts)?;
        self.decode(format, recv.parcels, recv.values)
    }

    /// The same of lists of rows.
    pub(in crate::sharded) fn carry_lists<C: Collective>(
        &mut self,
        set: &mut C,
        format: Format,
        send: Lists<'_>,
        recv: Lists<'_>,
    ) -> Result<()> {
        let (to, from) = (send.parcels.parcels(), recv.parcels.parcels());
        let send = Side::new(send.values, send.counts, to);
        let recv = Side::new(recv.values, recv.counts, from);
        self.carry(set, format, send, recv)
    }

    fn encode<'p>(
        &mut self,
        format: Format,
        values: &mut [f32],
        parcels: impl Iterator<Item = Parcel<'p>>,
    ) -> Result<()> {
        let Self { names, sent, send_counts, .. } = self;
        format.before(values);
        sent.clear();
        send_counts.clear();
        let mut first = 0;
        for (peer, parcel) in parcels.enumerate() {
            let (begin, mut at) = (sent.len(), first);
            let bytes = parcel.bytes(format.wire)?;
            sent.resize(begin + bytes, 0);
            let mut out = &mut sent[begin..];
            let coded = parcel.pieces(|rows, dim| {
                let bytes = format.wire.bytes(rows, dim)?;
                let (own, rest) = std::mem::take(&mut out).split_at_mut(bytes);
                out = rest;
                format.wire.encode(&values[at..at + rows * dim], dim, own)?;
                at += rows * dim;
                Ok(())
            });
            coded.map_err(|error| refused(error, &parcel, at - first, peer, names))?;
            send_counts.push(bytes);
            first = at;
        }
        Ok(())
    }

    fn decode<'p>(
        &self,
        format: Format,
        parcels: impl Iterator<Item = Parcel<'p>>,
        values: &mut [f32],
    ) -> Result<()> {
        let (mut bytes, mut rest) = (&self.received[..], &mut *values);
        for parcel in parcels {
            parcel.pieces(|rows, dim| {
                let (own, after) = bytes.split_at(format.wire.bytes(rows, dim)?);
                bytes = after;
                let (out, after) = std::mem::take(&mut rest).split_at_mut(rows * dim);
                rest = after;
                format.wire.decode(own, dim, out)
            })?;
        }
        format.after(values);
        Ok(())
    }
}

/// Why a piece that begins at element `begin` of a parcel did not become bytes, by table. Not an
/// error of the transport: others have to be told.
#[cold]
fn refused(
    error: emb_comm::Error,
    parcel: &Parcel<'_>,
    begin: usize,
    peer: usize,
    names: &[String],
) -> Error {
    let within = match error {
        emb_comm::Error::NotFinite { row, column, .. } => {
            // The width of the piece's rows: pieces are of one kind.
            let dim = parcel.dim_at(begin);
            row * dim + column
        }
        emb_comm::Error::RangeTooWide { row, .. } => row * parcel.dim_at(begin),
        _ => return error.into(),
    };
    let tier = parcel.tier_at(begin + within);
    let table = tier.and_then(|tier| names.get(tier)).cloned().unwrap_or_default();
    Error::Table { table, what: format!("for rank {peer} of its group: {error}") }
}
