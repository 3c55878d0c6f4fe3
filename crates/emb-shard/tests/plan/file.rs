//! Plan files: readable, read back, and refused when they lie.

use crate::common::{sequence, table, tables};
use emb_shard::{
    Layout, Mesh, Placement, Plan, PlanBuilder, PlanFile, RowCut, Table, TableOptions, Tables,
};
use proptest::prelude::*;

fn given() -> Tables {
    tables(vec![table("ads", 10, 4, 1.0), sequence("clicks", 6, 2)])
}

fn plan() -> Plan {
    let mesh = Mesh::new(4, 2, Layout::Contiguous).expect("divides");
    let builder = PlanBuilder::new(mesh).node_ranks(2);
    let builder = builder.all(Placement::RowWise { cut: RowCut::Ceil });
    builder.build(&given()).expect("valid")
}

const TEXT: &str = r#"{
  "version": 1,
  "world": 4,
  "node_ranks": 2,
  "fingerprint": "FINGERPRINT",
  "tables": [
    {"table": "ads", "rows": 10, "dim": 4, "element_bytes": 4, "pooling": "sum", "tiers": [{"rows": [0, 10], "group": 2, "layout": "contiguous", "exchange": {"reduce": {"over": "flat"}}, "sync": {"weights": {"every": 1}}, "blocks": [{"columns": [0, 4], "map": "even", "owners": {"span": [0, 2]}}]}]},
    {"table": "clicks", "rows": 6, "dim": 2, "element_bytes": 4, "pooling": "none", "tiers": [{"rows": [0, 6], "group": 2, "layout": "contiguous", "exchange": {"unique": {"per": "rank"}}, "sync": {"weights": {"every": 1}}, "blocks": [{"columns": [0, 2], "map": "even", "owners": {"span": [0, 2]}}]}]}
  ]
}
"#;

