//! The mean of values over replicas: [`Mean`].

use super::error::Result;
use super::wire::Narrow;
use emb_comm::Collective;

/// Memory of a mean.
#[derive(Debug, Default)]
pub(super) struct Mean {
    /// Elements sent to every replica.
    sent: Vec<usize>,
    /// Elements received from every replica.
    received: Vec<usize>,
    /// This replica's share of the values, from one replica after the other.
    shares: Vec<f32>,
    /// Its mean.
    averaged: Vec<f32>,
}

/// Elements averaged at a time.
const BLOCK: usize = 256;

impl Mean {
    /// `x0 + sum(x_m - x0) / M` over the replicas, in their order, the same bits on each: one
    /// collective between two of them, else two.
    pub(super) fn over<C: Collective>(
        &mut self,
        replicas: &mut C,
        mine: &[f32],
        whole: &mut Vec<f32>,
    ) -> Result<()> {
        whole.resize(mine.len(), 0.0);
        match replicas.world() {
            2 => self.of_two(replicas, mine, whole),
            world => self.of_shares(replicas, world, mine, whole),
        }
    }

    /// The same of values that travel in 16 bits, `mine` in `values[0]` and the mean in `values[1]`:
    /// of what was on the wire, so that all replicas have the same.
    pub(super) fn over_narrow<C: Collective>(
        &mut self,
        replicas: &mut C,
        narrow: &mut Narrow,
        [mine, whole]: &mut [Vec<f32>; 2],
    ) -> Result<()> {
        let (world, rank) = (replicas.world(), replicas.rank());
        whole.resize(mine.len(), 0.0);
        let Self { sent, received, shares, averaged } = self;
        sent.clear();
        received.clear();
        if world == 2 {
            sent.resize(2, mine.len());
            shares.resize(2 * mine.len(), 0.0);
            narrow.all_gather(replicas, mine, (shares, sent))?;
            let (first, second) = shares.split_at(mine.len());
            let pairs = whole.iter_mut().zip(first).zip(second);
            pairs.for_each(|((mean, &a), &b)| *mean = mean_of_two(a, b));
            return Ok(());
        }
        let start = |m: usize| mine.len() / world * m + m.min(mine.len() % world);
        sent.extend((0..world).map(|m| start(m + 1) - start(m)));
        let share = sent[rank];
        received.resize(world, share);
        shares.resize(share * world, 0.0);
        narrow.all_to_all(replicas, (mine, sent), (shares, received))?;
        averaged.resize(share, 0.0);
        let blocks = averaged.chunks_mut(BLOCK).enumerate();
        blocks.for_each(|(block, mean)| mean_of(shares, share, block * BLOCK, mean));
        Ok(narrow.all_gather(replicas, averaged, (whole, sent))?)
    }

    /// Each tells the other all: as many bytes as in shares.
    fn of_two<C: Collective>(
        &mut self,
        replicas: &mut C,
        mine: &[f32],
        whole: &mut [f32],
    ) -> Result<()> {
        let rank = replicas.rank();
        self.sent.clear();
        self.sent.resize(2, 0);
        self.sent[1 - rank] = mine.len();
        replicas.all_to_all_v::<f32>(mine, &self.sent, whole, &self.sent)?;
        if rank == 0 {
            mine.iter().zip(whole).for_each(|(&a, b)| *b = mean_of_two(a, *b));
        } else {
            whole.iter_mut().zip(mine).for_each(|(a, &b)| *a = mean_of_two(*a, b));
        }
        Ok(())
    }

    /// Every replica takes the mean of its share, and tells it to all.
    fn of_shares<C: Collective>(
        &mut self,
        replicas: &mut C,
        world: usize,
        mine: &[f32],
        whole: &mut [f32],
    ) -> Result<()> {
        let start = |m: usize| mine.len() / world * m + m.min(mine.len() % world);
        let Self { sent, received, shares, averaged } = self;
        sent.clear();
        sent.extend((0..world).map(|m| start(m + 1) - start(m)));
        let share = sent[replicas.rank()];
        received.clear();
        received.resize(world, share);
        shares.resize(share * world, 0.0);
        replicas.all_to_all_v::<f32>(mine, sent, shares, received)?;
        averaged.resize(share, 0.0);
        let blocks = averaged.chunks_mut(BLOCK).enumerate();
        blocks.for_each(|(block, mean)| mean_of(shares, share, block * BLOCK, mean));
        Ok(replicas.all_gather_v::<f32>(averaged, whole, sent)?)
    }
}

/// The mean of elements `first..` of every share of `all`.
fn mean_of(all: &[f32], share: usize, first: usize, mean: &mut [f32]) {
    let mut apart = [0.0_f64; BLOCK];
    let firsts = &all[first..first + mean.len()];
    let replicas = all.len() / share;
    for m in 1..replicas {
        let values = &all[m * share + first..][..mean.len()];
        for ((apart, &value), &first) in apart.iter_mut().zip(values).zip(firsts) {
            *apart += f64::from(value) - f64::from(first);
        }
    }
    for ((mean, apart), &first) in mean.iter_mut().zip(apart).zip(firsts) {
        *mean = moved(first, apart, replicas as f64);
    }
}

fn mean_of_two(first: f32, second: f32) -> f32 {
    moved(first, f64::from(second) - f64::from(first), 2.0)
}

/// `first + apart / replicas`.
fn moved(first: f32, apart: f64, replicas: f64) -> f32 {
    // Adding 0 would make -0 of equal replicas 0.
    if apart == 0.0 { first } else { (f64::from(first) + apart / replicas) as f32 }
}
