//! Random workloads on random machines with random plans, from a seed.

use emb_shard::{
    Access, Batch, Block, ColRange, CostOptions, DenseModel, DenseTime, Exchange, GradientSum,
    Histogram, IdType, Layout, LevelSpec, Mesh, NodeSplit, Overlap, Owners, Path, Per,
    PlaceOptions, Placement, Plan, PlanBuilder, PlanSpec, Pooling, ReplicaSync, ReplicaWay, RowCut,
    RowMap, RowOrder, RowRange, StateBytes, StepModel, Table, TablePlan, TableSpec, Task, Tier,
    Topology, TopologySpec, UnitRanks, ValueType, Workload, WorkloadSpec,
};
use std::num::NonZeroU32;

/// Random numbers that are the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) model: StepModel,
    pub(crate) workload: Workload,
    pub(crate) topology: Topology,
    pub(crate) plan: Plan,
}

impl Case {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let model = StepModel { options: options(&mut random) };
        let world = random.pick(&[1, 2, 3, 4, 6, 8, 8, 12, 16, 16, 24, 32, 48, 64]);
        let topology = topology(&mut random, world);
        let workload = workload(&mut random, 32);
        let plan = plan(&mut random, &workload, &topology);
        Self { model, workload, topology, plan }
    }

    /// The same with `samples` samples a rank.
    pub(crate) fn with_samples(&self, samples: u64) -> Workload {
        let mut spec = WorkloadSpec::from(self.workload.clone());
        spec.batch = Batch::PerRank(samples);
        Workload::new(spec).expect("a workload")
    }
}

fn options(random: &mut Random) -> CostOptions {
    let sums = [GradientSum::Gathered, GradientSum::Cheapest];
    CostOptions {
        overlap: random.pick(&[Overlap::None, Overlap::Pipelined]),
        gradient_sum: random.pick(&sums),
        replica_way: random.pick(&[ReplicaWay::Rings, ReplicaWay::Direct]),
        count_bytes: random.pick(&[0, 8]),
        memory_efficiency: random.pick(&[1.0, 0.7]),
        link_efficiency: random.pick(&[1.0, 0.6]),
        compute_efficiency: random.pick(&[1.0, 0.4]),
        straggling: random.pick(&[0.0, 0.1]),
    }
}

/// What was measured of a level of this name: of a bent one, messages of kilobytes are slow, those
/// of a megabyte fit into a cache.
pub(crate) fn bent(name: &str) -> Vec<(u64, f64)> {
    match name.strip_prefix("bent ") {
        None => Vec::new(),
        Some(_) => vec![(2_000, 4e-7), (30_000, 2e-6), (1_000_000, 8e-6), (9_000_000, 3e-4)],
    }
}

fn topology(random: &mut Random, world: u32) -> Topology {
    let mut unit_ranks = vec![1; world as usize];
    let mut levels = Vec::new();
    let inner = random.below(3);
    for number in 0..=inner {
        // Runs of units of the level inside, all alike or not.
        let units = unit_ranks.len();
        let even = 1 + random.below(units.min(8));
        let alike = random.below(3) > 0 && units.is_multiple_of(even);
        let (mut merged, mut at) = (Vec::new(), 0);
        while at < units {
            let many = if number == inner {
                units
            } else if alike {
                even
            } else {
                (1 + random.below(8)).min(units - at)
            };
            merged.push(unit_ranks[at..at + many].iter().sum::<u32>());
            at += many;
        }
        unit_ranks = merged;
        let name = format!("{} {number}", random.pick(&["level", "bent"]));
        levels.push(LevelSpec {
            transfers: bent(&name),
            name,
            ranks: UnitRanks::Each(unit_ranks.clone()),
            bandwidth: 1e11 / 7_f64.powi(number as i32),
            latency: 3e-6 * (number + 1) as f64,
            all_to_all: random.pick(&[vec![], vec![(2, 1.0), (40, 0.5)]]),
        });
    }
    Topology::new(TopologySpec {
        name: "random".into(),
        ranks: world,
        memory_bytes: 80_000_000_000,
        memory_bandwidth: 2e12,
        flops: 3e14,
        levels,
    })
    .expect("a topology")
}

