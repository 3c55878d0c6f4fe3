//! A communicator of the library: the calls on it, each with its result.
//!
//! It is made so that no call blocks ([`Config::watched`]): a call returns once it is queued or is
//! on its way, and [`Comm::is_ready`] tells when it is through.

use super::library::{Config, Handle, IN_PROGRESS, Library, NO_COLOR, RawId, RawStream, SUCCESS};
use crate::element::sealed::Sealed;
use crate::{Element, Error, Result};
use emb_cuda::{Device, Stream, View, ViewMut};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// One rank's communicator.
pub(super) struct Comm {
    /// Written by the library, also from a thread of its own while the communicator comes to be.
    handle: Box<AtomicPtr<c_void>>,
    /// Whether the library writes the handle no more.
    settled: bool,
    library: &'static Library,
    device: Device,
    rank: usize,
    world: usize,
    /// What was called last, and may still be in progress.
    called: Cell<&'static str>,
}

impl Comm {
    /// Begins to join `world` ranks that know the same `id`; ready once all have.
    pub(super) fn init(
        library: &'static Library,
        device: &Device,
        id: RawId,
        rank: usize,
        world: usize,
    ) -> Result<Self> {
        device.bind()?;
        let comm = Self::empty(library, device, rank, world);
        let mut config = Config::watched();
        let (world, rank) = (world as c_int, rank as c_int);
        // SAFETY: the place of the handle lives until the communicator has ended, or for ever
        // (see `Drop`); the configuration is read during the call.
        let code =
            unsafe { (library.init)(comm.handle.as_ptr(), world, id, rank, &raw mut config) };
        comm.checked("ncclCommInitRankConfig", code)?;
        Ok(comm)
    }

    /// Begins to divide the ranks: those of the same `part` join, numbered by `key`. Both are
    /// ready once this one is.
    pub(super) fn split(&self, part: Option<usize>, key: usize, world: usize) -> Result<Self> {
        let new = Self::empty(self.library, &self.device, key, world);
        let mut config = Config::watched();
        let (color, key) = (part.map_or(NO_COLOR, |part| part as c_int), key as c_int);
        let place = new.handle.as_ptr();
        // SAFETY: a communicator that lives; the rest as in `init`.
        let code = unsafe { (self.library.split)(self.raw(), color, key, place, &raw mut config) };
        self.checked("ncclCommSplit", code)?;
        Ok(new)
    }

    fn empty(library: &'static Library, device: &Device, rank: usize, world: usize) -> Self {
        let (handle, device) = (Box::default(), device.clone());
        let called = Cell::new("");
        Self { handle, settled: false, library, device, rank, world, called }
    }

    fn raw(&self) -> Handle {
        self.handle.load(Ordering::Acquire)
    }

    /// Whether all that was called is queued; an error that came up since.
    pub(super) fn is_ready(&self) -> Result<bool> {
        let handle = self.raw();
        if handle.is_null() {
            return Ok(true);
        }
        let mut state = SUCCESS;
        // SAFETY: a communicator that lives, a place for its state.
        let code = unsafe { (self.library.async_error)(handle, &raw mut state) };
        let called = self.called.get();
        self.checked("ncclCommGetAsyncError", code)?;
        self.checked(called, state)?;
        Ok(state != IN_PROGRESS)
    }

    /// Called once it is ready for the first time: whether there is a communicator. Not so for a
    /// rank that joined no part.
    pub(super) fn settle(&mut self) -> bool {
        self.settled = true;
        !self.raw().is_null()
    }

