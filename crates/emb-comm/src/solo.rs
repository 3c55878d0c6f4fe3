//! A run of one rank: [`Solo`].

use crate::arguments::{checked, counted, exchanged, gathered, reduced, same_count};
use crate::{Collective, Element, Error, Result, Sum};

/// The collective of a single rank: exchanges are copies, sums are the values themselves.
///
/// It checks its arguments as a transport between ranks does, so that a run of one rank finds the
/// mistakes that would stop a run of many.
///
/// ```
/// use emb_comm::{Collective, Solo};
///
/// let mut loss = [0.25f64, 8.0];
/// Solo.all_reduce(&mut loss)?;
/// assert_eq!(loss, [0.25, 8.0]);
/// assert!(Solo.broadcast(&mut loss, 1).is_err());
/// # Ok::<(), emb_comm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Solo;

impl Collective for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn world(&self) -> usize {
        1
    }

    fn set_step(&mut self, _step: u64) {}

    fn abort(&self, _reason: &str) {}

    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = "all_to_all_v";
        exchanged(operation, 1, (send.len(), send_counts), (recv.len(), recv_counts))?;
        same_count(operation, 0, 0, send.len(), recv.len())?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn exchange_counts(&mut self, send: &[usize], recv: &mut [usize]) -> Result<()> {
        counted("exchange_counts", 1, send.len(), recv.len())?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn all_reduce<T: Sum>(&mut self, _values: &mut [T]) -> Result<()> {
        Ok(())
    }

    fn all_reduce_max<T: Sum>(&mut self, _values: &mut [T]) -> Result<()> {
        Ok(())
    }

    fn reduce_scatter_v<T: Sum>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        reduced("reduce_scatter_v", (0, 1), send.len(), (recv.len(), Some(counts)))?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn reduce_scatter<T: Sum>(&mut self, send: &[T], recv: &mut [T]) -> Result<()> {
        reduced("reduce_scatter_v", (0, 1), send.len(), (recv.len(), None))?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        gathered("all_gather_v", (0, 1), send.len(), (recv.len(), recv_counts))?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn broadcast<T: Element>(&mut self, _values: &mut [T], root: usize) -> Result<()> {
        if root != 0 {
            return Err(Error::NoSuchRank { operation: "broadcast", rank: root, world: 1 });
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<()> {
        Ok(())
    }

    fn split(&mut self, color: Option<usize>, _key: usize) -> Result<Option<Self>> {
        Ok(color.map(|_| Self))
    }

    fn subgroups(&mut self, groups: &[&[usize]]) -> Result<Option<Self>> {
        checked(1, groups)?;
        Ok((!groups.is_empty()).then_some(Self))
    }

    fn duplicate(&mut self) -> Result<Self> {
        Ok(Self)
    }
}
