//! One step of the rule for each touched row, over all ranks that have a part in it.
//!
//! Alone, an owner sums and updates in one call. It takes two where replicas add up their gradients
//! first, or where a row-wise rule needs the statistic of a row whose columns others hold.

use super::Class;
use super::error::Result;
use super::layout::Columns;
use super::memory::ListMemory;
use super::pool::Staged;
use super::trip::Arrived;
use emb_comm::Collective;
use emb_kernels::{Backend, Gradients, Mat};

/// Memory of the exchange of statistics.
#[derive(Debug, Default)]
pub(super) struct StatisticsMemory {
    send: Vec<f64>,
    received: Vec<f64>,
    counts: Vec<usize>,
    /// Where each entry of [`Layout::shared`](super::layout::Layout::shared) begins in `received`.
    starts: Vec<usize>,
    /// By stored part, of whole rows.
    totals: Vec<Vec<f64>>,
    lists: ListMemory<&'static [f64]>,
}

impl<B: Backend, C: Collective> Class<B, C> {
    /// Updates the parts stored here from the gradients that were `received`:
    /// `[samples of the group, columns]`.
    pub(super) fn update(
        &mut self,
        backend: &mut B,
        arrived: &Arrived,
        staged: &Staged<B>,
        step: u64,
    ) -> Result<()> {
        for (f, feature) in self.map.features().iter().enumerate() {
            if let Some(touched) = &mut self.touched_since[feature.table] {
                touched.add(arrived.ids_of(f));
            }
        }
        let (rows, cols) = (arrived.total(), self.layout.own().width);
        self.device.fill(backend, &self.received)?;
        let pooled = Mat::new(self.device.view(0..self.received.len()), rows, cols);
        let gradients = Gradients { pooled, sequences: &[] };
        let batch = staged.view(&self.names, arrived);
        let Self { tables, map, rules, touched, .. } = self;
        if !self.sums_gradients && !self.shares_statistics {
            backend.scatter_update(tables, map, batch, &gradients, rules, step)?;
            return Ok(());
        }
        backend.row_gradients(tables, map, batch, &gradients, rules, touched)?;
        if self.sums_gradients {
            self.add_replicas(backend)?;
        }
        let shared = self.share_statistics()?;
        let Self { tables, touched, rules, layout, statistics, .. } = self;
        let mut totals = statistics.lists.take();
        totals.extend(
            (0..layout.stored.len())
                .map(|t| if shared { &statistics.totals[t][..] } else { touched.statistics(t) }),
        );
        backend.apply(tables, touched, &totals, rules, step)?;
        let lists = totals;
        statistics.lists.put(lists);
        Ok(())
    }

    /// The statistics of whole rows, from the owners of all their columns in column order; `false`
    /// where those here are of whole rows.
    fn share_statistics(&mut self) -> Result<bool> {
        let Self { group, layout, touched, statistics, .. } = self;
        let Some(group) = group.as_mut().filter(|_| self.shares_statistics) else {
            return Ok(false);
        };
        let StatisticsMemory { send, received, counts, starts, totals, .. } = statistics;
        send.clear();
        counts.clear();
        starts.clear();
        for with_peer in &layout.shared {
            let begin = send.len();
            for &(t, _) in with_peer {
                starts.push(send.len());
                send.extend_from_slice(touched.statistics(t));
            }
            counts.push(send.len() - begin);
        }
        // Owners of the columns of a row are sent the same ids, so they touch the same rows.
        received.resize(send.len(), 0.0);
        group.all_to_all_v::<f64>(send, counts, received, counts)?;
        totals.resize_with(layout.stored.len(), Vec::new);
        for (t, (total, blocks)) in totals.iter_mut().zip(&layout.statistics).enumerate() {
            let own = touched.statistics(t);
            total.clear();
            for columns in blocks {
                let part = match *columns {
                    Columns::Own => own,
                    Columns::Shared(entry) => &received[starts[entry]..][..own.len()],
                };
                if total.is_empty() {
                    total.extend_from_slice(part);
                } else {
                    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
                }
            }
        }
        Ok(true)
    }
}
