//! Plan files of tiers, orders and every exchange: trainings, checkpoints, and files that somebody
//! damaged.

use crate::support::{Folder, Outcome, assert_near, criteo, options, outcome, outcome_in};
use emb_dlrm::config::{Config, ModelKind, OptimizerKind, Options};
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Path as Over, Per, Plan, PlanSpec,
    ReplicaSync, RowMap, RowOrder, RowRange, TablePlan, Tier,
};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const FLAT: Exchange = Exchange::Reduce { over: Over::Flat };
const BY_NODE: Exchange = Exchange::Reduce { over: Over::Hierarchical };
const UNIQUE: Exchange = Exchange::Unique { per: Per::Rank };
const UNIQUE_BY_NODE: Exchange = Exchange::Unique { per: Per::Node };

fn base(folder: &Folder) -> Options {
    let data = folder.file("train.txt", &criteo(200, 1));
    let eval = folder.file("eval.txt", &criteo(50, 2));
    Options {
        eval: vec![eval],
        optimizer: Some(OptimizerKind::RowWiseAdaGrad),
        lr: Some(0.03),
        dense_lr: Some(0.02),
        initial_accumulator: Some(0.1),
        ..options(&data, ModelKind::Dlrm)
    }
}

/// Rows of a tier over groups of so many ranks, their columns in two blocks.
fn tier(rows: (u64, u64), group: u32, exchange: Exchange) -> Tier {
    let mesh = Mesh::new(4, group, Layout::Contiguous).expect("a mesh");
    let rows = RowRange::new(rows.0, rows.1).expect("rows");
    let block = |columns: (usize, usize), map: RowMap| Block {
        columns: ColRange::new(columns.0, columns.1).expect("columns"),
        map,
        owners: Owners::span(0, group),
    };
    let group = group as usize;
    let even = RowMap::even(rows.rows(), group).expect("a map");
    let modulo = RowMap::modulo(rows.rows(), group).expect("a map");
    let sync = if mesh.replicas() > 1 { ReplicaSync::Gradients } else { ReplicaSync::None };
    Tier { rows, mesh, exchange, sync, blocks: vec![block((0, 1), even), block((1, 4), modulo)] }
}

/// Tables have one row more than options say, for ids that were not seen in training.
///
/// Four ranks on two nodes: up to three tiers a table, rows in another order, every exchange.
fn tiers(options: &Options) -> Plan {
    let config = Config::resolve(options.clone()).expect("consistent");
    let tables = config.planned_tables().expect("tables");
    let order = |rows, hot| Some(RowOrder::hot_first(rows, hot).expect("an order"));
    let spec = PlanSpec {
        world: 4,
        node_ranks: 2,
        tables: vec![
            TablePlan {
                table: "C1".into(),
                order: order(51, vec![50, 3, 0, 17, 8]),
                tiers: vec![tier((0, 5), 1, Exchange::Local), tier((5, 51), 4, BY_NODE)],
            },
            TablePlan {
                table: "C2".into(),
                order: order(301, vec![0, 300, 7]),
                tiers: vec![
                    tier((0, 3), 1, Exchange::Local),
                    tier((3, 40), 2, UNIQUE),
                    tier((40, 301), 4, UNIQUE_BY_NODE),
                ],
            },
            TablePlan { table: "C3".into(), order: None, tiers: vec![tier((0, 8), 4, FLAT)] },
        ],
    };
    Plan::new(&tables, spec).expect("a plan")
}

/// The options with this plan.
fn with(folder: &Folder, options: &Options, plan: &Plan) -> Options {
    let text = plan.to_file().to_string();
    let file = folder.file("plan.json", &text).display().to_string();
    Options { world: Some(4), plan: Some(file), ..options.clone() }
}

/// The last of several runs, each of which goes on from the one before.
fn chain(folder: &Folder, runs: Vec<Options>) -> Outcome {
    let mut last = None;
    for (number, options) in runs.into_iter().enumerate() {
        let load = number.checked_sub(1).map(|before| folder.path(&format!("run{before}")));
        let dir = folder.path(&format!("run{number}"));
        last = Some(outcome_in(Options { load, ..options }, &dir));
    }
    last.expect("a run")
}

#[test]
fn tiers_of_a_plan_file_train_save_and_go_on_as_one_process() {
    let folder = Folder::new();
    let base = base(&folder);
    let steps = |count, options: &Options| Options { steps: Some(count), ..options.clone() };
    let planned = with(&folder, &base, &tiers(&base));
    let alone = outcome(steps(10, &base));
    let whole = outcome(steps(10, &planned));
    assert_near(&whole, &alone, 1e-4, "tiers");
    let parts = chain(&folder, vec![steps(4, &planned), steps(6, &planned)]);
    assert!(whole.bytes == parts.bytes, "a run that goes on has other bits");
    let other = Options { world: Some(3), plan: Some("column-wise".into()), ..base.clone() };
    let moved = vec![steps(3, &planned), steps(3, &other), steps(1, &base), steps(3, &planned)];
    assert_near(&chain(&folder, moved), &alone, 1e-4, "plans and worlds in turn");
}