/// The error of the file with one piece of text replaced, from JSON or from the plan.
fn refusal(from: &str, to: &str) -> String {
    let text = plan().to_file().to_string();
    assert!(text.contains(from), "{from}");
    let text = text.replacen(from, to, 1);
    match serde_json::from_str::<PlanFile>(&text) {
        Ok(file) => file.into_plan(&given()).expect_err("must be refused").to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_plan_file_has_one_line_for_each_table() {
    let plan = plan();
    let fingerprint = format!("{:016x}", plan.fingerprint());
    assert_eq!(plan.to_file().to_string(), TEXT.replace("FINGERPRINT", &fingerprint));
}

#[test]
fn a_plan_file_describes_the_tables_it_is_for() {
    let file = plan().to_file();
    let tables = file.tables().expect("tables");
    assert_eq!(tables, given(), "one look-up a sample, no state: what plans do not keep");
    assert_eq!(file.into_plan(&tables).expect("a plan"), plan());
    let twice = plan().to_file().to_string().replace("\"clicks\"", "\"ads\"");
    let twice: PlanFile = serde_json::from_str(&twice).expect("a file");
    let error = twice.tables().expect_err("two of one name").to_string();
    assert_eq!(error, "two tables are named \"ads\"");
}

#[test]
fn the_fingerprint_is_the_same_on_every_machine_and_in_every_version() {
    assert_eq!(format!("{:016x}", plan().fingerprint()), "7f6389cd3d92e9b3");
}

#[test]
fn u30_plan_files_of_other_tables_are_refused_by_name() {
    assert_eq!(
        refusal(r#""table": "ads""#, r#""table": "adz""#),
        r#"the plan names table "adz", which the model does not have"#
    );
    assert_eq!(
        refusal(r#""table": "ads""#, r#""table": "clicks""#),
        r#"table "clicks": rows 6, the plan was made for 10"#
    );
    assert_eq!(
        refusal(r#""rows": 10,"#, r#""rows": 11,"#),
        r#"table "ads": rows 10, the plan was made for 11"#
    );
    assert_eq!(
        refusal(r#""pooling": "none""#, r#""pooling": "sum""#),
        r#"table "clicks": pooling None, the plan was made for Sum"#
    );
    assert_eq!(
        refusal(r#""pooling": "sum""#, r#""pooling": "sum", "features": ["a", "b"]"#),
        r#"table "ads": features ads, the plan was made for a, b"#
    );
    let line = TEXT.lines().nth(7).expect("the second table");
    let error = refusal(&format!(",\n{line}"), "");
    assert_eq!(error, r#"the plan has no place for table "clicks""#);
}

#[test]
fn hostile_plan_files_are_refused_with_a_reason() {
    let starts = |from, to, start: &str| {
        let error = refusal(from, to);
        assert!(error.starts_with(start), "{error}");
    };
    let version = "plan file of version 2: this program reads version 1";
    starts(r#""version": 1"#, r#""version": 2"#, version);
    starts(r#""world": 4"#, r#""world": 4, "extra": 1"#, "unknown field `extra`");
    starts(r#""columns""#, r#""colour": 1, "columns""#, "unknown field `colour`");
    starts(r#""every": 1"#, r#""every": 1, "always": 1"#, "unknown field `always`");
    starts(r#""world": 4"#, r#""world": -4"#, "invalid value: integer `-4`");
    starts(r#""world": 4"#, r#""world": 4294967295"#, "a plan of 4294967295 ranks: at most");
    starts(r#""every": 1"#, r#""every": 0"#, "invalid value: integer `0`");
    // What does not know its table: ranges, meshes and row maps.
    let in_tier =
        |from, to, what: &str| starts(from, to, &format!("table \"ads\", tier 0: {what}"));
    in_tier(r#""group": 2"#, r#""group": 0"#, "4 ranks do not split into sharding groups of 0");
    in_tier(r#""group": 2"#, r#""group": 3"#, "4 ranks do not split into sharding groups of 3");
    in_tier(r#""rows": [0, 10]"#, r#""rows": [10, 0]"#, "row range 10..0 ends before it starts");
    let columns = "column range 4..0 ends before it starts";
    in_tier(r#""columns": [0, 4]"#, r#""columns": [4, 0]"#, columns);
    starts(r#""rows": [0, 10]"#, r#""rows": [0, 9]"#, r#"table "ads": tiers end at row 9"#);
    let owner = r#"table "ads", tier 0: columns 0..4, rows 0..10: owner 4294967294 is outside"#;
    starts(r#""span": [0, 2]"#, r#""span": [0, 4294967295]"#, owner);
    let owner = r#"table "ads", tier 0: columns 0..4, rows 5..10: owner 2 is outside the 2 ranks"#;
    starts(r#""span": [0, 2]"#, r#""span": [1, 3]"#, owner);
    starts(
        r#"{"span": [0, 2]}"#,
        r#"{"list": [1, 1]}"#,
        "table \"ads\", tier 0: columns 0..4, rows",
    );
    in_tier(r#""span": [0, 2]"#, r#""span": [2, 0]"#, "a row map needs at least one owner");
    let gap = r#"table "ads", tier 0: columns 1..4 must begin at 0"#;
    starts(r#""columns": [0, 4]"#, r#""columns": [1, 4]"#, gap);
    let starts_of = r#""map": {"starts": [0, 12, 10]}"#;
    in_tier(r#""map": "even""#, starts_of, "row starts decrease at owner 1");
    let parts = r#"table "ads", tier 0: columns 0..4: 2 owners for 3 row parts"#;
    starts(r#""map": "even""#, r#""map": {"starts": [0, 1, 2, 10]}"#, parts);
    let deep = format!(
        "{}\"even\"{}",
        r#"{"permuted": {"permutation": [], "then": "#.repeat(500),
        "}}".repeat(500)
    );
    starts(r#""even""#, &deep, "recursion limit exceeded");
    starts(r#""fingerprint": ""#, r#""fingerprint": "x"#, "the tables have fingerprint");
}

proptest! {
    #[test]
    fn any_name_survives_the_file(
        names in prop::collection::btree_set("\\PC{1,12}|[\\x00-\\x7f]{1,12}", 3),
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let options = TableOptions { features: Some(names[1..].to_vec()), ..TableOptions::default() };
        let given = tables(vec![Table::new(&names[0], 3, 2, options).expect("valid")]);
        let mesh = Mesh::new(2, 2, Layout::Strided).expect("divides");
        let plan = Plan::table_wise(&given, mesh).expect("valid");
        let file: PlanFile = serde_json::from_str(&plan.to_file().to_string()).expect("JSON");
        prop_assert_eq!(file.into_plan(&given).expect("the same plan"), plan);
    }

    #[test]
    fn a_damaged_file_is_refused_or_another_valid_plan(at in any::<prop::sample::Index>(), byte in 32u8..127) {
        let mut text = plan().to_file().to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(file) = serde_json::from_slice::<PlanFile>(&text)
            && let Ok(plan) = file.into_plan(&given())
        {
            crate::common::assert_covers(&plan);
        }
    }
}
