//! Where the numbers lie that ranks exchange: [`Space`], [`Host`].

use crate::{Element, Reduction, Result, Sum};

/// A kind of memory: how it is viewed, copied and reduced.
///
/// A transport between ranks of one process works over any space whose memory every rank can
/// reach: the host's, or that of one device. Implement it for a newtype around a device's views.
///
/// Work may be queued: [`settle`](Self::settle) is called before others may look at the memory.
pub trait Space: Send + Sync + 'static {
    /// Elements that others may read.
    type Ref<'a, T: Element>: Copy + Send + Sync;

    /// Elements that only this rank reads and writes.
    type Mut<'a, T: Element>: Send;

    /// Number of elements.
    fn len<T: Element>(view: Self::Ref<'_, T>) -> usize;

    /// Number of elements.
    fn len_mut<T: Element>(view: &Self::Mut<'_, T>) -> usize;

    /// The same elements for a shorter time. The body is `view`; that it compiles shows that a
    /// view may be lent to a rank that needs it only for a while.
    fn shorten<'short, 'long: 'short, T: Element>(
        view: Self::Ref<'long, T>,
    ) -> Self::Ref<'short, T>;

    /// Elements `start .. start + len`, which are inside.
    fn slice<T: Element>(view: Self::Ref<'_, T>, start: usize, len: usize) -> Self::Ref<'_, T>;

    /// The elements before `at`, which is at most the length, and the rest.
    fn split<T: Element>(view: Self::Mut<'_, T>, at: usize)
    -> (Self::Mut<'_, T>, Self::Mut<'_, T>);

    /// The same elements, borrowed again.
    fn reborrow<'a, T: Element>(view: &'a mut Self::Mut<'_, T>) -> Self::Mut<'a, T>;

    /// The same elements, to be read only, for as long as the result lives.
    fn freeze<'a, T: Element>(view: &'a Self::Mut<'_, T>) -> Self::Ref<'a, T>;

    /// Copies all elements of `from` to `to`, which is as long.
    ///
    /// # Errors
    /// What the device reports.
    fn copy<T: Element>(&self, to: Self::Mut<'_, T>, from: Self::Ref<'_, T>) -> Result<()>;

    /// Replaces `to` by the reduction of `source(0)`, `source(1)`, .. `source(ranks - 1)`, in this
    /// order; each is as long as `to`. `None` stands for the values that `to` has on entry and
    /// is returned for at most one rank. `ranks` is at least one.
    ///
    /// # Errors
    /// What the device reports.
    fn reduce<'a, T: Sum>(
        &self,
        how: Reduction,
        to: Self::Mut<'_, T>,
        ranks: usize,
        source: impl Fn(usize) -> Option<Self::Ref<'a, T>>,
    ) -> Result<()>;

    /// Returns once all work queued by this rank is done, so that other ranks may read what it
    /// wrote and write what it read.
    ///
    /// # Errors
    /// What the device reports.
    fn settle(&self) -> Result<()>;
}

/// The memory of this process, viewed as slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host;

impl Space for Host {
    type Ref<'a, T: Element> = &'a [T];
    type Mut<'a, T: Element> = &'a mut [T];

    fn len<T: Element>(view: &[T]) -> usize {
        view.len()
    }

    fn len_mut<T: Element>(view: &&mut [T]) -> usize {
        view.len()
    }

    fn shorten<'short, 'long: 'short, T: Element>(view: &'long [T]) -> &'short [T] {
        view
    }

    fn slice<T: Element>(view: Self::Ref<'_, T>, start: usize, len: usize) -> Self::Ref<'_, T> {
        &view[start..start + len]
    }

    fn split<T: Element>(
        view: Self::Mut<'_, T>,
        at: usize,
    ) -> (Self::Mut<'_, T>, Self::Mut<'_, T>) {
        view.split_at_mut(at)
    }

    fn reborrow<'a, T: Element>(view: &'a mut Self::Mut<'_, T>) -> &'a mut [T] {
        view
    }

    fn freeze<'a, T: Element>(view: &'a &mut [T]) -> &'a [T] {
        view
    }

    fn copy<T: Element>(&self, to: &mut [T], from: &[T]) -> Result<()> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn reduce<'a, T: Sum>(
        &self,
        how: Reduction,
        to: &mut [T],
        ranks: usize,
        source: impl Fn(usize) -> Option<&'a [T]>,
    ) -> Result<()> {
        match how {
            Reduction::Sum => reduce(T::plus, to, ranks, source),
            Reduction::Max => reduce(T::larger, to, ranks, source),
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// Elements reduced at a time: the running result stays in the first-level cache.
const BLOCK: usize = 512;

fn reduce<'a, T: Sum>(
    plus: impl Fn(T, T) -> T + Copy,
    to: &mut [T],
    ranks: usize,
    source: impl Fn(usize) -> Option<&'a [T]>,
) {
    let mut sums = [T::default(); BLOCK];
    for (index, to) in to.chunks_mut(BLOCK).enumerate() {
        let sums = &mut sums[..to.len()];
        let part = |rank| source(rank).map(|whole| &whole[index * BLOCK..][..sums.len()]);
        sums.copy_from_slice(part(0).unwrap_or(to));
        for rank in 1..ranks {
            let part = source(rank).map(|whole| &whole[index * BLOCK..][..sums.len()]);
            for (sum, &value) in sums.iter_mut().zip(part.unwrap_or(to)) {
                *sum = plus(*sum, value);
            }
        }
        to.copy_from_slice(sums);
    }
}
