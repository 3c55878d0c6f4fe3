//! Numbers without rows on their way in 16 bits: [`Narrow`].

use super::Format;
use emb_comm::{Collective, Result, Wire};

/// What carries numbers among ranks that are to have the same bits afterwards, and memory for it.
///
/// In [`Wire::F32`] everything goes as it is. Otherwise every rank takes what was on the wire, what it
/// has of its own included: all ranks end with the same bits.
#[derive(Debug, Default)]
pub(crate) struct Narrow {
    format: Format,
    bytes: Bytes,
    /// This rank's share of a sum, of every rank, and the sum.
    shares: Vec<f32>,
    sum: Vec<f32>,
    /// Elements of every rank's share, and those of this one from every rank.
    share_counts: Vec<usize>,
    own_counts: Vec<usize>,
}

/// Messages, and bytes for, and from, every peer.
#[derive(Debug, Default)]
struct Bytes {
    sent: Vec<u8>,
    received: Vec<u8>,
    send_counts: Vec<usize>,
    counts: Vec<usize>,
}

impl Narrow {
    /// In this format from now on.
    pub(crate) fn set(&mut self, format: Format) {
        self.format = format;
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.format.is_exact()
    }

    /// As [`Collective::all_to_all_v`]; what was sent is anything afterwards.
    pub(crate) fn all_to_all<C: Collective>(
        &mut self,
        set: &mut C,
        (send, send_counts): (&mut [f32], &[usize]),
        (recv, recv_counts): (&mut [f32], &[usize]),
    ) -> Result<()> {
        if self.is_exact() {
            return set.all_to_all_v::<f32>(send, send_counts, recv, recv_counts);
        }
        self.format.before(send);
        let wire = self.format.wire;
        self.bytes.exchange(set, wire, (send, send_counts), (recv, recv_counts))?;
        self.format.after(recv);
        Ok(())
    }

    /// As [`Collective::all_gather_v`]; what was sent is anything afterwards.
    pub(crate) fn all_gather<C: Collective>(
        &mut self,
        set: &mut C,
        send: &mut [f32],
        (recv, recv_counts): (&mut [f32], &[usize]),
    ) -> Result<()> {
        if self.is_exact() {
            return set.all_gather_v::<f32>(send, recv, recv_counts);
        }
        self.format.before(send);
        self.bytes.gather(set, self.format.wire, send, (recv, recv_counts))?;
        self.format.after(recv);
        Ok(())
    }

    /// As [`Collective::all_reduce`]: every rank sums a share in `f32`, in rank order, and tells the
    /// sum to all.
    pub(crate) fn all_reduce<C: Collective>(
        &mut self,
        set: &mut C,
        values: &mut [f32],
    ) -> Result<()> {
        if self.is_exact() {
            return set.all_reduce(values);
        }
        let Self { format, bytes, shares, sum, share_counts, own_counts } = self;
        let world = set.world();
        let start = |m: usize| values.len() / world * m + m.min(values.len() % world);
        share_counts.clear();
        share_counts.extend((0..world).map(|m| start(m + 1) - start(m)));
        let share = share_counts[set.rank()];
        own_counts.clear();
        own_counts.resize(world, share);
        shares.resize(share * world, 0.0);
        format.before(values);
        bytes.exchange(set, format.wire, (values, share_counts), (shares, own_counts))?;
        sum.clear();
        sum.extend_from_slice(&shares[..share]);
        for of_rank in shares.chunks_exact(share.max(1)).skip(1) {
            sum.iter_mut().zip(of_rank).for_each(|(sum, value)| *sum += value);
        }
        format.cut(sum);
        bytes.gather(set, format.wire, sum, (values, share_counts))?;
        format.after(values);
        Ok(())
    }
}

impl Bytes {
    fn exchange<C: Collective>(
        &mut self,
        set: &mut C,
        wire: Wire,
        (send, send_counts): (&[f32], &[usize]),
        (recv, recv_counts): (&mut [f32], &[usize]),
    ) -> Result<()> {
        self.encode(wire, send)?;
        in_bytes(&mut self.send_counts, send_counts);
        self.make_room(recv_counts);
        let Self { sent, received, send_counts, counts } = self;
        set.all_to_all_v::<u8>(sent, send_counts, received, counts)?;
        wire.decode(received, 1, recv)
    }

    fn gather<C: Collective>(
        &mut self,
        set: &mut C,
        wire: Wire,
        send: &[f32],
        (recv, recv_counts): (&mut [f32], &[usize]),
    ) -> Result<()> {
        self.encode(wire, send)?;
        self.make_room(recv_counts);
        let Self { sent, received, counts, .. } = self;
        set.all_gather_v::<u8>(sent, received, counts)?;
        wire.decode(received, 1, recv)
    }

    fn encode(&mut self, wire: Wire, values: &[f32]) -> Result<()> {
        self.sent.resize(values.len() * EACH, 0);
        wire.encode(values, 1, &mut self.sent)
    }

    fn make_room(&mut self, counts: &[usize]) {
        in_bytes(&mut self.counts, counts);
        self.received.resize(self.counts.iter().sum(), 0);
    }
}

/// Bytes of a number.
const EACH: usize = 2;

