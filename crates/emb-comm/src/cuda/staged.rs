//! Slices of host memory exchanged over a transport between devices: [`Staged`].

use super::DeviceSpace;
use crate::{Collective, Element, Meters, Result, Sum};
use emb_cuda::{Kept, Stream, View, ViewMut};

/// A transport over slices made of one over device memory: so code whose data lie on the host can
/// exchange them over NCCL.
///
/// A slice is copied to the device, through pinned memory, and what arrives is copied back. The
/// buffers are kept and grow to what is needed: in a training run no memory is asked for after the
/// first steps. What peers send is counted by the transport's meters; copies between host and
/// device are counted apart, see [`staged_bytes`](Self::staged_bytes).
///
/// Where an operation fails, the slices are left as they were.
///
/// ```no_run
/// use emb_comm::{Collective, Nccl, NcclOptions, Staged};
/// use emb_cuda::Device;
///
/// let device = Device::open(0)?;
/// let ranks = Nccl::threads(&[device.clone()], &NcclOptions::default())?;
/// for rank in ranks {
///     let mut rank = Staged::new(rank, &device.stream()?);
///     let mut sums = [1.0f32, 2.0];
///     rank.all_reduce(&mut sums)?;
///     rank.into_inner().close()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Staged<C> {
    comm: C,
    stages: Stages,
}

/// Device memory of what is sent and of what is received.
#[derive(Debug)]
struct Stages {
    stream: Stream,
    send: Kept<u8>,
    recv: Kept<u8>,
    bytes: u64,
}

impl Stages {
    fn new(stream: &Stream) -> Self {
        Self { stream: stream.clone(), send: Kept::default(), recv: Kept::default(), bytes: 0 }
    }
}

impl<C> Staged<C> {
    /// A rank of `comm`, with buffers that are filled and read on `stream`.
    pub fn new(comm: C, stream: &Stream) -> Self {
        Self { comm, stages: Stages::new(stream) }
    }

    /// Bytes copied between host and device so far, both ways.
    pub fn staged_bytes(&self) -> u64 {
        self.stages.bytes
    }

    /// The transport itself.
    pub fn into_inner(self) -> C {
        self.comm
    }

    /// The transport itself.
    pub fn inner(&self) -> &C {
        &self.comm
    }

    /// Runs an operation that replaces `values`.
    fn on<T: Element>(
        &mut self,
        values: &mut [T],
        operation: impl FnOnce(&mut C, ViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Stages { stream, recv, bytes, .. } = &mut self.stages;
        let mut staged = recv.room_of(stream, values.len())?;
        stream.upload(values, staged.reborrow())?;
        operation(&mut self.comm, staged.reborrow())?;
        stream.download(staged.as_view(), values)?;
        *bytes += 2 * size_of_val(values) as u64;
        Ok(())
    }

    /// Runs an operation from `send` to `to`.
    fn between<T: Element>(
        &mut self,
        send: &[T],
        to: &mut [T],
        operation: impl FnOnce(&mut C, View<'_, T>, ViewMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Stages { stream, send: from, recv, bytes } = &mut self.stages;
        let mut from = from.room_of(stream, send.len())?;
        let mut staged = recv.room_of(stream, to.len())?;
        stream.upload(send, from.reborrow())?;
        operation(&mut self.comm, from.as_view(), staged.reborrow())?;
        stream.download(staged.as_view(), to)?;
        *bytes += (size_of_val(send) + size_of_val(to)) as u64;
        Ok(())
    }

    fn with(&self, comm: C) -> Self {
        Self::new(comm, &self.stages.stream)
    }
}

impl<C: Collective<DeviceSpace>> Collective for Staged<C> {
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
        self.on(values, C::all_reduce)
    }

    fn all_reduce_max<T: Sum>(&mut self, values: &mut [T]) -> Result<()> {
        self.on(values, C::all_reduce_max)
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

    /// The copy works at the same time, so that it has a stream of its own.
    fn duplicate(&mut self) -> Result<Self> {
        let comm = self.comm.duplicate()?;
        Ok(Self::new(comm, &self.stages.stream.device().stream()?))
    }
}
