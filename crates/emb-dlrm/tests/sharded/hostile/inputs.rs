//! Batches that nobody expects: the result is still that of one process.

use super::{Case, ROWS, SEQUENCES, batch, exact, over_ranks};
use crate::naive::OneProcess;
use crate::support::{Model, Random, Upstream};
use crate::tiered::{Lives, POOLED, Tiers};
use emb_dlrm::sharded::IdWire;
use emb_kernels::{Jagged, Pooling};
use emb_optim::RuleKind;
use emb_shard::{
    Block, ColRange, Exchange, Layout, Mesh, Owners, Plan, PlanSpec, ReplicaSync, RowMap, RowRange,
    TablePlan, Tier,
};

const LIMIT: f64 = 1e-5;

#[track_caller]
fn check(case: &Case, steps: &[Vec<Jagged>]) {
    check_within(LIMIT, case, steps);
}

#[track_caller]
fn check_within(limit: f64, case: &Case, steps: &[Vec<Jagged>]) {
    let one = OneProcess::new(&case.model, steps, Upstream::Given);
    for ids in [IdWire::Plain, IdWire::Packed] {
        let ranks = over_ranks(case, steps, Upstream::Given, ids);
        let checked = one.check(&case.model, &ranks, limit);
        checked.unwrap_or_else(|fault| panic!("{}, {ids:?}: {fault}\n{}", case.name, case.plan));
    }
}

#[test]
fn samples_of_one_node_of_one_rank_or_of_nobody() {
    for case in exact() {
        let mut random = Random::new(1);
        let sizes = [[0, 0, 3, 2], [0, 0, 0, 9], [0; 4], [0, 0, 0, 0], [9, 0, 0, 0], [2, 3, 0, 0]];
        let steps: Vec<_> =
            sizes.iter().map(|sizes| case.model.batches(&mut random, sizes, false)).collect();
        check(&case, &steps);
    }
}

#[test]
fn every_row_alone_and_bags_of_nothing() {
    for case in exact() {
        let model = &case.model;
        let nothing = || batch(model, 2, |_, _| Vec::new());
        let mut steps = vec![vec![nothing(), nothing(), nothing(), nothing()]];
        // One row of one feature at one rank, so that all other lists of the step are empty.
        for row in 0..ROWS as usize {
            let mut step =
                vec![nothing(), batch(model, 0, |_, _| Vec::new()), nothing(), nothing()];
            let feature = row % model.features.len();
            let bag = |f, b| if (f, b) == (feature, 1) { vec![row as i64] } else { Vec::new() };
            step[[0, 2, 3][row % 3]] = batch(model, 2, bag);
            steps.push(step);
        }
        // All rows in one bag, back and forth.
        let all = (0..ROWS as i64).chain((0..ROWS as i64).rev());
        steps.push((0..4).map(|_| batch(model, 1, |_, _| all.clone().collect())).collect());
        check(&case, &steps);
    }
}

/// A bag of very many ids beside small ones; one id very many times.
#[test]
fn bags_of_a_hundred_thousand_ids() {
    const MANY: usize = 100_000;
    for (number, case) in exact().into_iter().enumerate() {
        let model = &case.model;
        let mut random = Random::new(2);
        let mut step = |many: &mut dyn FnMut() -> i64| {
            let mut step = model.batches(&mut random, &[2, 0, 1, 2], false);
            let bag =
                |f, b| if (f, b) == (0, 1) { (0..MANY).map(|_| many()).collect() } else { vec![3] };
            step[number % 4] = batch(model, 2, bag);
            step
        };
        let mut other = Random::new(3);
        let steps = [step(&mut || other.below(ROWS as usize) as i64), step(&mut || 7)];
        // Sums of so many numbers round more.
        check_within(10.0 * LIMIT, &case, &steps);
    }
}