fn in_bytes(all: &mut Vec<usize>, counts: &[usize]) {
    all.clear();
    all.extend(counts.iter().map(|count| count * EACH));
}

#[cfg(test)]
mod tests {
    use super::super::Wires;
    use super::*;
    use emb_comm::{Options, run};
    use emb_shard::{
        Batch, CostModel as _, CostOptions, Layout, LevelSpec, Mesh, PlanBuilder, RankEstimate,
        StepModel, TableSpec, Topology, TopologySpec, UnitRanks, Workload, WorkloadSpec,
    };

    /// Gradients of rank `rank`; few that are the same on all.
    fn values(rank: usize, len: usize) -> Vec<f32> {
        (0..len).map(|k| ((k * 7 + rank * 13) as f32 * 0.61).sin() / 4096.0).collect()
    }

    #[test]
    fn sums_have_the_same_bits_on_all_ranks_and_are_within_the_bound() {
        for (world, len) in [(2, 9), (3, 100), (4, 2)] {
            for wire in [Wire::F32, Wire::F16, Wire::Bf16] {
                let sums = run(world, &Options::default(), |ranks| {
                    let mut narrow = Narrow::default();
                    narrow.set(Wires { dense: wire, batch: 4096, ..Wires::default() }.of_dense());
                    let mut sum = values(ranks.rank(), len);
                    narrow.all_reduce(ranks, &mut sum)?;
                    Ok::<_, emb_comm::Error>(sum)
                });
                let sums = sums.expect("a sum");
                assert!(sums.iter().all(|sum| sum == &sums[0]), "{wire}, {world} ranks");
                for (k, sum) in sums[0].iter().enumerate() {
                    let parts = (0..world).map(|rank| f64::from(values(rank, len)[k]));
                    let apart = (f64::from(*sum) - parts.clone().sum::<f64>()).abs();
                    // Each part is rounded, and the sum once more; both times scaled.
                    let magnitude: f64 = parts.map(f64::abs).sum();
                    let allowed =
                        2.1 * wire.max_error(&[magnitude as f32]) + 1e-6 * magnitude + 1e-10;
                    assert!(apart <= allowed, "{wire}: {apart:e} of {allowed:e}");
                }
            }
        }
    }

    #[test]
    fn dense_sums_take_the_bytes_that_the_cost_model_predicts() {
        const LEN: usize = 240;
        for (world, node_ranks) in [(4, 4), (4, 2), (6, 2)] {
            for (wire, each) in [(Wire::F32, 4), (Wire::F16, 2), (Wire::Bf16, 2)] {
                let options = Options::default().with_ranks_per_node(node_ranks);
                let counted = run(world, &options, |ranks| {
                    let mut narrow = Narrow::default();
                    narrow.set(Wires { dense: wire, ..Wires::default() }.of_dense());
                    narrow.all_reduce(ranks, &mut values(ranks.rank(), LEN))?;
                    let meter = ranks.meters().total();
                    Ok::<_, emb_comm::Error>([meter.intra_node_bytes, meter.inter_node_bytes])
                });
                let expected = predicted(world as u32, node_ranks as u32, LEN as u64 * each);
                for (counted, expected) in counted.expect("a sum").into_iter().zip(expected) {
                    for (counted, expected) in counted.into_iter().zip(expected) {
                        let what = format!("{wire}, {world} ranks, {node_ranks} a node");
                        let apart = (counted as f64 - expected).abs();
                        assert!(apart < 1e-6, "{what}: {expected} predicted, {counted} counted");
                    }
                }
            }
        }
    }

    /// Bytes of every rank in its node and between nodes, of gradients of so many bytes.
    fn predicted(world: u32, node_ranks: u32, gradient_bytes: u64) -> Vec<[f64; 2]> {
        let mut spec = WorkloadSpec::new("dense", Batch::PerRank(1));
        spec.tables.push(TableSpec::new("t", 8, 4));
        spec.dense_model.gradient_bytes = gradient_bytes;
        let workload = Workload::new(spec).expect("a workload");
        let mesh = Mesh::new(world, world, Layout::Strided).expect("a mesh");
        let plan = PlanBuilder::new(mesh).node_ranks(node_ranks).build(workload.tables());
        let level = |name: &str, ranks| LevelSpec {
            name: name.into(),
            ranks: UnitRanks::Equal(ranks),
            bandwidth: 1e9,
            latency: 0.0,
            all_to_all: Vec::new(),
            transfers: Vec::new(),
        };
        let topology = Topology::new(TopologySpec {
            name: "threads".into(),
            ranks: world,
            memory_bytes: 1 << 30,
            memory_bandwidth: 1e9,
            flops: 1e9,
            levels: vec![level("node", node_ranks), level("cluster", world)],
        });
        let model = StepModel { options: CostOptions::of_emb_train() };
        let (plan, topology) = (plan.expect("a plan"), topology.expect("a topology"));
        let estimate = model.estimate(&plan, &workload, &topology).expect("its tables");
        let received = |rank: &RankEstimate| [0, 1].map(|level| rank.dense[level].received);
        assert_eq!(estimate.ranks.len(), world as usize);
        estimate.ranks.iter().map(received).collect()
    }
}
