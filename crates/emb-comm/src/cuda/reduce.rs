//! Reductions of device memory in rank order, by the kernels of `cuda/reduce.cu`.

use crate::element::sealed::Sealed;
use crate::{Error, Reduction, Result, Sum};
use bytemuck::{Pod, Zeroable};
use emb_cuda::{Kept, Kernel, Plain, Shape, Stream, View, ViewMut};
#[cfg(feature = "nccl")]
use half::{bf16, f16};

/// Vectors of one launch: `kSources` of the kernels.
const SOURCES: usize = 64;

/// `Sources` of the kernels: addresses in rank order; 0 for the values that are there already.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Sources([u64; SOURCES]);

/// Threads of a block, as the kernels are compiled for.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor: as many threads as one can hold.
const BLOCKS: u32 = 8;

/// Bytes of each vector that are copied from other devices at a time. The copies of one piece are
/// queued behind the reduction of the piece before, which takes a few microseconds on a GPU.
const PIECE: usize = 4 << 20;

/// Replaces `to` by the reduction of `source(0)`, .. `source(ranks - 1)`; `None` is `to` itself.
///
/// Vectors of other devices are copied to `room` first: memory of a device's pool cannot be relied
/// upon to be readable from another one.
pub(super) fn reduce<'a, T: Sum>(
    stream: &Stream,
    room: &mut Kept<u8>,
    how: Reduction,
    mut to: ViewMut<'_, T>,
    ranks: usize,
    source: impl Fn(usize) -> Option<View<'a, T>>,
) -> Result<()> {
    let len = to.len();
    if len == 0 {
        return Ok(());
    }
    if to.home().device() != stream.device() {
        return Err(Error::Space(format!(
            "reduction on device {} into memory of device {}",
            stream.device().ordinal(),
            to.home().device().ordinal()
        )));
    }
    let kernel = stream.device().kernel(name::<T>(how))?;
    let homes = || (0..ranks).filter_map(&source).map(View::home);
    for home in homes() {
        stream.after(home)?;
    }
    // Values that are there already are overwritten by the first of several launches.
    let own_is_copied = ranks > SOURCES && (0..ranks).any(|rank| source(rank).is_none());
    let is_far = |view: &View<'a, T>| view.home().device() != stream.device();
    let copies = homes().filter(|home| home.device() != stream.device()).count();
    let copies = copies + usize::from(own_is_copied);
    let piece = if copies == 0 { len } else { len.min(PIECE / size_of::<T>()) };
    // Each copy begins at a multiple of the 16 bytes that the kernels read at once.
    let stride = piece.next_multiple_of(16 / size_of::<T>());
    let mut room = room.room_of::<T>(stream, copies * stride)?;
    for start in (0..len).step_by(piece) {
        let part = start..len.min(start + piece);
        let mut slots = (0..copies).map(|slot| slot * stride);
        let mut copy = |from: View<'_, T>| {
            let at = slots.next().expect("invariant: counted above");
            let into = room.slice(at..at + part.len());
            let pointer = into.pointer();
            stream.copy(from, into).map(|()| pointer)
        };
        let own = if own_is_copied { copy(to.as_view().slice(part.clone()))? } else { 0 };
        let (mut sources, mut filled) = ([0; SOURCES], 0);
        for rank in 0..ranks {
            if filled == SOURCES {
                launch(stream, kernel, &sources, filled, to.slice(part.clone()))?;
                // The next launch begins with the result so far, which is there already.
                (sources, filled) = ([0; SOURCES], 1);
            }
            sources[filled] = match source(rank).map(|view| view.slice(part.clone())) {
                None => own,
                Some(view) if is_far(&view) => copy(view)?,
                Some(view) => view.pointer(),
            };
            filled += 1;
        }
        launch(stream, kernel, &sources, filled, to.slice(part))?;
    }
    for home in homes() {
        home.after(stream)?;
    }
    Ok(())
}

fn launch<T: Sum>(
    stream: &Stream,
    kernel: Kernel,
    sources: &[u64; SOURCES],
    count: usize,
    to: ViewMut<'_, T>,
) -> Result<()> {
    let len = to.len() as u64;
    let most = stream.device().multiprocessors()? * BLOCKS;
    let blocks = len.div_ceil(u64::from(THREADS)).clamp(1, u64::from(most)) as u32;
    let shape = Shape { grid: [blocks, 1, 1], block: [THREADS, 1, 1], shared: 0 };
    let args = (Plain(Sources(*sources)), count as u32, to, len);
    // SAFETY: the kernel takes these four. It reads `len` elements at each of the first `count`
    // addresses, which are views of that length on this device or null, and writes `to`, which is
    // as long; the homes of the views are joined before and after by the caller.
    Ok(unsafe { stream.launch(kernel, shape, args) }?)
}

/// Loads the kernels of all reductions, as far as there are any: where one is missing, the
/// reduction that needs it says so. Loading a kernel may wait for all work of the device, which a
/// rank must not do while it takes part in a collective.
#[cfg(feature = "nccl")]
pub(super) fn load(stream: &Stream) {
    for how in [Reduction::Sum, Reduction::Max] {
        let floats = [name::<f32>(how), name::<f64>(how), name::<f16>(how), name::<bf16>(how)];
        for name in floats.into_iter().chain([name::<u64>(how)]) {
            let _ = stream.device().kernel(name);
        }
    }
}

fn name<T: Sum>(how: Reduction) -> &'static str {
    match (how, <T as Sealed>::CODE) {
        (Reduction::Sum, 3) => "emb_reduce_sum_u64",
        (Reduction::Sum, 5) => "emb_reduce_sum_f32",
        (Reduction::Sum, 7) => "emb_reduce_sum_f16",
        (Reduction::Sum, 8) => "emb_reduce_sum_bf16",
        (Reduction::Sum, _) => "emb_reduce_sum_f64",
        (Reduction::Max, 3) => "emb_reduce_max_u64",
        (Reduction::Max, 5) => "emb_reduce_max_f32",
        (Reduction::Max, 7) => "emb_reduce_max_f16",
        (Reduction::Max, 8) => "emb_reduce_max_bf16",
        (Reduction::Max, _) => "emb_reduce_max_f64",
    }
}