#[test]
fn tables_of_one_row_and_of_one_or_very_many_columns() {
    let shapes = [(1, 1, 2), (1, 1280, 1), (3, 1, 1), (2, 1280, 1), (1, 7, 1)];
    let pooled = POOLED.map(|exchange| (exchange, Pooling::Mean));
    let sequences = SEQUENCES.map(|exchange| (exchange, Pooling::None));
    for (exchange, pooling) in pooled.into_iter().chain(sequences) {
        for hot in [0, 1] {
            let model = Model::new(&shapes, RuleKind::RowWiseAdaGrad, pooling);
            let lives = Lives { blocks: 3, ..Lives::new(4, exchange) };
            let plan = Tiers::of_four(lives).with_hot(hot).plan(&model);
            let mut random = Random::new(4);
            let steps: Vec<_> =
                (0..3).map(|_| model.batches(&mut random, &[2, 0, 3, 1], true)).collect();
            check(&Case { name: format!("{exchange}, {hot} hot"), model, plan }, &steps);
        }
    }
}

#[test]
fn three_hundred_tables_in_one_plan() {
    let mut model = Model::new(&[(6, 3, 1); 300], RuleKind::RowWiseAdaGrad, Pooling::Sum);
    for feature in &mut model.features {
        feature.pooling = [Pooling::Sum, Pooling::Mean][feature.table % 2];
    }
    let mut tables = Vec::new();
    for t in 0..300 {
        let lives = Lives { blocks: 1 + t % 3, ..Lives::new(4, POOLED[t % 4]) };
        let plan = Tiers::of_four(lives).with_hot(t as u64 % 3).plan(&model);
        tables.push(plan.placed().as_slice()[t].clone());
    }
    let spec = PlanSpec { world: 4, node_ranks: 2, tables };
    let plan = Plan::new(&model.tables(), spec).expect("a plan");
    let mut random = Random::new(5);
    let steps: Vec<_> = (0..2).map(|_| model.batches(&mut random, &[1, 0, 2, 1], false)).collect();
    check(&Case { name: "300 tables".into(), model, plan }, &steps);
}

/// All parts but one are empty, in every position; tiers of one row each.
#[test]
fn parts_and_tiers_of_few_rows() {
    for (number, exchange) in POOLED.into_iter().enumerate() {
        let model = Model::new(&[(4, 3, 2)], RuleKind::Adam, Pooling::Mean);
        let mesh = Mesh::new(4, 4, Layout::Contiguous).expect("a mesh");
        let tiers = (0..4).map(|row| {
            let mut starts = vec![0; row as usize + 1];
            starts.resize(5, 1);
            let map = RowMap::range(starts).expect("a map");
            let columns = ColRange::new(0, 3).expect("columns");
            let owners = Owners::list(&[2, 0, 3, 1]);
            Tier {
                rows: RowRange::new(row, row + 1).expect("a row"),
                mesh,
                exchange: if row == 2 { POOLED[(number + 1) % 4] } else { exchange },
                sync: ReplicaSync::None,
                blocks: vec![Block { columns, map, owners }],
            }
        });
        let table = TablePlan { table: "t0".into(), order: None, tiers: tiers.collect() };
        let spec = PlanSpec { world: 4, node_ranks: 2, tables: vec![table] };
        let plan = Plan::new(&model.tables(), spec).expect("a plan");
        let mut random = Random::new(6);
        let steps: Vec<_> =
            (0..4).map(|_| model.batches(&mut random, &[2, 0, 3, 1], true)).collect();
        check(&Case { name: exchange.to_string(), model, plan }, &steps);
    }
}

/// A table that is pooled by one feature and looked up row by row by another.
#[test]
fn a_table_may_be_pooled_and_looked_up_by_row() {
    for exchange in [Exchange::Local, SEQUENCES[1], SEQUENCES[2]] {
        for first in [Pooling::None, Pooling::Mean] {
            let mut model = Model::new(&[(ROWS, 5, 3)], RuleKind::RowWiseAdaGrad, Pooling::Sum);
            model.features[0].pooling = first;
            model.features[1].pooling = Pooling::None;
            let group = if exchange == Exchange::Local { 1 } else { 4 };
            let lives = Lives { blocks: 2, ..Lives::new(group, exchange) };
            let plan = Tiers::of_four(lives).with_hot(2).plan(&model);
            let mut random = Random::new(7);
            let steps: Vec<_> =
                (0..4).map(|n| model.batches(&mut random, &[2, 0, 3, 1], n > 1)).collect();
            check(&Case { name: format!("{exchange}, {first:?} first"), model, plan }, &steps);
        }
    }
}
