//! Medians of the GPU's own times.

use crate::Result;
use crate::options::Options;
use crate::sizes::Sizes;
use emb_cuda::{Buffer, Device, Stream};
use std::time::Instant;

/// Runs before any that is timed: the first loads kernels and finds its scratch memory.
const WARM_UP: usize = 2;

/// Samples of a cell, whatever they take.
const LEAST: usize = 5;

/// Measures on one device.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Written between samples, which empties the cache.
    flush: Buffer<u8>,
    /// Of samples, for a cell.
    seconds: f64,
    least: usize,
}

impl Clock {
    pub(crate) fn new(device: &Device, sizes: &Sizes, options: &Options) -> Result<Self> {
        let flush = device.stream()?.zeros(sizes.flush)?;
        let (seconds, least) = if options.tiny { (0.0, 1) } else { (options.seconds, LEAST) };
        Ok(Self { flush, seconds, least })
    }

    /// Median seconds of what `work` queues on `stream`.
    pub(crate) fn median(
        &mut self,
        stream: Stream,
        mut work: impl FnMut() -> Result<()>,
    ) -> Result<f64> {
        for _ in 0..WARM_UP {
            work()?;
        }
        let begin = Instant::now();
        let mut samples = Vec::new();
        while samples.len() < self.least || begin.elapsed().as_secs_f64() < self.seconds {
            let all = 0..self.flush.len();
            stream.clear(self.flush.view_mut(all))?;
            let start = stream.record_timed()?;
            work()?;
            let end = stream.record_timed()?;
            end.synchronize()?;
            samples.push(end.seconds_since(&start)?);
        }
        samples.sort_by(f64::total_cmp);
        // A fake device takes no time; a rate of it must be a number all the same.
        Ok(samples[samples.len() / 2].max(1e-9))
    }
}
