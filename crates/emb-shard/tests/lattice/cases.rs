//! Workloads and machines drawn from a counter.

use emb_shard::{
    Access, Batch, LevelSpec, TableSpec, Topology, TopologySpec, UnitRanks, ValueType, Workload,
    WorkloadSpec,
};

/// `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..count`.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    /// In `low..high`, even on a logarithmic scale.
    pub(crate) fn scale(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (low.ln() + unit * (high.ln() - low.ln())).exp()
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

pub(crate) fn workload(draws: &mut Draws, tables: u64) -> Workload {
    let mut spec = WorkloadSpec::new("drawn", Batch::PerRank(draws.scale(16.0, 4096.0) as u64));
    spec.outputs = draws.one_of(&[ValueType::F32, ValueType::Bf16]);
    spec.state.per_row = draws.one_of(&[0, 4]);
    for number in 0..tables {
        let dim = draws.one_of(&[8, 16, 32, 64, 128]);
        let mut table = TableSpec::new(format!("t{number}"), draws.scale(4.0, 2e6) as u64, dim);
        table.pooling_factor = draws.scale(1.0, 60.0);
        table.access = Some(match draws.below(3) {
            0 => Access::Uniform,
            _ => Access::Zipf { exponent: draws.scale(0.5, 1.4) },
        });
        spec.tables.push(table);
    }
    Workload::new(spec).expect("a workload")
}

/// Machines of `nodes`, the ranks of each.
pub(crate) fn topology(draws: &mut Draws, nodes: &[u32], memory_bytes: u64) -> Topology {
    let ranks = nodes.iter().sum();
    let bandwidth = draws.scale(1e10, 6e11);
    let level = |name: &str, units, bandwidth, latency| LevelSpec {
        name: name.into(),
        ranks: units,
        bandwidth,
        latency,
        all_to_all: Vec::new(),
        transfers: Vec::new(),
    };
    let mut levels = vec![level("node", UnitRanks::Each(nodes.to_vec()), bandwidth, 3e-6)];
    if nodes.len() > 1 {
        let slower = bandwidth / draws.scale(1.0, 20.0);
        levels.push(level("cluster", UnitRanks::Equal(ranks), slower, 1e-5));
    }
    Topology::new(TopologySpec {
        name: "drawn".into(),
        ranks,
        memory_bytes,
        memory_bandwidth: draws.scale(2e11, 3e12),
        flops: 1e14,
        levels,
    })
    .expect("machines")
}
