//! Anonymous memory that costs nothing until it is touched.

use crate::{Error, Pages, Result};
use memmap2::{MmapOptions, MmapRaw};

/// A part of the machine's memory up to which [`Pages::Auto`] takes huge pages for one map.
const AUTO_HUGE_FRACTION: u64 = 8;

/// Zeroed memory, reserved and not committed: pages appear as they are touched.
#[derive(Debug)]
pub(crate) struct Arena {
    map: Option<MmapRaw>,
}

impl Arena {
    /// Maps `elements * bytes_each` bytes; `what` is for the error.
    pub(crate) fn new(what: &str, elements: u128, bytes_each: usize, pages: Pages) -> Result<Self> {
        let wanted = elements * bytes_each as u128;
        if wanted == 0 {
            return Ok(Self { map: None });
        }
        let error = |reason: String| Error::Memory {
            what: what.to_owned(),
            bytes: u64::try_from(wanted).unwrap_or(u64::MAX),
            reason,
        };
        let bytes = usize::try_from(wanted)
            .ok()
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| error("more than the address space".to_owned()))?;
        let map = MmapOptions::new()
            .len(bytes)
            .no_reserve_swap()
            .map_anon()
            .map_err(|cause| error(cause.to_string()))?;
        advise(&map, bytes as u64, pages);
        Ok(Self { map: Some(MmapRaw::from(map)) })
    }

    /// Number of elements.
    pub(crate) fn len<T: bytemuck::Pod>(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len) / size_of::<T>()
    }

    /// First element; well aligned, for maps begin at a page. Dangling where nothing is mapped.
    #[inline(always)]
    pub(crate) fn pointer<T: bytemuck::Pod>(&self) -> *mut T {
        self.map.as_ref().map_or(std::ptr::dangling_mut(), |map| map.as_mut_ptr().cast())
    }

    /// All elements.
    ///
    /// # Safety
    /// Nobody writes to the arena while the slice lives.
    #[inline(always)]
    pub(crate) unsafe fn slice<T: bytemuck::Pod>(&self) -> &[T] {
        // SAFETY: the map is `len` elements of zeroed or written plain data; the caller promises
        // that there is no writer.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.len::<T>()) }
    }

    /// Elements `first..first + len`.
    ///
    /// # Safety
    /// The range lies in the arena, and nobody else reads or writes it while the slice lives.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "threads write disjoint parts of one map")]
    pub(crate) unsafe fn part_mut<T: bytemuck::Pod>(&self, first: usize, len: usize) -> &mut [T] {
        debug_assert!(first + len <= self.len::<T>());
        // SAFETY: the caller promises that the range is inside the map.
        let start = unsafe { self.pointer::<T>().add(first) };
        // SAFETY: plain data of the map, which the caller promises to be alone with.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

#[cfg(target_os = "linux")]
fn advise(map: &memmap2::MmapMut, bytes: u64, pages: Pages) {
    let huge = match pages {
        Pages::Small => false,
        Pages::Huge => true,
        Pages::Auto => bytes <= machine_bytes() / AUTO_HUGE_FRACTION,
    };
    let advice = if huge { memmap2::Advice::HugePage } else { memmap2::Advice::NoHugePage };
    // A kernel without huge pages refuses the advice and works all the same.
    let _ = map.advise(advice);
}

#[cfg(not(target_os = "linux"))]
fn advise(_map: &memmap2::MmapMut, _bytes: u64, _pages: Pages) {}

/// Memory of the machine in bytes; 0 where the system does not say.
#[cfg(target_os = "linux")]
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