pub(crate) fn workload(random: &mut Random, samples: u64) -> Workload {
    let batch = random.pick(&[Batch::PerRank(samples), Batch::Global(1000)]);
    let mut spec = WorkloadSpec::new("random", batch);
    spec.rows = random.pick(&[ValueType::F32, ValueType::F16]);
    spec.ids = random.pick(&[IdType::I32, IdType::I64]);
    spec.length_bytes = random.pick(&[0, 4, 8]);
    spec.outputs = random.pick(&[ValueType::F32, ValueType::Bf16, ValueType::Int8Rowwise]);
    spec.gradients = random.pick(&[None, Some(ValueType::Fp8E5m2), Some(ValueType::Int4)]);
    spec.synced = random.pick(&[None, Some(ValueType::F16)]);
    spec.state = StateBytes { per_row: random.pick(&[0, 4]), per_element: random.pick(&[0, 4, 8]) };
    spec.dense = DenseTime::SecondsPerSample(random.pick(&[0.0, 1e-7]));
    spec.dense_model.gradient_bytes = random.pick(&[0, 5_000_000]);
    spec.dense_model =
        DenseModel { memory_bytes: 7, memory_bytes_per_sample: 3, ..spec.dense_model };
    for number in 0..=random.below(6) {
        let rows = random.pick(&[1, 2, 7, 100, 5_000, 1_000_000]);
        let name = format!("t{number}");
        let features = (0..=random.below(2)).map(|f| format!("{name}f{f}")).collect();
        let counted = (1..=rows.min(60)).map(|row| 1000 / row);
        let access = [
            Access::Uniform,
            Access::Zipf { exponent: 1.05 },
            Access::Histogram(Histogram::of_counts(counted).expect("counts")),
        ];
        spec.tables.push(TableSpec {
            pooling_factor: random.pick(&[0.5, 1.0, 3.0, 20.0]),
            pooling: random.pick(&[Pooling::Sum, Pooling::Mean, Pooling::None]),
            features: Some(features),
            access: Some(random.pick(&access)),
            ..TableSpec::new(name, rows, random.pick(&[1, 2, 5, 16, 64]))
        });
    }
    Workload::new(spec).expect("a workload")
}

fn divisors(world: u32) -> Vec<u32> {
    (1..=world).filter(|&ranks| world.is_multiple_of(ranks)).collect()
}

fn mesh(random: &mut Random, world: u32) -> Mesh {
    let layout = random.pick(&[Layout::Strided, Layout::Contiguous]);
    Mesh::new(world, random.pick(&divisors(world)), layout).expect("divides")
}

/// Any plan: tables as a builder places them, and such that no builder makes.
fn plan(random: &mut Random, workload: &Workload, topology: &Topology) -> Plan {
    let node_ranks = Task::new(workload, topology).node_ranks();
    let world = topology.world();
    // Few meshes, so that tables share them.
    let meshes = [mesh(random, world), mesh(random, world)];
    let mut builder = PlanBuilder::new(meshes[0]).node_ranks(node_ranks);
    let tables = workload.tables();
    for table in tables.tables().as_slice() {
        let mesh = random.pick(&meshes);
        let options = placed(random, table, mesh, node_ranks);
        builder = builder.table(table.name(), options);
    }
    let built = builder.build(tables).expect("a plan");
    let mut plans = built.placed().as_slice().to_vec();
    for (plan, table) in plans.iter_mut().zip(tables.tables().as_slice()) {
        if random.below(2) == 0 {
            *plan = free(random, table, &meshes, node_ranks);
        }
    }
    Plan::new(tables, PlanSpec { world, node_ranks, tables: plans }).expect("a plan")
}

/// Any plan of one group of all ranks.
pub(crate) fn plan_of_one_group(
    random: &mut Random,
    workload: &Workload,
    topology: &Topology,
) -> Plan {
    let node_ranks = Task::new(workload, topology).node_ranks();
    let world = topology.world();
    let mesh = Mesh::new(world, world, Layout::Strided).expect("one group");
    let tables = workload.tables().tables().as_slice().iter();
    let tables = tables.map(|table| free(random, table, &[mesh], node_ranks)).collect();
    Plan::new(workload.tables(), PlanSpec { world, node_ranks, tables }).expect("a plan")
}

