//! The suite over any memory: [`Placed`], [`Memory`].

use crate::{Collective, Element, Host, Meters, Result, Space, Sum};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// A space in which the suite can make data and read them back.
pub trait Memory: Space {
    /// Memory that holds elements.
    type Buffer<T: Element>: Send;

    /// New memory with these values.
    ///
    /// # Errors
    /// What the device reports.
    fn store<T: Element>(&self, values: &[T]) -> Result<Self::Buffer<T>>;

    /// All of it.
    fn view<T: Element>(buffer: &Self::Buffer<T>) -> Self::Ref<'_, T>;

    /// All of it.
    fn view_mut<T: Element>(buffer: &mut Self::Buffer<T>) -> Self::Mut<'_, T>;

    /// Writes its values over `values`, which is as long.
    ///
    /// # Errors
    /// What the device reports.
    fn load<T: Element>(&self, buffer: &Self::Buffer<T>, values: &mut [T]) -> Result<()>;
}

impl Memory for Host {
    type Buffer<T: Element> = Vec<T>;

    fn store<T: Element>(&self, values: &[T]) -> Result<Vec<T>> {
        Ok(values.to_vec())
    }

    fn view<T: Element>(buffer: &Vec<T>) -> &[T] {
        buffer
    }

    fn view_mut<T: Element>(buffer: &mut Vec<T>) -> &mut [T] {
        buffer
    }

    fn load<T: Element>(&self, buffer: &Vec<T>, values: &mut [T]) -> Result<()> {
        values.copy_from_slice(buffer);
        Ok(())
    }
}

/// A transport over some memory, as one over slices: what [`checks`](super::checks) need.
///
/// Every operation works on new buffers of that memory, made from the slices and read back
/// afterwards, whether it ended well or not. The elements used lie in the midst of the buffer, so
/// that they begin at no round address; those before and after must not change.
///
/// ```
/// use emb_comm::{Error, Host, Local, Options, conformance::{self, Placed}, run};
///
/// run(2, &Options::default(), |rank| {
///     let all = rank.subgroup(&[0, 1])?.expect("both are on the list");
///     let mut placed = Placed::new(Host, all);
///     for check in conformance::checks::<Placed<Host, Local>>() {
///         check.run(&mut placed)?;
///     }
///     Ok::<_, Error>(())
/// })?;
/// # use emb_comm::Collective;
/// # Ok::<(), emb_comm::Failure>(())
/// ```
pub struct Placed<S, C> {
    space: Arc<S>,
    comm: C,
}

/// Elements before and after those used; odd, so that views begin at addresses of an element.
const MARGIN: usize = 3;

/// The bytes of a margin. As a float: a small number below zero.
const UNTOUCHED: u8 = 0xa5;

impl<S, C> Placed<S, C> {
    /// A rank of `comm`, whose data are placed in `space`.
    pub fn new(space: S, comm: C) -> Self {
        Self { space: Arc::new(space), comm }
    }

    /// The transport itself.
    pub fn into_inner(self) -> C {
        self.comm
    }

    fn with(&self, comm: C) -> Self {
        Self { space: Arc::clone(&self.space), comm }
    }
}

impl<S, C> Debug for Placed<S, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placed").finish_non_exhaustive()
    }
}

/// Elements in the midst of a buffer.
struct Lain<S: Memory, T: Element> {
    buffer: S::Buffer<T>,
    len: usize,
    type_of: PhantomData<T>,
}

impl<S: Memory, T: Element> Lain<S, T> {
    fn new(space: &S, values: &[T]) -> Result<Self> {
        let mut all = vec![untouched(); MARGIN];
        all.extend_from_slice(values);
        all.resize(values.len() + 2 * MARGIN, untouched());
        Ok(Self { buffer: space.store(&all)?, len: values.len(), type_of: PhantomData })
    }

