//! A run of one rank: [`Solo`].

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

    fn all_to_all_v<T: Element>(
        &mut self,
        send: &[T],
        send_counts: &[usize],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = "all_to_all_v";
        let sent = only_count(operation, "send_counts", send_counts)?;
        let expected = only_count(operation, "recv_counts", recv_counts)?;
        same_length(operation, "send", sent, send.len())?;
        same_length(operation, "recv", expected, recv.len())?;
        same_count(operation, sent, expected)?;
        recv.copy_from_slice(send);
        Ok(())
    }

    fn all_reduce<T: Sum>(&mut self, _values: &mut [T]) -> Result<()> {
        Ok(())
    }

    fn all_gather_v<T: Element>(
        &mut self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
    ) -> Result<()> {
        let operation = "all_gather_v";
        let expected = only_count(operation, "recv_counts", recv_counts)?;
        same_length(operation, "recv", expected, recv.len())?;
        same_count(operation, send.len(), expected)?;
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
}

fn only_count(operation: &'static str, what: &'static str, counts: &[usize]) -> Result<usize> {
    match counts {
        [count] => Ok(*count),
        _ => Err(Error::Length { operation, what, expected: 1, got: counts.len() }),
    }
}

fn same_length(
    operation: &'static str,
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Length { operation, what, expected, got }) }
}

fn same_count(operation: &'static str, sent: usize, expected: usize) -> Result<()> {
    if sent == expected {
        Ok(())
    } else {
        Err(Error::Counts { operation, from: 0, to: 0, sent, expected })
    }
}
