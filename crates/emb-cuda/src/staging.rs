//! Pinned memory between host slices and a device.

use crate::{Device, Event, Pinned, Result};
use cudarc::driver::sys::CUstream;

/// Bytes of a half at first.
const SMALLEST: usize = 1 << 16;

/// Most bytes that one copy is made of: longer ones are copied in parts.
pub(crate) const PART: usize = 16 << 20;

/// Two halves: one is filled while copies from the other go on.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    halves: [Half; 2],
    current: usize,
    /// What a download lands in.
    pub(crate) landing: Option<Pinned<u8>>,
}

#[derive(Debug, Default)]
struct Half {
    memory: Option<Pinned<u8>>,
    used: usize,
    copied: Option<Event>,
}

impl Staging {
    /// Room for `bytes`, at most [`PART`], that no copy reads any more.
    pub(crate) fn room(
        &mut self,
        device: &Device,
        stream: CUstream,
        bytes: usize,
    ) -> Result<&mut [u8]> {
        let half = &mut self.halves[self.current];
        let free = half.memory.as_ref().map_or(0, |memory| memory.len()) - half.used;
        if free < bytes {
            if half.used > 0 {
                if half.copied.is_none() {
                    half.copied = Some(Event::new(device, false)?);
                }
                half.copied.as_ref().expect("invariant: made above").record(stream)?;
                self.current = 1 - self.current;
            }
            self.halves[self.current].empty(device, bytes)?;
        }
        let half = &mut self.halves[self.current];
        // Parts begin at multiples of 16, as copies like it.
        let start = half.used;
        half.used = (start + bytes).next_multiple_of(16);
        let memory = half.memory.as_mut().expect("invariant: has room");
        half.used = half.used.min(memory.len());
        Ok(&mut memory[start..start + bytes])
    }

    /// Room for a download of `bytes`.
    pub(crate) fn landing(&mut self, device: &Device, bytes: usize) -> Result<&mut [u8]> {
        if self.landing.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.landing = None;
            self.landing = Some(Pinned::zeros(device, grown(bytes))?);
        }
        Ok(&mut self.landing.as_mut().expect("invariant: made above")[..bytes])
    }
}

impl Half {
    /// Waits for the copies from this half, and makes it large enough.
    fn empty(&mut self, device: &Device, bytes: usize) -> Result<()> {
        if self.used > 0 {
            let copied = self.copied.as_ref().expect("invariant: recorded when it was left");
            copied.synchronize()?;
        }
        self.used = 0;
        if self.memory.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.memory = None;
            self.memory = Some(Pinned::zeros(device, grown(bytes))?);
        }
        Ok(())
    }
}

fn grown(bytes: usize) -> usize {
    (4 * bytes).next_power_of_two().clamp(SMALLEST, PART.max(bytes))
}