    fn view(&self) -> S::Ref<'_, T> {
        S::slice(S::view(&self.buffer), MARGIN, self.len)
    }

    fn view_mut(&mut self) -> S::Mut<'_, T> {
        let (_, rest) = S::split(S::view_mut(&mut self.buffer), MARGIN);
        S::split(rest, self.len).0
    }

    /// Reads the elements back.
    ///
    /// # Panics
    /// If those around them have changed.
    fn back(&self, space: &S, values: &mut [T]) -> Result<()> {
        let mut all = vec![T::default(); self.len + 2 * MARGIN];
        space.load(&self.buffer, &mut all)?;
        let (before, rest) = all.split_at(MARGIN);
        let (own, after) = rest.split_at(self.len);
        for (place, margin) in [("before", before), ("after", after)] {
            let bytes: &[u8] = bytemuck::cast_slice(margin);
            assert!(bytes.iter().all(|&byte| byte == UNTOUCHED), "elements {place} the view");
        }
        values.copy_from_slice(own);
        Ok(())
    }
}

fn untouched<T: Element>() -> T {
    bytemuck::pod_read_unaligned(&vec![UNTOUCHED; size_of::<T>()])
}

impl<S: Memory, C: Collective<S>> Placed<S, C> {
    /// Runs an operation that changes `values`, and reads them back.
    fn on<T: Element>(
        &mut self,
        values: &mut [T],
        operation: impl FnOnce(&mut C, S::Mut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let mut placed = Lain::<S, T>::new(&self.space, values)?;
        let outcome = operation(&mut self.comm, placed.view_mut());
        placed.back(&self.space, values)?;
        outcome
    }

    /// Runs an operation from `send` to `recv`, and reads both back.
    fn between<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        operation: impl FnOnce(&mut C, S::Ref<'_, T>, S::Mut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let from = Lain::<S, T>::new(&self.space, send)?;
        let mut to = Lain::<S, T>::new(&self.space, recv)?;
        let outcome = operation(&mut self.comm, from.view(), to.view_mut());
        to.back(&self.space, recv)?;
        let mut sent = send.to_vec();
        from.back(&self.space, &mut sent)?;
        let same = bytemuck::cast_slice::<T, u8>(&sent) == bytemuck::cast_slice::<T, u8>(send);
        assert!(same, "what is sent is only read");
        outcome
    }
}

impl<S: Memory, C: Collective<S>> Collective for Placed<S, C> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn world(&self) -> usize {
        self.comm.world()
    }

    fn set_step(&mut self, step: u64) {
        self.comm.set_step(step);
    }

    fn abort(&self, reason: &str) {
        self.comm.abort(reason);
    }

    fn meters(&self) -> Meters {
        self.comm.meters()
    }

    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.between(send, recv, |comm, send, recv| {
            comm.all_to_all_v(send, send_counts, recv, recv_counts)
        })
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        self.comm.exchange_counts(send, recv)
    }

    fn all_reduce<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        self.on(values, |comm, values| comm.all_reduce(values))
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        self.on(values, |comm, values| comm.all_reduce_max(values))
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        self.between(send, recv, |comm, send, recv| comm.reduce_scatter_v(send, recv, counts))
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.between(send, recv, C::reduce_scatter)
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        self.between(send, recv, |comm, send, recv| comm.all_gather_v(send, recv, recv_counts))
    }

    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<()> {
        self.on(values, |comm, values| comm.broadcast(values, root))
    }

    fn barrier(&mut self) -> Result<()> {
        self.comm.barrier()
    }

    fn split(&mut self, color: Option<usize>, key: usize) -> Result<Option<Self>> {
        let part = self.comm.split(color, key)?;
        Ok(part.map(|part| self.with(part)))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        let part = self.comm.subgroups(groups)?;
        Ok(part.map(|part| self.with(part)))
    }

    fn duplicate(&mut self) -> Result<Self> {
        let copy = self.comm.duplicate()?;
        Ok(self.with(copy))
    }
}
