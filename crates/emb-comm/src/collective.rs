//! The seam between training and a transport: [`Collective`].

use crate::{Element, Host, Meters, Result, Space, Sum};

/// Operations that all ranks of a set take part in, in the same order.
///
/// A value of this type is one rank's end. Every rank of the set calls the same operations in the
/// same order; what each rank sends must be what its peers expect to receive, with the same
/// element type. Counts and lengths are in elements, and counts of zero are ordinary. Results do
/// not depend on timing: sums are taken in rank order, so they are bitwise equal on every rank and
/// in every run.
///
/// Data lie in a [`Space`], by default the memory of the process, where views are slices; lists of
/// counts are always slices.
///
/// **Order.** A rank may belong to several sets (see [`split`](Self::split)). It takes part in one
/// operation at a time, and ranks that share several sets call them in the same order; a
/// [`duplicate`](Self::duplicate) stands apart.
///
/// **Failure.** Where an operation refuses its own arguments (`# Errors`), nothing has been
/// written. A rank that fails takes its peers with it: their operations end in
/// [`Error::Failed`](crate::Error::Failed), which names the rank, the operation and the step, what
/// they were to receive is unspecified, and so does every later operation of any of these ranks.
/// Every operation that communicates may end so; `# Errors` below names only the rest.
pub trait Collective<S: Space = Host>: Send {
    /// This rank, `0..world`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn world(&self) -> usize;

    /// Labels what follows, on this rank's every set: errors name the step, and peers must be in
    /// the same one. The first step is 0.
    fn set_step(&mut self, step: u64);

    /// Tells all ranks that this one gives up. They fail with `reason` instead of waiting.
    fn abort(&self, reason: &str);

    /// What this set's operations have cost this rank so far; zero where nothing is measured.
    fn meters(&self) -> Meters {
        Meters::default()
    }

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
        send: S::Ref<'_, T>,
        send_counts: &[usize],
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()>;

    /// Sends equally many counts to every rank, so that an
    /// [`all_to_all_v`](Self::all_to_all_v) can follow: with `n = send.len() / world`,
    /// `send[r * n..][..n]` goes to rank `r`, and `recv[r * n..][..n]` comes from it.
    ///
    /// # Errors
    /// A `send` that is no multiple of `world`, a `recv` of another length, a peer's `n` that
    /// differs.
    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()>;

    /// Replaces `values` by the element-wise sum over all ranks, added in rank order.
    ///
    /// # Errors
    /// A length that a peer disagrees with.
    fn all_reduce<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()>;

    /// Replaces `values` by the element-wise maximum over all ranks; not-a-number wins.
    ///
    /// # Errors
    /// A length that a peer disagrees with.
    fn all_reduce_max<T: Sum>(&mut self, values: S::Mut<'_, T>) -> Result<()>;

    /// Sums every rank's `send`, in rank order, and leaves rank `r` with part `r` of the sum:
    /// `counts[r]` elements, parts one after the other. `recv` has `counts[rank]` elements. The
    /// bits are those of [`all_reduce`](Self::all_reduce).
    ///
    /// # Errors
    /// A count list of another length than `world`, buffers that do not fit it, counts that a peer
    /// disagrees with.
    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        counts: &[usize],
    ) -> Result<()>;

    /// [`reduce_scatter_v`](Self::reduce_scatter_v) with equal parts of `recv`'s length.
    ///
    /// # Errors
    /// A `send` of another length than `world` times that of `recv`, or than a peer's.
    fn reduce_scatter<T: Sum>(&mut self, send: S::Ref<'_, T>, recv: S::Mut<'_, T>) -> Result<()>;

    /// Gathers every rank's `send` into `recv`, in rank order, `recv_counts[r]` elements from
    /// rank `r`.
    ///
    /// # Errors
    /// A count list of another length than `world`, a `recv` of another length than its counts
    /// sum to, a `send` of another length than peers expect.
    fn all_gather_v<T: Element>(
        &mut self,
        send: S::Ref<'_, T>,
        recv: S::Mut<'_, T>,
        recv_counts: &[usize],
    ) -> Result<()>;

    /// Replaces `values` on every rank by those of rank `root` of this set, `0..world`.
    ///
    /// # Errors
    /// A root outside the world, a length or root that a peer disagrees with.
    fn broadcast<T: Element>(&mut self, values: S::Mut<'_, T>, root: usize) -> Result<()>;

    /// Returns once every rank has arrived.
    ///
    /// # Errors
    /// A peer that does not arrive.
    fn barrier(&mut self) -> Result<()>;

    /// Divides the ranks: those with the same `color` form a set, numbered by `key` and then by
    /// rank here. A rank without color is in no set and gets `None`. Called by every rank.
    ///
    /// # Errors
    /// A peer that does not arrive.
    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>>
    where
        Self: Sized;

    /// Divides the ranks: `groups` lists disjoint sets of ranks of this set, numbered in the order
    /// of the list. A rank on none of the lists gets `None`. Called by every rank with the same
    /// lists, also by ranks that are on none.
    ///
    /// # Errors
    /// [`Error::Subgroups`](crate::Error::Subgroups), on every rank, for lists that name a rank
    /// twice or one that does not exist, or are empty: it names the ranks, and this set remains
    /// usable.
    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>>
    where
        Self: Sized;

    /// The same ranks once more, for operations that go on at the same time as those here, from
    /// another thread (`MPI_Comm_dup` of the MPI standard). Called by every rank.
    ///
    /// Sets of the one and of the other need no common order. They fail together. Steps are
    /// labelled apart: the copy begins with the step of this one.
    ///
    /// # Errors
    /// A peer that does not arrive.
    fn duplicate(&mut self) -> Result<Self>
    where
        Self: Sized;

    /// [`subgroups`](Self::subgroups) with one list.
    ///
    /// # Errors
    /// As there.
    fn subgroup(&mut self, ranks: &[usize]) -> Result<Option<Self>>
    where
        Self: Sized,
    {
        self.subgroups(&[ranks])
    }
}
