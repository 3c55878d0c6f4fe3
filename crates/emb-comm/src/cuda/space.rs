//! The memory of CUDA devices: [`DeviceSpace`].

use super::reduce;
use crate::{Element, Reduction, Result, Space, Sum};
use emb_cuda::{Kept, Stream, View, ViewMut};
use std::sync::{Mutex, PoisonError};

/// The memory of one or more CUDA devices, as a rank with a stream of its own sees it.
///
/// Views may lie on any device of the process. Copies and reductions are queued on this rank's
/// stream, which the views' home streams are joined with. So [`Local`](crate::Local) over it is a
/// transport between several ranks of one device, and between the devices of one process.
///
/// ```no_run
/// use emb_comm::{Collective, DeviceSpace, Error, Options, run_over};
/// use emb_cuda::Device;
///
/// // Two ranks on each device.
/// let devices = Device::count()?;
/// let space = |rank: usize| Ok(DeviceSpace::new(&Device::open(rank % devices)?.stream()?));
/// let spaces: Vec<_> = (0..2 * devices).map(space).collect::<Result<_, emb_cuda::Error>>()?;
/// run_over(spaces, &Options::default(), |rank| {
///     let stream = Device::open(rank.rank() % devices)?.stream()?;
///     let mut gradient = stream.zeros::<f32>(1000)?;
///     rank.all_reduce(gradient.whole_mut())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DeviceSpace {
    stream: Stream,
    /// What is copied here from other devices before it is reduced; grows to what is needed.
    room: Mutex<Kept<u8>>,
}

impl DeviceSpace {
    /// A rank whose work is queued on `stream`. Ranks have streams of their own.
    pub fn new(stream: &Stream) -> Self {
        Self { stream: stream.clone(), room: Mutex::default() }
    }

    /// Loads all kernels that a rank may need later.
    #[cfg(feature = "nccl")]
    pub(crate) fn load(&self) {
        reduce::load(&self.stream);
    }

    /// The stream of this rank.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl Space for DeviceSpace {
    type Ref<'a, T: Element> = View<'a, T>;
    type Mut<'a, T: Element> = ViewMut<'a, T>;

    fn len<T: Element>(view: View<'_, T>) -> usize {
        view.len()
    }

    fn len_mut<T: Element>(view: &ViewMut<'_, T>) -> usize {
        view.len()
    }

    fn shorten<'short, 'long: 'short, T: Element>(view: View<'long, T>) -> View<'short, T> {
        view
    }

    fn slice<T: Element>(view: Self::Ref<'_, T>, start: usize, len: usize) -> Self::Ref<'_, T> {
        view.slice(start..start + len)
    }

    fn split<T: Element>(
        view: Self::Mut<'_, T>,
        at: usize,
    ) -> (Self::Mut<'_, T>, Self::Mut<'_, T>) {
        view.split_at(at)
    }

    fn reborrow<'a, T: Element>(view: &'a mut ViewMut<'_, T>) -> ViewMut<'a, T> {
        view.reborrow()
    }

    fn freeze<'a, T: Element>(view: &'a ViewMut<'_, T>) -> View<'a, T> {
        view.as_view()
    }

    fn copy<T: Element>(&self, to: ViewMut<'_, T>, from: View<'_, T>) -> Result<()> {
        Ok(self.stream.copy(from, to)?)
    }

    fn reduce<'a, T: Sum>(
        &self,
        how: Reduction,
        to: ViewMut<'_, T>,
        ranks: usize,
        source: impl Fn(usize) -> Option<View<'a, T>>,
    ) -> Result<()> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        reduce::reduce(&self.stream, &mut room, how, to, ranks, source)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.stream.synchronize()?)
    }
}
