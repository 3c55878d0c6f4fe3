//! Launches recorded once and replayed as one: [`Graph`], [`Graphs`].

use super::Cuda;
use crate::{Error, Result};
use emb_cuda::Stream;
use emb_cuda::cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};
use emb_cuda::cudarc::driver::{DriverError, result};

/// A sequence of launches with their arguments, ready to be queued in one call.
///
/// A replay reads and writes the addresses of the recording and passes the same numbers: it is the
/// same computation on whatever lies there now, bit for bit what the launches give one by one.
#[derive(Debug)]
pub struct Graph {
    stream: Stream,
    launches: CUgraphExec,
}

// SAFETY: "the driver API is thread safe" but for objects used by several threads at once (CUDA
// programming guide, "CUDA graphs, thread safety"); a value is used by the thread that has it.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `work` queues on `stream`; nothing is run.
    ///
    /// `work` may use memory whose home is `stream` alone, may not wait for the device (downloads,
    /// losses), and must not be the first of its kind: what is allocated or loaded on first use
    /// cannot be recorded. [`Graphs`] sees to the last.
    ///
    /// # Errors
    /// What `work` returns; work that cannot be recorded.
    pub fn capture(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        stream.device().bind()?;
        // Other threads may go on allocating and loading.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: a stream that lives.
        unsafe { result::stream::begin_capture(stream.raw(), mode) }
            .map_err(failed("cuStreamBeginCapture"))?;
        // A panic of `work` would leave the stream recording, and every later launch lost.
        let recording = Recording { stream, open: true };
        work()?;
        let recorded = recording.end()?;
        // SAFETY: a graph that lives.
        let launches = unsafe {
            result::graph::instantiate(recorded.0, sys::CUgraphInstantiate_flags_enum(0))
        };
        let launches = launches.map_err(failed("cuGraphInstantiate"))?;
        Ok(Self { stream: stream.clone(), launches })
    }

    /// Queues all launches, on the stream that they were recorded on.
    ///
    /// # Errors
    /// The driver fails.
    ///
    /// # Safety
    /// The memory that the recording reads and writes is still there, that of the backend too: it
    /// has done no larger operation of its kind since.
    pub unsafe fn launch(&self) -> Result<()> {
        self.stream.device().bind()?;
        // SAFETY: launches and a stream that live, and the caller's promise.
        unsafe { result::graph::launch(self.launches, self.stream.raw()) }
            .map_err(failed("cuGraphLaunch"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Replays that are queued must be over.
        if self.stream.synchronize().is_ok() {
            // SAFETY: instantiated once.
            let _ = unsafe { result::graph::exec_destroy(self.launches) };
        }
    }
}

/// A stream that records.
struct Recording<'a> {
    stream: &'a Stream,
    open: bool,
}

/// What was recorded.
struct Recorded(CUgraph);

impl Recording<'_> {
    fn end(mut self) -> Result<Recorded> {
        self.open = false;
        // SAFETY: a stream that records.
        unsafe { result::stream::end_capture(self.stream.raw()) }
            .map(Recorded)
            .map_err(failed("cuStreamEndCapture"))
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if self.open {
            // SAFETY: a stream that records.
            let recorded = unsafe { result::stream::end_capture(self.stream.raw()) };
            drop(recorded.map(Recorded));
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: recorded once.
            let _ = unsafe { result::graph::destroy(self.0) };
        }
    }
}

/// Graphs by what they depend on: `K` names the shapes, addresses and numbers of the work.
#[derive(Debug)]
pub struct Graphs<K> {
    kept: Vec<Entry<K>>,
    most: usize,
    time: u64,
}

#[derive(Debug)]
struct Entry<K> {
    key: K,
    used: u64,
    /// `None` until the work was done once, launch by launch; with where the backend's own memory
    /// was when it was recorded.
    graph: Option<(u64, Graph)>,
}

impl<K: PartialEq> Graphs<K> {
    /// At most `most` graphs at a time; the one not used for the longest time makes room.
    pub fn new(most: usize) -> Self {
        Self { kept: Vec::with_capacity(most.max(1)), most: most.max(1), time: 0 }
    }

    /// Does `work`: launch by launch the first time that `key` is seen, so that all is allocated;
    /// the second time it is recorded; from then on it is replayed, and `work` is not called. It is
    /// recorded again when a larger operation has moved the backend's own memory.
    ///
    /// # Errors
    /// What `work` returns; work that cannot be recorded, see [`Graph::capture`].
    ///
    /// # Safety
    /// Work of equal keys makes the same launches, with the same addresses and numbers: a replay
    /// uses those of the recording.
    pub unsafe fn run(
        &mut self,
        cuda: &mut Cuda,
        key: K,
        work: impl FnOnce(&mut Cuda) -> Result<()>,
    ) -> Result<()> {
        self.time += 1;
        let Some(entry) = self.kept.iter_mut().find(|entry| entry.key == key) else {
            work(cuda)?;
            let oldest = (0..self.kept.len()).min_by_key(|&at| self.kept[at].used);
            if let Some(oldest) = oldest.filter(|_| self.kept.len() == self.most) {
                self.kept.swap_remove(oldest);
            }
            self.kept.push(Entry { key, used: self.time, graph: None });
            return Ok(());
        };
        entry.used = self.time;
        let stream = cuda.stream.clone();
        let place = cuda.dense.sums.place();
        let graph = match entry.graph.take() {
            Some((recorded, graph)) if recorded == place => graph,
            old => {
                // It goes first: it waits for its replays.
                drop(old);
                Graph::capture(&stream, || work(cuda))?
            }
        };
        let (_, graph) = entry.graph.insert((place, graph));
        // SAFETY: the memory of the recording is that of `work`, which borrows it now, by the
        // caller's promise; the backend's has not moved.
        unsafe { graph.launch() }
    }

    /// How many graphs are recorded.
    pub fn len(&self) -> usize {
        self.kept.iter().filter(|entry| entry.graph.is_some()).count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn failed(call: &'static str) -> impl FnOnce(DriverError) -> Error {
    move |error| Error::Device(format!("{call}: {:?}", error.0))
}
