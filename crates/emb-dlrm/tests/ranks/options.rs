//! Options of ranks without effect, out of range or at odds: refused by name.

use crate::support::{Folder, options as small_options, table};
use emb_dlrm::config::{
    Config, IdWireKind, LayoutKind, ModelKind, OptimizerKind, Options, PlacementKind, ScalingKind,
    SyncKind,
};

/// Tables of more than the 64 KiB that plan `auto` stores everywhere.
fn base() -> Options {
    Options {
        table: Vec::new(),
        feature: Vec::new(),
        ..small_options("synthetic".as_ref(), ModelKind::Dlrm)
    }
}

fn on(world: u32) -> Options {
    Options { world: Some(world), ..base() }
}

#[track_caller]
fn refused(options: Options, words: &[&str]) {
    let error = match Config::resolve(options) {
        Ok(_) => panic!("accepted, where {words:?} was expected"),
        Err(error @ emb_dlrm::Error::Config(_)) => error.to_string(),
        Err(error) => panic!("not a refusal of options: {error:?}"),
    };
    for word in words {
        assert!(error.contains(word), "{word:?} is missing from: {error}");
    }
}

#[track_caller]
fn accepted(options: Options) -> Config {
    Config::resolve(options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn counts_out_of_range() {
    refused(on(0), &["--world is 0", "1 to 1024"]);
    refused(on(1025), &["--world is 1025", "1 to 1024"]);
    refused(Options { replicas: Some(2), ..on(3) }, &["--replicas is 2", "3 ranks"]);
    refused(Options { replicas: Some(0), ..on(4) }, &["--replicas is 0"]);
    refused(Options { replicas: Some(8), ..on(4) }, &["--replicas is 8", "4 ranks"]);
    refused(Options { nodes: Some(3), ..on(4) }, &["--nodes is 3", "4 ranks"]);
    refused(Options { nodes: Some(0), ..on(4) }, &["--nodes is 0"]);
    refused(Options { sync_every: Some(0), replicas: Some(2), ..on(4) }, &["--sync-every is 0"]);
    refused(Options { threads_per_rank: Some(0), ..on(2) }, &["--threads-per-rank is 0"]);
    for timeout in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        refused(Options { timeout: Some(timeout), ..on(2) }, &["--timeout"]);
    }
}

#[test]
fn options_of_ranks_on_one_rank() {
    let cases: [(&str, Options); 12] = [
        ("--nodes", Options { nodes: Some(2), ..base() }),
        ("--plan", Options { plan: Some("auto".into()), ..base() }),
        ("--planner", Options { planner: Some("lattice".into()), ..base() }),
        ("--topology", Options { topology: Some("cpu:1".into()), ..base() }),
        ("--replicas", Options { replicas: Some(2), ..base() }),
        ("--layout", Options { layout: Some(LayoutKind::Strided), ..base() }),
        ("--sync", Options { sync: Some(SyncKind::Weights), ..base() }),
        ("--sync-every", Options { sync_every: Some(2), ..base() }),
        ("--id-wire", Options { id_wire: Some(IdWireKind::Packed), ..base() }),
        ("--replica-scaling", Options { replica_scaling: Some(ScalingKind::None), ..base() }),
        ("--timeout", Options { timeout: Some(5.0), ..base() }),
        ("--health", Options { health: Some(10), ..base() }),
    ];
    for (name, options) in cases {
        for world in [None, Some(1)] {
            let options = Options { world, ..options.clone() };
            refused(options, &[name, "no effect on one rank", "--world 2"]);
        }
    }
    let mut placed = small_options("synthetic".as_ref(), ModelKind::Dlrm);
    placed.table[1].placement = Some(PlacementKind::RowWise);
    refused(placed, &["\"C2\"", "placement", "--world 2"]);
}

#[test]
fn options_of_one_rank_on_many() {
    refused(Options { threads: Some(2), ..on(2) }, &["--threads", "--threads-per-rank"]);
    let both = Options { threads: Some(2), threads_per_rank: Some(2), ..base() };
    refused(both, &["--threads", "--threads-per-rank", "one"]);
    assert_eq!(accepted(Options { threads_per_rank: Some(3), ..on(2) }).threads, 3);
}

#[test]
fn plans() {
    let plan = |plan: &str| Options { plan: Some(plan.into()), ..on(2) };
    refused(plan("rowwise"), &["rowwise", "did you mean row-wise"]);
    refused(plan("table_wise"), &["table_wise", "did you mean table-wise"]);
    refused(plan("atuo"), &["did you mean auto"]);
    let error = Config::resolve(plan("missing.json")).expect_err("no such file").to_string();
    assert!(error.contains("missing.json"), "{error}");
    let folder = Folder::new();
    let file = folder.file("plan.json", "{\"world\": 2");
    refused(plan(&file.display().to_string()), &["plan.json", "line 1"]);
}

#[test]
fn a_plan_file_says_everything_about_places() {
    let folder = Folder::new();
    let made = accepted(Options { plan: Some("row-wise".into()), ..on(4) }).ranks.expect("ranks");
    let text = serde_json::to_string(&made.plan.to_file()).expect("JSON");
    let file = folder.file("plan.json", &text).display().to_string();
    let with = |world| Options { plan: Some(file.clone()), ..on(world) };
    let read = accepted(with(4)).ranks.expect("ranks");
    assert_eq!(read.plan, made.plan);
    refused(with(2), &["plan.json", "4 ranks", "--world is 2"]);
    refused(Options { replicas: Some(2), ..with(4) }, &["--replicas", "plan file"]);
    refused(Options { sync_every: Some(2), ..with(4) }, &["--sync-every", "plan file"]);
    let layout = Some(LayoutKind::Contiguous);
    refused(Options { layout, ..with(4) }, &["--layout", "plan file"]);
    refused(Options { sync: Some(SyncKind::Weights), ..with(4) }, &["--sync", "plan file"]);
    for rule in [ScalingKind::Moment, ScalingKind::Exact] {
        let replica_scaling = Some(rule);
        refused(Options { replica_scaling, ..with(4) }, &["--replica-scaling", "no effect"]);
    }
    // For other tables.
    let other = Options { rows_per_table: Some(7), ..with(4) };
    refused(other, &["plan.json", "C1"]);
    let mut placed = Options { table: vec![table("C1", 50, 4)], ..with(4) };
    placed.table[0].placement = Some(PlacementKind::TableWise);
    refused(placed, &["\"C1\"", "plan file"]);
}

#[test]
fn syncs_at_odds() {
    let two = || Options { replicas: Some(2), ..on(4) };
    let gradients = Some(SyncKind::Gradients);
    let words = ["--sync-every", "every step"];
    refused(Options { sync: gradients, sync_every: Some(2), ..two() }, &words);
    let exact = Some(ScalingKind::Exact);
    let weights = Some(SyncKind::Weights);
    let words = ["--replica-scaling exact", "--sync gradients"];
    refused(Options { replica_scaling: exact, sync: weights, ..two() }, &words);
    for rule in [ScalingKind::None, ScalingKind::Moment, ScalingKind::Lr, ScalingKind::History] {
        let options = Options { replica_scaling: Some(rule), sync: gradients, ..two() };
        refused(options, &["--replica-scaling", &rule.to_string()]);
    }
    accepted(Options { replica_scaling: exact, ..two() });
    let history = Some(ScalingKind::History);
    let optimizer = Some(OptimizerKind::Adam);
    let dense_optimizer = None;
    let options = Options { replica_scaling: history, optimizer, dense_optimizer, ..two() };
    refused(options, &["history"]);
}

#[test]
fn options_of_replicas_without_replicas() {
    let cases: [(&str, Options); 4] = [
        ("--layout", Options { layout: Some(LayoutKind::Contiguous), ..on(4) }),
        ("--sync ", Options { sync: Some(SyncKind::Weights), ..on(4) }),
        ("--sync-every", Options { sync_every: Some(2), ..on(4) }),
        ("--replica-scaling", Options { replica_scaling: Some(ScalingKind::Lr), ..on(4) }),
    ];
    for (name, options) in cases {
        for replicas in [None, Some(1)] {
            refused(Options { replicas, ..options.clone() }, &[name, "--replicas 2"]);
        }
    }
}

#[test]
fn options_of_replicas_that_play_no_part() {
    let everywhere = || Options { plan: Some("data-parallel".into()), ..on(4) };
    refused(Options { sync_every: Some(3), ..everywhere() }, &["--sync-every", "--sync weights"]);
    let moment = Some(ScalingKind::Moment);
    let options = Options { replica_scaling: moment, ..everywhere() };
    refused(options, &["--replica-scaling", "--sync weights"]);
    refused(Options { replicas: Some(2), ..everywhere() }, &["--replicas", "data-parallel"]);
    let layout = Some(LayoutKind::Contiguous);
    refused(Options { layout, ..everywhere() }, &["--layout", "data-parallel"]);
    // All tables are small: plan auto stores them everywhere.
    let small =
        Options { replicas: Some(2), ..small_options("synthetic".as_ref(), ModelKind::Dlrm) };
    let small = Options { world: Some(4), ..small };
    accepted(small.clone());
    refused(Options { sync_every: Some(3), ..small.clone() }, &["--sync-every"]);
    let sync = Some(SyncKind::Weights);
    refused(Options { sync, ..small.clone() }, &["--sync weights", "auto"]);
    let plan = Some("table-wise".into());
    accepted(Options { sync, plan, sync_every: Some(3), ..small });
    accepted(Options { sync, sync_every: Some(3), ..everywhere() });
}

#[test]
fn places_of_single_tables() {
    let with = |placement, replicas| {
        let mut options = small_options("synthetic".as_ref(), ModelKind::Dlrm);
        (options.table[1].placement, options.table[1].replicas) = (placement, replicas);
        Options { world: Some(4), ..options }
    };
    for replicas in [0, 3, 8] {
        refused(with(None, Some(replicas)), &["\"C2\"", &format!("replicas is {replicas}")]);
    }
    accepted(with(Some(PlacementKind::DataParallel), None));
    accepted(with(Some(PlacementKind::RowWise), Some(2)));
    let mut all = with(Some(PlacementKind::RowWise), None);
    for table in &mut all.table {
        table.placement = Some(PlacementKind::RowWise);
    }
    refused(Options { plan: Some("table-wise".into()), ..all }, &["--plan", "own placement"]);
}

#[test]
fn plans_that_can_not_be_executed() {
    let with = |plan: &str| Options { plan: Some(plan.into()), ..on(2) };
    let bounded = Options { max_norm: Some(1.0), ..with("column-wise") };
    refused(bounded, &["max_norm", "columns"]);
    // A plan file may ask for what isn't there yet.
    let folder = Folder::new();
    let two = Options { replicas: Some(2), plan: Some("row-wise".into()), ..on(4) };
    let made = accepted(two).ranks.expect("ranks");
    let text = serde_json::to_string(&made.plan.to_file()).expect("JSON");
    let averaged = r#"{"touched_rows":{"every":1}}"#;
    let sharded = text.replacen(averaged, r#""fully_sharded_replicas""#, 1);
    assert_ne!(sharded, text);
    let file = folder.file("plan.json", &sharded).display().to_string();
    refused(Options { plan: Some(file), ..on(4) }, &["C1", "fully sharded"]);
}

#[test]
fn planners_instead_of_plans() {
    let by = |name: &str| Options { planner: Some(name.into()), ..on(4) };
    for name in ["lattice", "flexshard", "table-row-wise", "auto"] {
        let ranks = accepted(Options { nodes: Some(2), ..by(name) }).ranks.expect("ranks");
        assert_eq!((ranks.plan.world(), ranks.ranks_per_node), (4, 2), "{name}");
        assert_eq!(ranks.notes, Vec::<String>::new(), "{name}");
    }
    refused(by("latice"), &["--planner", "did you mean", "lattice"]);
    let plan = Some("auto".into());
    refused(Options { plan, ..by("lattice") }, &["--plan and --planner", "one"]);
    let layout = Some(LayoutKind::Contiguous);
    refused(Options { layout, ..by("lattice") }, &["--layout", "--replicas"]);
    let topology = Some("cpu:2".into());
    refused(Options { topology, ..by("lattice") }, &["cpu:2", "2 ranks", "--world is 4"]);
    refused(Options { topology: Some("cpu:4".into()), ..on(4) }, &["--topology", "--planner"]);
    let mut placed = Options { table: vec![table("C1", 50, 4)], ..by("lattice") };
    placed.table[0].placement = Some(PlacementKind::TableWise);
    refused(placed, &["\"C1\"", "the planner says"]);
    // What flags say wins over a file, whichever of both it is.
    let of_file = Options { plan: Some("row-wise".into()), ..on(4) };
    let flags = Options { planner: Some("flexshard".into()), ..Options::default() };
    accepted(flags.over(of_file));
}

#[test]
fn syncs_reach_the_replicas_of_every_plan() {
    let syncs = |options: Options| -> Vec<String> {
        let plan = accepted(options).ranks.expect("ranks").plan;
        let tiers = plan.placed().iter().flat_map(|(_, placed)| &placed.tiers);
        let mut syncs: Vec<String> = tiers
            .filter(|tier| tier.mesh.replicas() > 1 && tier.mesh.group_ranks() > 1)
            .map(|tier| tier.sync.to_string())
            .collect();
        syncs.dedup();
        syncs
    };
    let rows = |planner: Option<&str>, sync| Options {
        planner: planner.map(Into::into),
        plan: planner.is_none().then(|| "table-wise".into()),
        replicas: Some(2),
        sync,
        sync_every: (sync != Some(SyncKind::Gradients)).then_some(3),
        ..on(4)
    };
    for planner in [None, Some("greedy-size")] {
        for (sync, expected) in [
            (None, "touched rows/3"),
            (Some(SyncKind::TouchedRows), "touched rows/3"),
            (Some(SyncKind::Weights), "weights/3"),
            (Some(SyncKind::Gradients), "gradients"),
        ] {
            assert_eq!(syncs(rows(planner, sync)), [expected], "{planner:?} {sync:?}");
        }
    }
}

#[test]
fn looks_at_the_health_of_ranks() {
    assert_eq!(accepted(Options { health: Some(0), ..base() }).health, None);
    assert_eq!(accepted(Options { health: Some(0), ..on(4) }).health, None);
    assert_eq!(accepted(Options { health: Some(7), ..on(4) }).health, Some(7));
    let folder = Folder::new();
    let with = |text: &str, health| {
        let file = folder.file("lookups.json", text);
        Options { workload: Some(file), health, ..on(4) }
    };
    refused(with("{}", None), &["--workload has no effect", "--health N"]);
    refused(with("{}", Some(0)), &["--workload has no effect", "--health N"]);
    refused(with("{\n nam: 1}", Some(5)), &["lookups.json:2:"]);
    let tables = |name: &str, rows: u64| {
        let tables = format!("[{{ \"name\": \"{name}\", \"rows\": {rows}, \"dim\": 4 }}]");
        let head = "\"name\": \"w\", \"batch\": { \"global\": 8 }";
        let text = format!("{{ {head}, \"tables\": {tables} }}");
        let one = Options { table: vec![table("C1", 50, 4)], ..with(&text, Some(5)) };
        Options {
            feature: small_options("synthetic".as_ref(), ModelKind::Dlrm).feature[..1].to_vec(),
            ..one
        }
    };
    refused(tables("C2", 50), &["lookups.json", "nothing is measured of table \"C1\"", "\"C2\""]);
    // One more row is kept for missing values.
    refused(tables("C1", 50), &["lookups.json", "\"C1\" has 50 rows there, 51 in this run"]);
    assert!(accepted(tables("C1", 51)).workload.is_some());
}