fn placed(random: &mut Random, table: &Table, mesh: Mesh, node_ranks: u32) -> PlaceOptions {
    let cut = random.pick(&[RowCut::Ceil, RowCut::Even, RowCut::Modulo]);
    let mut placements = vec![
        Placement::TableWise { owner: None },
        Placement::RowWise { cut },
        Placement::ColumnWise { parts: None },
        Placement::DataParallel,
    ];
    if NodeSplit::new(mesh, node_ranks).expect("nodes").is_some() {
        placements.push(Placement::TableRowWise { cut, node: None });
        placements.push(Placement::Grid { cut, parts: None });
    }
    let placement = random.pick(&placements);
    let group = Some((mesh.group_ranks(), mesh.layout()));
    let mesh = match placement {
        Placement::DataParallel => Mesh::new(mesh.world(), 1, Layout::Strided).expect("one"),
        _ => mesh,
    };
    let exchange = Some(exchange(random, table, mesh, node_ranks));
    PlaceOptions { placement, group, exchange, sync: Some(sync(random, mesh)) }
}

fn exchange(random: &mut Random, table: &Table, mesh: Mesh, node_ranks: u32) -> Exchange {
    if mesh.group_ranks() == 1 {
        return Exchange::Local;
    }
    let mut all = vec![Exchange::Unique { per: Per::Rank }];
    let even = NodeSplit::new(mesh, node_ranks).expect("nodes").is_some();
    if even {
        all.push(Exchange::Unique { per: Per::Node });
    }
    if table.pooling() == Pooling::None {
        all.push(Exchange::Rows);
    } else {
        all.push(Exchange::Reduce { over: Path::Flat });
        if even {
            all.push(Exchange::Reduce { over: Path::Hierarchical });
        }
    }
    random.pick(&all)
}

fn sync(random: &mut Random, mesh: Mesh) -> ReplicaSync {
    if mesh.replicas() == 1 {
        return ReplicaSync::None;
    }
    let every = NonZeroU32::new(random.pick(&[1, 10])).expect("a period");
    random.pick(&[
        ReplicaSync::Weights { every },
        ReplicaSync::TouchedRows { every },
        ReplicaSync::Gradients,
        ReplicaSync::FullyShardedReplicas,
    ])
}

/// Tiers, columns and owners anywhere.
fn free(random: &mut Random, table: &Table, meshes: &[Mesh], node_ranks: u32) -> TablePlan {
    let rows = table.rows();
    let count = 1 + random.below(3.min(rows as usize)) as u64;
    let order = (rows <= 100 && random.below(3) == 0)
        .then(|| RowOrder::new((0..rows).rev().collect()).expect("an order"));
    let tiers = (0..count).map(|number| {
        let range = RowRange::new(rows * number / count, rows * (number + 1) / count);
        let (rows, mesh) = (range.expect("ascends"), random.pick(meshes));
        Tier {
            rows,
            mesh,
            exchange: exchange(random, table, mesh, node_ranks),
            sync: sync(random, mesh),
            blocks: blocks(random, table.dim(), rows.rows(), mesh),
        }
    });
    TablePlan { table: table.name().to_owned(), tiers: tiers.collect(), order }
}

fn blocks(random: &mut Random, dim: usize, rows: u64, mesh: Mesh) -> Vec<Block> {
    let count = 1 + random.below(dim.min(3));
    let mut blocks = Vec::new();
    let parts = 1 + random.below(mesh.group_ranks() as usize);
    for number in 0..count {
        let columns = ColRange::new(dim * number / count, dim * (number + 1) / count);
        let map = match random.below(4) {
            0 => RowMap::ceil(rows, parts),
            1 => RowMap::even(rows, parts),
            2 => RowMap::modulo(rows, parts),
            _ if rows > 100 => RowMap::even(rows, parts),
            _ => RowMap::permuted(
                (0..rows).rev().collect(),
                RowMap::modulo(rows, parts).expect("owners"),
            ),
        };
        let mut positions: Vec<u32> = (0..mesh.group_ranks()).collect();
        random.shuffle(&mut positions);
        let (columns, map) = (columns.expect("ascends"), map.expect("owners"));
        blocks.push(Block { columns, map, owners: Owners::list(&positions[..parts]) });
    }
    blocks
}
