//! From measured exchanges to latency and bandwidth: [`LinkFit`].

use super::level::transfer_seconds;
use crate::{Error, Result};

/// What explains measured exchanges: a latency, and seconds that grow with the bytes.
///
/// First a straight line, `seconds = latency + bytes / bandwidth`, the two at least 0, with the
/// least sum of the squares of *relative* errors: messages of a few bytes count as much as
/// messages of megabytes. Where the line misses a point by more than [`LINE_MISSES`](Self::LINE_MISSES)
/// caches or protocols have bent it, and all points are kept, as
/// [`LevelSpec::transfers`](crate::LevelSpec::transfers), made to ascend: neighbours that fall are
/// pooled and get their median (pool adjacent violators: Ayer et al., An Empirical Distribution
/// Function for Sampling with Incomplete Information, 1955; with medians Robertson and Waltman, On
/// Estimating Monotone Parameters, 1968), which one outlier does not move.
///
/// ```
/// use emb_shard::LinkFit;
///
/// let points: Vec<(u64, f64)> =
///     (3..27).map(|power| 1 << power).map(|bytes| (bytes, 5e-6 + bytes as f64 / 2e10)).collect();
/// let fit = LinkFit::of(&points)?;
/// assert!((fit.latency - 5e-6).abs() < 1e-9 && (fit.bandwidth - 2e10).abs() < 1e7);
/// assert!(fit.transfers.is_empty(), "a line explains it all");
/// # Ok::<(), emb_shard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFit {
    /// Seconds of a message without bytes.
    pub latency: f64,
    /// Bytes a second of large messages.
    pub bandwidth: f64,
    /// `(bytes, seconds beyond the latency)`, where no line explains the points.
    pub transfers: Vec<(u64, f64)>,
}

impl LinkFit {
    /// The relative error of a point from which on a line does not explain it. Medians of repeats
    /// scatter by 2 %; four deviations of that are no accident in a few dozen points.
    pub const LINE_MISSES: f64 = 0.08;

    /// Fewest points: two parameters go through any two.
    pub const FEWEST: usize = 3;

    /// The fit of `(bytes, seconds)` points, in ascending order of the bytes.
    ///
    /// # Errors
    /// [`Error::Fit`]: fewer than three points; bytes that are 0 or do not ascend; seconds that are
    /// not finite and above 0; seconds that do not grow with the bytes.
    pub fn of(points: &[(u64, f64)]) -> Result<Self> {
        check(points)?;
        let line = line(points);
        let miss = |fit: &Self| {
            let misses = points
                .iter()
                .map(|&(bytes, seconds)| (fit.seconds(bytes as f64) / seconds - 1.0).abs());
            misses.fold(0.0, f64::max)
        };
        match line {
            Some(line) if miss(&line) <= Self::LINE_MISSES => Ok(line),
            _ => table(points),
        }
    }

    /// Seconds of a message of `bytes`.
    pub fn seconds(&self, bytes: f64) -> f64 {
        let beyond = transfer_seconds(&self.transfers, bytes);
        self.latency + beyond.unwrap_or(bytes / self.bandwidth)
    }
}

fn check(points: &[(u64, f64)]) -> Result<()> {
    let refuse = |what| Err(Error::Fit { what });
    if points.len() < LinkFit::FEWEST {
        let (given, least) = (points.len(), LinkFit::FEWEST);
        return refuse(format!("{given} sizes of messages: needs at least {least}"));
    }
    let mut before = 0;
    for &(bytes, seconds) in points {
        if bytes <= before {
            return refuse(format!("{bytes} bytes after {before}: must ascend from 1"));
        }
        if !(seconds > 0.0 && seconds.is_finite()) {
            let what = format!("{bytes} bytes in {seconds} seconds: must be finite and above 0");
            return refuse(what);
        }
        before = bytes;
    }
    Ok(())
}

/// The line with the least squares of relative errors; `None` where it does not rise.
fn line(points: &[(u64, f64)]) -> Option<LinkFit> {
    // With u = 1 / seconds and v = bytes / seconds the error of a point is a u + b v - 1. Bytes in
    // units of the largest message keep the equations well conditioned.
    let unit = points.last()?.0 as f64;
    let (mut uu, mut uv, mut vv, mut u1, mut v1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(bytes, seconds) in points {
        let (u, v) = (1.0 / seconds, bytes as f64 / unit / seconds);
        (uu, uv, vv) = (uu + u * u, uv + u * v, vv + v * v);
        (u1, v1) = (u1 + u, v1 + v);
    }
    let determinant = uu * vv - uv * uv;
    let latency = (u1 * vv - v1 * uv) / determinant;
    let latency = if latency.is_finite() { latency.max(0.0) } else { 0.0 };
    // The best slope at this latency.
    let slope = (v1 - latency * uv) / vv / unit;
    let rises = slope > 0.0 && slope.is_finite();
    rises.then(|| LinkFit { latency, bandwidth: 1.0 / slope, transfers: Vec::new() })
}

/// The points themselves, made to ascend.
fn table(points: &[(u64, f64)]) -> Result<LinkFit> {
    let seconds = ascending(points);
    let (first, last) = (points[0], points[points.len() - 1]);
    let (shortest, longest) = (seconds[0], seconds[seconds.len() - 1]);
    if longest <= shortest * (1.0 + 1e-9) {
        return Err(Error::Fit {
            what: format!(
                "{} bytes take no longer than {}: larger messages are needed",
                last.0, first.0
            ),
        });
    }
    // The smallest message takes what its bytes cost at the rate of the largest, and the latency.
    let latency = (shortest - first.0 as f64 / last.0 as f64 * longest).max(0.0);
    let mut transfers: Vec<(u64, f64)> = Vec::with_capacity(points.len());
    for (&(bytes, _), seconds) in points.iter().zip(&seconds) {
        let before = transfers.last().map_or(0.0, |&(_, before)| before);
        // Points that were made equal differ by what nobody can measure.
        transfers.push((bytes, (seconds - latency).max(before * 1.001)));
    }
    let bandwidth = last.0 as f64 / (longest - latency);
    Ok(LinkFit { latency, bandwidth, transfers })
}

/// Seconds that do not fall, with the least sum of absolute differences to those of `points`.
fn ascending(points: &[(u64, f64)]) -> Vec<f64> {
    // Pooled seconds, each pool in ascending order.
    let mut pools: Vec<Vec<f64>> = Vec::with_capacity(points.len());
    for &(_, seconds) in points {
        let mut pool = vec![seconds];
        while let Some(before) = pools.pop_if(|before| middle(before) >= middle(&pool)) {
            pool.extend(before);
            pool.sort_by(f64::total_cmp);
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|pool| std::iter::repeat_n(middle(pool), pool.len())).collect()
}

/// The lower median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}

#[cfg(test)]
mod tests;