/// Every value of a file, by its path.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(values) => {
            for (k, value) in values.iter().enumerate() {
                places(value, &format!("{at}/{k}"), all);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), all);
            }
        }
        _ => {}
    }
}

/// The table of a place in a tier.
fn of_tier(place: &str, file: &Value) -> Option<String> {
    let (table, _) = place.split_once("/tiers/")?;
    let name = file.pointer(&format!("{table}/table"))?.as_str()?;
    Some(format!("table {name:?}"))
}

/// What somebody may make of a value.
fn damaged(value: &Value) -> Vec<Value> {
    let mut all = vec![Value::Null, json!("bogus"), json!(-1), json!(1.5), json!([]), json!({})];
    match value {
        Value::Number(number) => {
            let number = number.as_u64().expect("plans have whole numbers");
            let more = [0, 1, number + 1, 1 << 31, u64::from(u32::MAX), 1 << 62, u64::MAX];
            all.extend(more.into_iter().filter(|&other| other != number).map(|n| json!(n)));
        }
        Value::Array(values) => {
            let mut shorter = values.clone();
            let longer = [&values[..], &values[..1]].concat();
            shorter.pop();
            all.extend([json!(shorter), json!(longer)]);
            if values.len() > 1 && values[0] != values[1] {
                let mut swapped = values.clone();
                swapped.swap(0, 1);
                all.push(json!(swapped));
            }
        }
        Value::Object(fields) => {
            let mut more = fields.clone();
            more.insert("extra".into(), json!(1));
            all.push(json!(more));
            for name in fields.keys() {
                let mut fewer = fields.clone();
                fewer.remove(name);
                all.push(json!(fewer));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn a_damaged_plan_file_is_refused_by_name_or_is_another_plan() {
    let folder = Folder::new();
    let base = base(&folder);
    let planned = with(&folder, &base, &tiers(&base));
    let file = planned.plan.clone().expect("a file");
    let whole: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("JSON");
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let (mut refused, mut accepted) = (0, Vec::new());
    for place in &all {
        for other in damaged(whole.pointer(place).expect("a value")) {
            let mut file_of = whole.clone();
            *file_of.pointer_mut(place).expect("a value") = other.clone();
            std::fs::write(&file, file_of.to_string()).expect("a file");
            let begun = Instant::now();
            let what = format!("{place} = {other}");
            match Config::resolve(planned.clone()) {
                Ok(_) => accepted.push(what.clone()),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("--plan") && text.contains(&file), "{what}: {text}");
                    if let Some(table) = of_tier(place, &whole) {
                        let named = text.contains(&table) || text.contains("line ");
                        assert!(named, "{what}: {text}");
                    }
                    refused += 1;
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
        }
    }
    eprintln!("{refused} refused, {} accepted", accepted.len());
    // Orders and owners are free to choose, within bounds.
    let free = ["/node_ranks", "/order", "/owners", "/tables/0 =", "/tables/1 =", "/tables ="];
    let odd = accepted.iter().find(|what| !free.iter().any(|free| what.contains(free)));
    assert_eq!(odd, None);
    assert!(refused > 1000);
}

#[test]
fn the_program_trains_by_a_plan_file_and_refuses_a_damaged_one() {
    let folder = Folder::new();
    let base = base(&folder);
    let data = base.data[0].display().to_string();
    let small = Options {
        table: Vec::new(),
        feature: Vec::new(),
        ..Options { rows_per_table: Some(50), ..base }
    };
    let config = Config::resolve(small).expect("consistent");
    let tables = config.planned_tables().expect("tables");
    let placed = tables.tables().as_slice().iter().enumerate().map(|(t, table)| {
        let exchange = [FLAT, BY_NODE, UNIQUE, UNIQUE_BY_NODE][t % 4];
        TablePlan {
            table: table.name().to_owned(),
            order: Some(RowOrder::hot_first(51, vec![50, 3]).expect("an order")),
            tiers: vec![tier((0, 2), 1, Exchange::Local), tier((2, 51), 4, exchange)],
        }
    });
    let spec = PlanSpec { world: 4, node_ranks: 2, tables: placed.collect() };
    let text = Plan::new(&tables, spec).expect("a plan").to_file().to_string();
    let train = |text: &str| {
        let file = folder.file("plan.json", text).display().to_string();
        let args = ["train", "--data", &data, "--world", "4", "--steps", "2", "--plan", &file];
        let more = ["--rows-per-table", "50", "--dim", "4", "--bottom", "8", "--top", "8"];
        let args = args.iter().chain(&more).chain(&["--batch-size", "8"]);
        Command::new(env!("CARGO_BIN_EXE_emb")).args(args).output().expect("runs")
    };
    let output = train(&text);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (from, to, words) in [
        ("\"world\": 4", "\"world\": 8", "\"C1\", tier 1"),
        ("\"group\": 4", "\"group\": 3", "3"),
        ("\"C1\"", "\"C0\"", "C0"),
        ("\"version\": 1", "\"version\": 7", "7"),
    ] {
        assert!(text.contains(from), "{from} is missing from {text}");
        let output = train(&text.replacen(from, to, 1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{to}: {said}");
        assert!(said.contains("--plan") && said.contains(words), "{to}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
