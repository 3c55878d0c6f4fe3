//! The seam between training and a transport: [`Collective`].

use crate::{Element, Result, Sum};

/// Operations that all ranks of a set take part in, in the same order.
///
/// A value of this type is one rank's end. Every rank of the set calls the same operations in the
/// same order; what each rank sends must be what its peers expect to receive, with the same
/// element type. Counts and lengths are in elements, and counts of zero are ordinary. Results do
/// not depend on timing: sums are taken in rank order, so they are bitwise equal on every rank and
/// in every run.
///
/// Where an operation refuses its arguments (`# Errors`), nothing has been written.
pub trait Collective: Send {
    /// This rank, `0..world`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn world(&self) -> usize;

    /// Sends a part of `send` to every rank and receives a part of `recv` from every rank.
    ///
    /// `send` is the parts for rank 0, 1, .. one after the other, `send_counts[r]` elements for
    /// rank `r`; `recv` likewise by sender. Both count lists have `world` entries.
    ///
    /// # Errors
    /// Count lists of another length than `world`, buffers of another length than their counts
    /// sum to, counts that a peer disagrees with.
    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()>;

    /// Replaces `values` by the element-wise sum over all ranks, added in rank order.
    ///
    /// # Errors
    /// A length that a peer disagrees with.
    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()>;

    /// Gathers every rank's `send` into `recv`, in rank order, `recv_counts[r]` elements from
    /// rank `r`.
    ///
    /// # Errors
    /// A count list of another length than `world`, a `recv` of another length than its counts
    /// sum to, a `send` of another length than peers expect.
    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()>;

    /// Replaces `values` on every rank by those of rank `root`.
    ///
    /// # Errors
    /// A root outside the world, a length that a peer disagrees with.
    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()>;

    /// Returns once every rank has arrived.
    ///
    /// # Errors
    /// A peer that does not arrive.
    fn barrier(&mut self) -> Result<()>;
}
