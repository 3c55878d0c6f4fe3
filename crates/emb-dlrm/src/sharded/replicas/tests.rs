//! Sums over replicas, on every way.

use super::*;
use emb_comm::{Options, run};
use emb_kernels::{Cpu, CpuOptions, Dtype, Feature, Jagged, Pooling};
use emb_optim::{Optimizer, RuleKind};

const SYNCS: [ReplicaSync; 4] =
    [ReplicaSync::Gradients, ReplicaSync::None, ReplicaSync::Gradients, ReplicaSync::Gradients];

fn specs() -> Vec<TableSpec> {
    let rule = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let of = |(t, (rows, dim))| TableSpec::new(format!("t{t}"), rows, dim, rule);
    [(50, 3), (9, 1), (1, 8), (70, 64)].into_iter().enumerate().map(of).collect()
}

fn below(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// Rows, bits of sums and statistics of every table.
type Sums = Vec<(Vec<u64>, Vec<u32>, Vec<u64>)>;

fn bits(gradients: &RowGradients) -> Sums {
    let of = |t| {
        let sums = gradients.sums(t).iter().map(|sum| sum.to_bits()).collect();
        let statistics = gradients.statistics(t).iter().map(|sum| sum.to_bits()).collect();
        (gradients.rows(t).to_vec(), sums, statistics)
    };
    (0..SYNCS.len()).map(of).collect()
}

/// What each of `replicas` replicas has of its own, and what all of them sum up to.
fn sums(replicas: usize, way: impl Fn(&Part, &[u64]) -> Way + Sync) -> Vec<[Sums; 2]> {
    let ranks = run(replicas, &Options::default(), |world| {
        let specs = specs();
        let mut cpu = Cpu::new(CpuOptions { threads: 1 })?;
        let mut tables = cpu.create_tables(&specs, 3)?;
        let by_row = specs.iter().enumerate().map(|(table, spec)| Feature {
            name: spec.name.clone(),
            table,
            pooling: Pooling::None,
        });
        let map = FeatureMap::new(by_row.collect(), &specs, 0)?;
        let rules: Vec<Rule> = specs.iter().map(|spec| spec.optimizer.rule(0.1, 1)).collect();
        let mut summed = SummedReplicas::<Cpu>::new(&SYNCS, &specs);
        let mut state = world.rank() as u64;
        let mut found = Vec::new();
        // More rows in the second step than in the first, none in the third on some replicas.
        for step in 0..3 {
            let (mut lens, mut ids, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for spec in &specs {
                let many = (world.rank() + step) % 3 * (10 + 40 * step);
                lens.push(many as i64);
                ids.extend((0..many).map(|_| below(&mut state, spec.rows) as i64));
                // Sums of exactly 0 as well, of both signs.
                let value = |_| [0.0, -0.0, 1.0, -1.0, 1.0e-3, 0.7][below(&mut state, 6) as usize];
                values.push((0..many * spec.dim).map(value).collect::<Vec<f32>>());
            }
            let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
            let batch = Jagged::from_lengths(&names, 1, &lens, ids, None)?;
            let parts = values.iter().zip(&specs).enumerate();
            let sequences: Vec<_> = parts
                .map(|(t, (values, spec))| {
                    (t, Mat::new(&values[..], values.len() / spec.dim, spec.dim))
                })
                .collect();
            let gradients = Gradients { pooled: Mat::new(&[][..], 1, 0), sequences: &sequences };
            let batch = batch.as_ref().view::<Cpu>();
            let mut own = RowGradients::new();
            cpu.row_gradients(&mut tables, &map, batch, &gradients, &rules, &mut own)?;
            summed.bring(world, &own, &way)?;
            summed.merge(&mut cpu, (&mut tables, &map), &rules)?;
            found.push([bits(&own), bits(&summed.merged)]);
        }
        Ok::<_, super::super::Error>(found)
    });
    ranks.unwrap_or_else(|failure| panic!("{failure}")).into_iter().flatten().collect()
}

#[test]
fn every_way_gives_the_same_bits_on_every_replica() {
    assert_eq!(specs()[0].dtype, Dtype::F32);
    for replicas in [2, 3, 4, 8] {
        let gathered = sums(replicas, |_, _| Way::Gathered);
        for (step, of_step) in gathered.iter().enumerate() {
            // Those of replica 0, but for the table that sums nothing.
            let [own, all] = of_step;
            let [_, first] = &gathered[step % 3];
            assert_eq!(all[1], own[1]);
            assert_eq!([&all[0], &all[2], &all[3]], [&first[0], &first[2], &first[3]]);
        }
        assert_eq!(gathered, sums(replicas, |_, _| Way::Scattered), "{replicas} replicas");
        assert_eq!(gathered, sums(replicas, |_, _| Way::Dense), "{replicas} replicas");
        let mixed = |part: &Part, _: &[u64]| match part.table {
            0 => Way::Dense,
            2 => Way::Gathered,
            _ => Way::Scattered,
        };
        assert_eq!(gathered, sums(replicas, mixed), "{replicas} replicas");
        assert_eq!(gathered, sums(replicas, Part::cheapest), "{replicas} replicas");
    }
}
