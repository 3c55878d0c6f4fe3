//! Whether ranks that each read the data themselves read the same: [`Reads`].
//!
//! A rank whose file is another, or shorter, must be noticed before its samples are trained on, or the
//! others wait for it in vain. A digest of what each has read goes along with the sum of the loss: the
//! sum of numbers and the sum of their squares tell whether all are equal (Cauchy and Schwarz), so
//! that all ranks find the same.

use super::names::names;
use crate::{Error, Result};
use emb_comm::Collective;

/// Bits of a digest that are compared in a step: sums over 2^12 ranks and their squares stay whole
/// numbers of an `f64`. All of the digest is behind each mark anew, so what escapes one step, once in
/// a million, shows in the next.
const BITS: u32 = 20;

/// The number by which a digest goes into the sums.
pub(super) fn mark(seen: u64) -> f64 {
    (seen >> (64 - BITS)) as f64
}

/// Whether the marks of `world` ranks are equal, by their sum and the sum of their squares.
pub(super) fn are_equal(world: usize, sum: f64, squares: f64) -> bool {
    let (sum, squares) = (sum as u128, squares as u128);
    world as u128 * squares == sum * sum
}

/// What a rank knows of data that every rank reads for itself.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// The host of every rank; empty where ranks are no processes.
    hosts: Vec<String>,
    /// What tells all that was read from other data; 0 where nobody compares.
    pub(super) seen: u64,
    /// Samples of the pass over the data that this covers.
    rows: u64,
    /// Why this rank can't read on.
    trouble: Option<String>,
}

impl Reads {
    /// Of ranks on these hosts.
    #[cfg(feature = "data")]
    pub(super) fn among(hosts: &[String]) -> Self {
        Self { hosts: hosts.to_vec(), ..Self::default() }
    }

    /// Whether each rank is a process.
    #[cfg(feature = "data")]
    pub(super) fn of_processes(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The first `rows` samples, all together, are told from others by `seen`; what follows is in
    /// `trouble`.
    #[cfg(feature = "data")]
    pub(super) fn note(&mut self, seen: u64, rows: u64, trouble: Option<&crate::data::Error>) {
        (self.seen, self.rows) = (seen, rows);
        self.trouble = trouble.map(ToString::to_string);
    }

    /// Refuses ranks that have not read the same, where they compare it. Every rank calls it.
    ///
    /// # Errors
    /// As [`differ`](Self::differ); a peer that fails.
    #[cfg(feature = "data")]
    pub(super) fn compare<C: Collective>(&self, ranks: &mut C, when: &str) -> Result<()> {
        if self.seen == 0 {
            return Ok(());
        }
        let mark = mark(self.seen);
        let mut sums = [mark, mark * mark];
        ranks.all_reduce(&mut sums)?;
        if are_equal(ranks.world(), sums[0], sums[1]) {
            return Ok(());
        }
        Err(self.differ(ranks, when)?)
    }

    /// Finds out which ranks read other data than most, or can't read on. Every rank calls it.
    ///
    /// # Errors
    /// A peer that fails. Where ranks can't read on, it is for them to say why: the others wait until
    /// they do.
    pub(super) fn differ<C: Collective>(&self, ranks: &mut C, when: &str) -> Result<Error> {
        let world = ranks.world();
        let mut all = vec![0; 2 * world];
        let own = [self.seen, u64::from(self.trouble.is_some())];
        ranks.all_gather_v::<u64>(&own, &mut all, &vec![2; world])?;
        let stuck = |&rank: &usize| all[2 * rank + 1] != 0;
        let (stuck, others): (Vec<usize>, Vec<usize>) = (0..world).partition(stuck);
        if let Some(what) = &self.trouble {
            let what = format!("{when}: {what}");
            return Ok(Error::OnlyHere { what, others: names(&others, &self.hosts) });
        }
        if !stuck.is_empty() {
            ranks.barrier()?;
        }
        let seen: Vec<u64> = all.chunks_exact(2).map(|own| own[0]).collect();
        Ok(Error::Config(format!("{when}: {}", explain(&seen, self.rows, &self.hosts))))
    }
}

fn explain(all: &[u64], rows: u64, hosts: &[String]) -> String {
    let count = |seen: &u64| all.iter().filter(|other| *other == seen).count();
    // Of equally many, those with the first rank count as right.
    let most = all.iter().rev().max_by_key(|seen| count(seen)).copied();
    let is_most = |&rank: &usize| Some(all[rank]) == most;
    let (right, wrong): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(is_most);
    let verb = if wrong.len() == 1 { "has" } else { "have" };
    format!(
        "{} {verb} other data than {}: among the first {rows} samples are others, or fewer; compare the \
         files, for example with sha256sum",
        names(&wrong, hosts),
        names(&right, hosts)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(marks: &[f64]) -> bool {
        let squares = marks.iter().map(|mark| mark * mark).sum();
        are_equal(marks.len(), marks.iter().sum(), squares)
    }

    #[test]
    fn sums_tell_whether_all_are_equal_even_the_largest() {
        let largest = mark(u64::MAX);
        assert!(compared(&[0.0; 3]) && compared(&[largest; 4096]));
        let mut one_off = [largest; 4096];
        one_off[77] -= 1.0;
        assert!(!compared(&one_off) && !compared(&[5.0, 6.0, 4.0, 5.0]));
    }

    #[test]
    fn the_few_are_named() {
        let says = |all: &[u64]| explain(all, 80, &[]).split(':').next().map(str::to_owned);
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(says(&[7, 7, 8, 7]), said("rank 2 has other data than ranks 0, 1 and 3"));
        assert_eq!(says(&[7, 8]), said("rank 1 has other data than rank 0"));
        assert_eq!(says(&[1, 2, 3]), said("ranks 1 and 2 have other data than rank 0"));
    }
}