    /// Queues several calls as one. Views that they name stay borrowed until the work is done, by
    /// whoever waits for it.
    pub(super) fn group(&self, calls: impl FnOnce(&Group<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: ended below, on this thread.
        let code = unsafe { (self.library.group_start)() };
        self.checked("ncclGroupStart", code)?;
        let called = calls(&Group(self));
        // SAFETY: started above.
        let code = unsafe { (self.library.group_end)() };
        called?;
        self.checked("ncclGroupEnd", code)
    }

    /// Gathers equal parts of all ranks.
    pub(super) fn all_gather<T: Element>(
        &self,
        send: View<'_, T>,
        recv: ViewMut<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let (from, to) = (address(send), address_mut(&recv));
        let (len, kind) = (send.len(), data_type::<T>());
        // SAFETY: borrowed memory of the device, of `len` and of `world * len` elements.
        let code = unsafe {
            (self.library.all_gather)(from, to, len, kind, self.raw(), raw_stream(stream))
        };
        self.checked("ncclAllGather", code)
    }

    /// [`all_gather`](Self::all_gather) where this rank's part is at its place already.
    pub(super) fn all_gather_in_place<T: Element>(
        &self,
        values: ViewMut<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let (len, kind) = (values.len() / self.world, data_type::<T>());
        let from = address(values.as_view().slice(self.rank * len..(self.rank + 1) * len));
        let to = address_mut(&values);
        // SAFETY: as above; a part that begins at its place in the whole is sent as it is.
        let code = unsafe {
            (self.library.all_gather)(from, to, len, kind, self.raw(), raw_stream(stream))
        };
        self.checked("ncclAllGather", code)
    }

    /// Adds up in the library's order, in place.
    pub(super) fn all_reduce<T: Element>(
        &self,
        values: ViewMut<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let (to, len, kind) = (address_mut(&values), values.len(), data_type::<T>());
        let (raw, stream) = (self.raw(), raw_stream(stream));
        // SAFETY: borrowed memory of the device; both addresses the same is allowed.
        let code = unsafe { (self.library.all_reduce)(to, to, len, kind, SUM, raw, stream) };
        self.checked("ncclAllReduce", code)
    }

    /// Adds up in the library's order and keeps this rank's of equal parts.
    pub(super) fn reduce_scatter<T: Element>(
        &self,
        send: View<'_, T>,
        recv: ViewMut<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let (from, to) = (address(send), address_mut(&recv));
        let (len, kind) = (recv.len(), data_type::<T>());
        let (raw, stream) = (self.raw(), raw_stream(stream));
        // SAFETY: borrowed memory of the device, of `world * len` and of `len` elements.
        let code = unsafe { (self.library.reduce_scatter)(from, to, len, kind, SUM, raw, stream) };
        self.checked("ncclReduceScatter", code)
    }

    /// Copies the root's values to all ranks.
    pub(super) fn broadcast<T: Element>(
        &self,
        values: ViewMut<'_, T>,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        let (to, len, kind) = (address_mut(&values), values.len(), data_type::<T>());
        let (root, raw, stream) = (root as c_int, self.raw(), raw_stream(stream));
        // SAFETY: borrowed memory of the device; both addresses the same is allowed.
        let code = unsafe { (self.library.broadcast)(to, to, len, kind, root, raw, stream) };
        self.checked("ncclBroadcast", code)
    }

    /// Begins to end: ready once all that was queued is done.
    pub(super) fn finalize(&self) -> Result<()> {
        // SAFETY: a communicator that lives and is used by nobody else.
        let code = unsafe { (self.library.finalize)(self.raw()) };
        self.checked("ncclCommFinalize", code)
    }

    /// Frees what was finalized.
    pub(super) fn destroy(self) -> Result<()> {
        let handle = self.handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: a communicator that lives, taken out above.
        let code = unsafe { (self.library.destroy)(handle) };
        self.checked("ncclCommDestroy", code)
    }

    /// Ends what is in progress and frees. May take as long as peers let it.
    pub(super) fn abort(self) {
        let handle = self.handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !handle.is_null() && self.device.bind().is_ok() {
            // SAFETY: a communicator that lives, taken out above: aborted once.
            unsafe { (self.library.abort)(handle) };
        }
    }

    fn checked(&self, call: &'static str, code: c_int) -> Result<()> {
        self.called.set(call);
        if code == SUCCESS || code == IN_PROGRESS {
            return Ok(());
        }
        let place = place(&self.device);
        let problem = self.library.explain(code, self.raw());
        Err(Error::Nccl { call, rank: self.rank, world: self.world, place, problem })
    }
}

/// Where a communicator was given up while it came to be, the library may still write its handle.
impl Drop for Comm {
    fn drop(&mut self) {
        if !self.settled {
            std::mem::forget(std::mem::take(&mut self.handle));
        }
    }
}

/// Calls that are queued as one.
pub(super) struct Group<'a>(&'a Comm);

impl Group<'_> {
    /// Sends elements, if there are any: the receiver expects as many and leaves none out either.
    pub(super) fn send<T: Element>(
        &self,
        view: View<'_, T>,
        peer: usize,
        stream: &Stream,
    ) -> Result<()> {
        if view.is_empty() {
            return Ok(());
        }
        let (from, len, kind) = (address(view), view.len(), data_type::<T>());
        let (peer, raw, stream) = (peer as c_int, self.0.raw(), raw_stream(stream));
        // SAFETY: borrowed memory of the device.
        let code = unsafe { (self.0.library.send)(from, len, kind, peer, raw, stream) };
        self.0.checked("ncclSend", code)
    }

    /// Receives elements, if there are to be any.
    pub(super) fn recv<T: Element>(
        &self,
        view: ViewMut<'_, T>,
        peer: usize,
        stream: &Stream,
    ) -> Result<()> {
        if view.is_empty() {
            return Ok(());
        }
        let (to, len, kind) = (address_mut(&view), view.len(), data_type::<T>());
        let (peer, raw, stream) = (peer as c_int, self.0.raw(), raw_stream(stream));
        // SAFETY: borrowed memory of the device.
        let code = unsafe { (self.0.library.recv)(to, len, kind, peer, raw, stream) };
        self.0.checked("ncclRecv", code)
    }
}

/// `ncclSum`.
const SUM: c_int = 0;

/// `ncclDataType_t`.
fn data_type<T: Element>() -> c_int {
    match <T as Sealed>::CODE {
        1 => 1, // u8
        2 => 3, // u32
        3 => 5, // u64
        4 => 4, // i64
        5 => 7, // f32
        7 => 6, // f16
        8 => 9, // bf16
        _ => 8, // f64
    }
}

fn address<T: Element>(view: View<'_, T>) -> *const c_void {
    view.pointer() as *const c_void
}

fn address_mut<T: Element>(view: &ViewMut<'_, T>) -> *mut c_void {
    view.pointer() as *mut c_void
}

fn raw_stream(stream: &Stream) -> RawStream {
    stream.raw().cast()
}

/// "host a, device 0 (H200)".
pub(super) fn place(device: &Device) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.as_deref().map_or("unknown", str::trim);
    format!("host {host}, device {} ({})", device.ordinal(), device.name())
}
