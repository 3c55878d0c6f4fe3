//! Three hosts: network namespaces with an address and a name each, over which processes exchange
//! as over machines.

use crate::support::{
    Folder, assert_equal, criteo, run, small, threads as threads_of, with, words,
};
use emb_dlrm::config::{Config, Options};
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Path, Plan, PlanSpec, ReplicaSync, RowMap,
    RowRange, TablePlan, Tier,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/hosts.sh");

/// Every table cut by rows over six ranks on three nodes, sums taken by node.
fn by_node(options: Options) -> Plan {
    let config = Config::resolve(options).expect("consistent");
    let tables = config.planned_tables().expect("tables");
    let mesh = Mesh::new(6, 6, Layout::Contiguous).expect("a mesh");
    let placed = tables.tables().as_slice().iter().map(|table| {
        let rows = RowRange::new(0, table.rows()).expect("rows");
        let block = Block {
            columns: ColRange::new(0, table.dim()).expect("columns"),
            map: RowMap::even(table.rows(), 6).expect("a map"),
            owners: Owners::span(0, 6),
        };
        let exchange = Exchange::Reduce { over: Path::Hierarchical };
        let tier = Tier { rows, mesh, exchange, sync: ReplicaSync::None, blocks: vec![block] };
        TablePlan { table: table.name().into(), order: None, tiers: vec![tier] }
    });
    let spec = PlanSpec { world: 6, node_ranks: 2, tables: placed.collect() };
    Plan::new(&tables, spec).expect("a plan")
}

#[test]
fn three_hosts_train_as_threads_do_in_one_dimension_and_two() {
    let (Some(train), Some(dev)) = (criteo("train"), criteo("dev")) else { return };
    let folder = Folder::new();
    let base = with(&small(), &format!("--data {train} --eval {dev} --batch-size 250"));
    let options = Options {
        data: vec![train.into()],
        rows_per_table: Some(1000),
        dim: Some(4),
        ..Options::default()
    };
    let plan = folder.file("plan.json", &by_node(options).to_file().to_string());
    for (case, plan) in [
        ("flat", "--plan row-wise".to_owned()),
        ("by-node", format!("--plan {plan}")),
        ("2d", "--plan row-wise --replicas 3 --layout contiguous".to_owned()),
    ] {
        let [by_hosts, by_threads] =
            ["hosts", "threads"].map(|name| folder.path(&format!("{case}-{name}")));
        let base = with(&base, &plan);
        let ranks = with(&base, &format!("--save {by_hosts} --transport mpi --threads-per-rank 1"));
        let program = words(&format!("2 {}", env!("CARGO_BIN_EXE_emb")));
        let hosts = run(SCRIPT, &[program, ranks].concat());
        if hosts.output.status.code() == Some(77) {
            eprintln!("skipped: {}", hosts.errors().trim());
            return;
        }
        let report = hosts.report();
        let errors = hosts.errors();
        assert!(errors.contains("6 ranks in nodes of 2"), "{errors}");
        let nodes = if case == "by-node" { "" } else { " --nodes 3" };
        let threads = with(&base, &format!("--save {by_threads}{nodes}"));
        let threads = threads_of(6, &threads).report();
        let between = report["exchange"]["inter_node_bytes_per_step"].as_f64();
        assert!(between > Some(0.0) || case == "2d", "{case}: {report}");
        let equal = assert_equal(case, (&report, &by_hosts), (&threads, &by_threads));
        eprintln!(
            "three hosts, {case}: {}, {:.1} KiB between nodes a step, {:.1} s",
            if equal { "bit by bit" } else { "within 1e-5" },
            between.unwrap_or(0.0) / 1024.0,
            hosts.seconds
        );
    }
}
