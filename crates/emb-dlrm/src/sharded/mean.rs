//! The mean of values over replicas: [`Mean`].

use super::error::Result;
use emb_comm::Collective;
use std::ops::Range;

/// Memory of a mean.
#[derive(Debug, Default)]
pub(super) struct Mean {
    /// Elements sent to every replica: its share.
    sent: Vec<usize>,
    /// Elements received from every replica: this one's share.
    received: Vec<usize>,
    /// This replica's share, from one replica after the other.
    shares: Vec<f32>,
    /// Its mean, before it is told.
    averaged: Vec<f32>,
}

/// Elements averaged at a time.
const BLOCK: usize = 256;

impl Mean {
    /// The mean over the replicas, the same bits on each: every replica takes that of its share.
    pub(super) fn over<C: Collective>(
        &mut self,
        replicas: &mut C,
        mine: &[f32],
        whole: &mut Vec<f32>,
    ) -> Result<()> {
        let (world, rank) = (replicas.world(), replicas.rank());
        let start = |m: usize| mine.len() / world * m + m.min(mine.len() % world);
        let own = start(rank)..start(rank + 1);
        let Self { sent, received, shares, averaged } = self;
        sent.clear();
        sent.extend((0..world).map(|m| start(m + 1) - start(m)));
        received.clear();
        received.resize(world, own.len());
        // At an end of the values the own share need not travel to itself.
        let others = others(&own, mine.len());
        let kept = others.is_some();
        if kept {
            (sent[rank], received[rank]) = (0, 0);
        }
        shares.resize(received.iter().sum(), 0.0);
        let send = others.map_or(mine, |others| &mine[others]);
        replicas.all_to_all_v::<f32>(send, sent, shares, received)?;
        let share_of = |m: usize| {
            if m == rank && kept {
                return &mine[own.clone()];
            }
            let before: usize = received[..m].iter().sum();
            &shares[before..before + own.len()]
        };
        whole.resize(mine.len(), 0.0);
        if world == 2 {
            // Each has one other to tell, so that nothing is told to itself.
            let (low, high) = whole.split_at_mut(start(1));
            let (averaged, told) = if rank == 0 { (low, high) } else { (high, low) };
            mean_of(share_of, world, averaged);
            (sent[1 - rank], received[1 - rank]) = (averaged.len(), told.len());
            return Ok(replicas.all_to_all_v::<f32>(averaged, sent, told, received)?);
        }
        averaged.resize(own.len(), 0.0);
        mean_of(share_of, world, averaged);
        sent[rank] = own.len();
        Ok(replicas.all_gather_v::<f32>(averaged, whole, sent)?)
    }
}

/// What is left of `len` elements without `own`, where that is one range.
fn others(own: &Range<usize>, len: usize) -> Option<Range<usize>> {
    match (own.start, own.end) {
        (0, end) => Some(end..len),
        (start, end) if end == len => Some(0..start),
        _ => None,
    }
}

/// `x0 + sum(x_m - x0) / M` of every element of the shares, in replica order.
fn mean_of<'a>(share_of: impl Fn(usize) -> &'a [f32], replicas: usize, mean: &mut [f32]) {
    let firsts = share_of(0);
    let mut apart = [0.0_f64; BLOCK];
    for (number, mean) in mean.chunks_mut(BLOCK).enumerate() {
        let block = number * BLOCK..number * BLOCK + mean.len();
        let firsts = &firsts[block.clone()];
        let apart = &mut apart[..mean.len()];
        apart.fill(0.0);
        for m in 1..replicas {
            let values = &share_of(m)[block.clone()];
            for ((apart, &value), &first) in apart.iter_mut().zip(values).zip(firsts) {
                *apart += f64::from(value) - f64::from(first);
            }
        }
        for ((mean, &mut apart), &first) in mean.iter_mut().zip(apart).zip(firsts) {
            // Adding 0 would make -0 of equal replicas 0.
            let moved = (f64::from(first) + apart / replicas as f64) as f32;
            *mean = if apart == 0.0 { first } else { moved };
        }
    }
}
