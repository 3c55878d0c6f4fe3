//! A point of a stream that others can wait for.

use crate::error::Named;
use crate::{Device, Result};
use cudarc::driver::result;
use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult, CUstream};

/// Work of a stream up to a point.
#[derive(Debug)]
pub struct Event {
    device: Device,
    raw: CUevent,
}

// SAFETY: a handle of the driver, which may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event of nothing yet; `timed` ones can be subtracted.
    pub(crate) fn new(device: &Device, timed: bool) -> Result<Self> {
        device.bind()?;
        let flags = if timed {
            CUevent_flags::CU_EVENT_DEFAULT
        } else {
            CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let raw = result::event::create(flags).named("cuEventCreate")?;
        Ok(Self { device: device.clone(), raw })
    }

    pub(crate) fn record(&self, stream: CUstream) -> Result<()> {
        self.device.bind()?;
        // SAFETY: an event and a stream of one device.
        unsafe { result::event::record(self.raw, stream) }.named("cuEventRecord")
    }

    /// Makes `stream` wait for what was recorded last.
    pub(crate) fn hold(&self, stream: CUstream) -> Result<()> {
        use cudarc::driver::sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: an event and a stream that live.
        unsafe { result::stream::wait_event(stream, self.raw, CU_EVENT_WAIT_DEFAULT) }
            .named("cuStreamWaitEvent")
    }

    /// Whether that work is done.
    ///
    /// # Errors
    /// Work that failed.
    pub fn is_done(&self) -> Result<bool> {
        self.device.bind()?;
        // SAFETY: an event that lives.
        match unsafe { result::event::query(self.raw) } {
            Err(error) if error.0 == CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            done => done.named("cuEventQuery").map(|()| true),
        }
    }

    /// Returns once that work is done.
    ///
    /// # Errors
    /// Work that failed.
    pub fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        // SAFETY: an event that lives.
        unsafe { result::event::synchronize(self.raw) }.named("cuEventSynchronize")
    }

    /// Seconds from `start` to this; both must be done, and made by [`Stream::record_timed`](crate::Stream::record_timed).
    ///
    /// # Errors
    /// Events that are not done or not timed.
    pub fn seconds_since(&self, start: &Self) -> Result<f64> {
        self.device.bind()?;
        // SAFETY: events that live.
        let milliseconds = unsafe { result::event::elapsed(start.raw, self.raw) };
        milliseconds.named("cuEventElapsedTime").map(|milliseconds| f64::from(milliseconds) * 1e-3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: created once; the driver lets go of it when its work is done.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}
