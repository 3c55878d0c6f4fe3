//! What users of comparable systems ran into, as tests: gradients, state, rounding, seeds.

use crate::support::{Group, batch, table, without_eps};
use emb_kernels::RowGradients;
use emb_kernels::cpu::{Cpu, CpuOptions};
use emb_kernels::{
    Backend, Dtype, Gradients, Init, Jagged, Mat, Pooling, Rounding, TableSpec, Window,
};
use emb_optim::{Optimizer, RuleKind};

fn near(got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= tolerance, "{got:?} instead of {expected:?}");
    }
}

#[test]
fn u12_duplicates_of_a_bag_are_summed_before_the_rule_runs_once() {
    let cases = [
        (RuleKind::Sgd, [0.7, 0.4]),
        (RuleKind::AdaGrad, [0.9, 0.9]),
        (RuleKind::RowWiseAdaGrad, [0.936_754, 0.873_509]),
    ];
    for (kind, expected) in cases {
        let optimizer =
            if kind == RuleKind::Sgd { Optimizer::new(kind) } else { without_eps(kind) };
        let spec = TableSpec { optimizer, ..table("t", 1, 2, kind) };
        let mut group = Group::new(&[spec], Pooling::Sum);
        group.fill(0, |_, _| 1.0);
        group.lr = 0.1;
        group.update(&batch(&["t"], 1, &[3], &[0, 0, 0]), &[1.0, 2.0]).expect("ids in range");
        near(&group.rows(0).0, &expected, 1e-6);
    }
}

#[test]
fn u12_ten_thousand_copies_of_an_id_give_the_same_bits_every_time() {
    let samples = 65_536;
    let values: Vec<i64> =
        (0..samples as i64).map(|k| if k % 6 == 0 { 7 } else { k * 31 % 5000 }).collect();
    let bags = batch(&["t"], samples, &vec![1; samples], &values);
    let gradient: Vec<f32> = (0..samples * 16).map(|k| (k as f32 * 0.37).sin()).collect();
    let mut first = None;
    for run in 0..20 {
        let mut group = Group::new(&[table("t", 5000, 16, RuleKind::RowWiseAdaGrad)], Pooling::Sum);
        group.cpu = Cpu::new(CpuOptions { threads: 1 + run % 3 }).expect("threads");
        group.update(&bags, &gradient).expect("ids in range");
        let rows = group.rows(0);
        assert!(first.get_or_insert_with(|| rows.clone()) == &rows, "run {run}");
    }
}

#[test]
fn u14_a_weighted_mean_divides_by_the_weights() {
    let mut group = Group::new(&[table("t", 2, 1, RuleKind::Sgd)], Pooling::Mean);
    let make = |weights: &[f32]| {
        Jagged::from_lengths(&["t"], 1, &[2], vec![0, 1], Some(weights.to_vec())).expect("a batch")
    };
    let fill = |group: &mut Group| group.fill(0, |i, _| [1.0, 4.0][i as usize]);
    fill(&mut group);
    let bags = make(&[1.0, 3.0]);
    assert_eq!(group.pool(&bags).expect("ids in range"), [3.25]);
    assert_eq!(group.weight_gradients(&bags, &[1.0]), [-0.5625, 0.1875]);
    group.update(&bags, &[1.0]).expect("ids in range");
    assert_eq!(group.rows(0).0, [0.75, 3.25]);
    for weights in [[0.0, 0.0], [1.0, -1.0]] {
        fill(&mut group);
        let bags = make(&weights);
        assert_eq!(group.pool(&bags).expect("ids in range"), [0.0], "{weights:?}");
        assert_eq!(group.weight_gradients(&bags, &[1.0]), [0.0, 0.0], "{weights:?}");
        group.update(&bags, &[1.0]).expect("ids in range");
        assert_eq!(group.rows(0).0, [1.0, 4.0], "{weights:?}");
    }
}

#[test]
fn u15_per_sample_weights_have_gradients() {
    let mut group = Group::new(&[table("t", 2, 2, RuleKind::Sgd)], Pooling::Sum);
    group.fill(0, |i, j| [[1.0, 2.0], [3.0, -1.0]][i as usize][j]);
    let weights = Some(vec![0.5, 2.0, 1.0]);
    let bags = Jagged::from_lengths(&["t"], 1, &[3], vec![0, 1, 0], weights).expect("a batch");
    assert_eq!(group.pool(&bags).expect("ids in range"), [7.5, 1.0]);
    assert_eq!(group.weight_gradients(&bags, &[1.0, 10.0]), [21.0, -7.0, 21.0]);
    group.update(&bags, &[1.0, 10.0]).expect("ids in range");
    let moved = [1.0 - 1.5, 2.0 - 15.0, 3.0 - 2.0, -1.0 - 20.0];
    assert_eq!(group.rows(0).0, moved);
}

/// 100,000 rows at 1.0 after an update by a quarter of the local step, upwards.
fn rounded(dtype: Dtype, rounding: Rounding, seed: u64, step: f32) -> Vec<f32> {
    let rows = 100_000;
    let init = Init::Constant(1.0);
    let spec = TableSpec { dtype, rounding, init, ..table("t", rows, 1, RuleKind::Sgd) };
    let mut group = Group::new(std::slice::from_ref(&spec), Pooling::Sum);
    group.tables = group.cpu.create_tables(&[spec], seed).expect("table");
    let ids: Vec<i64> = (0..rows as i64).collect();
    let bags = batch(&["t"], rows as usize, &vec![1; rows as usize], &ids);
    group.update(&bags, &vec![-step / 4.0; rows as usize]).expect("ids in range");
    group.rows(0).0
}

#[test]
fn u16_stochastic_rounding_is_unbiased_and_follows_the_seed() {
    for (dtype, step) in [(Dtype::F16, 2.0_f32.powi(-10)), (Dtype::Bf16, 2.0_f32.powi(-7))] {
        let rows = rounded(dtype, Rounding::Stochastic, 7, step);
        let up = rows.iter().filter(|&&w| w == 1.0 + step).count();
        let down = rows.iter().filter(|&&w| w == 1.0).count();
        assert_eq!(up + down, rows.len(), "only the two neighbours occur");
        let fraction = up as f64 / rows.len() as f64;
        assert!((fraction - 0.25).abs() <= 0.006, "{fraction}");
        let mean = rows.iter().map(|&w| f64::from(w)).sum::<f64>() / rows.len() as f64;
        let expected = 1.0 + f64::from(step) / 4.0;
        assert!((mean - expected).abs() <= 6e-6 * f64::from(step) * 1024.0, "{mean}");
        assert!(rows == rounded(dtype, Rounding::Stochastic, 7, step), "the same seed");
        assert!(rows != rounded(dtype, Rounding::Stochastic, 8, step), "another seed");
        assert!(rounded(dtype, Rounding::Nearest, 7, step).iter().all(|&w| w == 1.0));
    }
}

#[test]
fn u16_another_step_rounds_with_other_bits() {
    let spec = TableSpec {
        dtype: Dtype::F16,
        init: Init::Constant(1.0),
        ..table("t", 1000, 8, RuleKind::Sgd)
    };
    let ids: Vec<i64> = (0..1000).collect();
    let bags = batch(&["t"], 1000, &[1; 1000], &ids);
    let mut patterns = std::collections::HashSet::new();
    for step in [1, 2, 3, 1 << 33] {
        let mut group = Group::new(std::slice::from_ref(&spec), Pooling::Sum);
        group.step = step;
        group.update(&bags, &[-0.000_244_140_63; 8000]).expect("ids in range");
        patterns.insert(group.rows(0).0.iter().map(|w| w.to_bits()).collect::<Vec<_>>());
    }
    assert_eq!(patterns.len(), 4);
}

#[test]
fn u16_what_is_representable_never_changes() {
    let values = [1.0, 0.0, -2.5, 65_504.0, 5.960_464_5e-8, f32::INFINITY, f32::NEG_INFINITY];
    let spec = TableSpec { dtype: Dtype::F16, ..table("t", 7, 9, RuleKind::Sgd) };
    let mut group = Group::new(&[spec], Pooling::Sum);
    group.fill(0, |i, _| values[i as usize]);
    let before = group.rows(0).0;
    let bags = batch(&["t"], 1, &[7], &[0, 1, 2, 3, 4, 5, 6]);
    for step in 1..50 {
        group.step = step;
        group.update(&bags, &[0.0; 9]).expect("ids in range");
    }
    assert_eq!(before, group.rows(0).0);
    group.update(&bags, &[f32::NAN; 9]).expect("ids in range");
    assert!(group.rows(0).0.iter().all(|w| w.is_nan()));
}

#[test]
fn u19_tables_of_different_dims_keep_their_own_moments() {
    for dims in [vec![4, 8], vec![1, 3, 4, 128]] {
        let specs: Vec<TableSpec> = dims
            .iter()
            .enumerate()
            .map(|(t, &dim)| table(&format!("t{t}"), 3, dim, RuleKind::Adam))
            .collect();
        let mut group = Group::new(&specs, Pooling::Sum);
        group.lr = 0.1;
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let bags = batch(&names, 1, &vec![3; dims.len()], &[0, 1, 2].repeat(dims.len()));
        let gradient = vec![1.0; group.map.width()];
        for (step, m, v) in [(1, 0.1, 0.001), (2, 0.19, 0.001_999)] {
            group.step = step;
            group.update(&bags, &gradient).expect("ids in range");
            for (t, &dim) in dims.iter().enumerate() {
                let (weights, state) = group.rows(t);
                near(&weights, &vec![-0.1 * step as f32; 3 * dim], 1e-6);
                near(&state[0], &vec![m; 3 * dim], 1e-7);
                near(&state[1], &vec![v; 3 * dim], 1e-8);
            }
        }
    }
}

fn initial(spec: &TableSpec, seed: u64, threads: usize) -> Vec<f32> {
    let mut cpu = Cpu::new(CpuOptions { threads }).expect("threads");
    let mut tables = cpu.create_tables(std::slice::from_ref(spec), seed).expect("table");
    let mut weights = vec![0.0; spec.rows as usize * spec.dim];
    let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
    cpu.read_rows(&mut tables, 0, 0, &mut weights, &mut state).expect("rows");
    weights
}

#[test]
fn u24_initial_weights_do_not_depend_on_how_a_table_is_cut() {
    let whole = TableSpec::new("user", 1000, 16, Optimizer::new(RuleKind::Sgd));
    let reference = initial(&whole, 7, 1);
    for owners in [2_u64, 4] {
        for owner in 0..owners {
            let first_row = owner * 1000 / owners;
            let rows = 1000 / owners;
            let range = Window { first_row, ..whole.window.clone() };
            let spec = TableSpec { rows, window: range, ..whole.clone() };
            let part = &reference[first_row as usize * 16..(first_row + rows) as usize * 16];
            assert!(initial(&spec, 7, 2) == part, "rows {first_row}..");
            let modulo = Window { first_row: owner, row_step: owners, ..whole.window.clone() };
            let spec = TableSpec { rows, window: modulo, ..whole.clone() };
            let part: Vec<f32> = (0..rows)
                .flat_map(|row| {
                    let row = (owner + row * owners) as usize;
                    reference[row * 16..(row + 1) * 16].iter().copied()
                })
                .collect();
            assert!(initial(&spec, 7, 1) == part, "rows {owner} modulo {owners}");
        }
    }
    for first_column in [0, 6, 8] {
        let window = Window { first_column, ..whole.window.clone() };
        let part = initial(&TableSpec { dim: 8, window, ..whole.clone() }, 7, 1);
        for (row, part) in part.chunks(8).enumerate() {
            assert_eq!(part, &reference[row * 16 + first_column..][..8]);
        }
    }
    assert!(initial(&TableSpec { name: "item".into(), ..whole.clone() }, 7, 1) != reference);
    assert!(initial(&whole, 8, 1) != reference);
}

#[test]
fn u24_another_table_in_the_group_changes_nothing_and_touching_does_not_either() {
    let spec = |name: &str| TableSpec::new(name, 1000, 16, Optimizer::new(RuleKind::Sgd));
    let reference = initial(&spec("user"), 7, 1);
    let mut group = Group::new(&[spec("item"), spec("user")], Pooling::Sum);
    let bags = batch(&["item", "user"], 2, &[1, 0, 2, 1], &[5, 999, 500, 0]);
    let out = group.pool(&bags).expect("ids in range");
    assert_eq!(out[32 + 16..], reference[..16], "sample 1 of user is row 0");
    assert!(group.rows(1).0 == reference);
}

/// Columns of a cut table updated in two phases, the statistics added in column order.
fn cut(kind: RuleKind, cuts: &[usize], bags: &Jagged, gradient: &[f32]) -> Vec<Vec<f32>> {
    let (rows, dim) = (50, 24);
    let init = Init::Uniform { low: -1.0, high: 1.0 };
    let mut first_column = 0;
    let mut owners = Vec::new();
    for &width in cuts {
        let window = Window { first_column, ..Window::whole(dim) };
        let spec = TableSpec { window, init, ..table("t", rows, width, kind) };
        let part: Vec<f32> = gradient
            .chunks(dim)
            .flat_map(|row| row[first_column..first_column + width].to_vec())
            .collect();
        let group = Group::new(&[spec], Pooling::Sum);
        owners.push((group, part, RowGradients::new()));
        first_column += width;
    }
    for step in 1..4 {
        let rules = [Optimizer::new(kind).rule(0.1, step)];
        let mut total = Vec::new();
        for (group, part, sums) in &mut owners {
            let pooled = Mat::new(&part[..], bags.batch(), group.map.width());
            let gradients = Gradients { pooled, sequences: &[] };
            let view = bags.as_ref().view();
            group
                .cpu
                .row_gradients(&mut group.tables, &group.map, view, &gradients, &rules, sums)
                .expect("phase one");
            total.resize(sums.rows(0).len(), 0.0);
            total.iter_mut().zip(sums.statistics(0)).for_each(|(total, part)| *total += part);
        }
        for (group, _, sums) in &mut owners {
            group.cpu.apply(&mut group.tables, sums, &[&total], &rules, step).expect("phase two");
        }
    }
    let mut parts: Vec<Vec<f32>> = owners.iter_mut().map(|(group, ..)| group.rows(0).0).collect();
    (0..rows as usize)
        .map(|row| {
            let columns = parts.iter_mut().zip(cuts);
            columns
                .flat_map(|(part, width)| part[row * width..(row + 1) * width].to_vec())
                .collect()
        })
        .collect()
}

#[test]
fn a_row_cut_by_columns_is_updated_as_a_whole_one() {
    let values: Vec<i64> = (0..120).map(|k| k * 7 % 40).collect();
    let bags = batch(&["t"], 30, &[4; 30], &values);
    let gradient: Vec<f32> = (0..30 * 24).map(|k| (k as f32 * 0.7).cos()).collect();
    for kind in RuleKind::ALL {
        let whole = cut(kind, &[24], &bags, &gradient);
        for cuts in [&[8, 16][..], &[5, 3, 16], &[1, 23]] {
            for (a, b) in whole.iter().zip(cut(kind, cuts, &bags, &gradient)) {
                near(&b, a, 1e-6);
            }
        }
    }
}

#[test]
fn one_phase_and_two_phases_give_the_same_bits() {
    let bags = batch(&["t"], 3, &[2, 0, 3], &[4, 4, 9, 0, 4]);
    let gradient: Vec<f32> = (0..3 * 24).map(|k| (k as f32 * 0.7).cos()).collect();
    for kind in RuleKind::ALL {
        let init = Init::Uniform { low: -1.0, high: 1.0 };
        let mut group = Group::new(&[TableSpec { init, ..table("t", 50, 24, kind) }], Pooling::Sum);
        group.lr = 0.1;
        for step in 1..4 {
            group.step = step;
            group.update(&bags, &gradient).expect("ids in range");
        }
        let whole = cut(kind, &[24], &bags, &gradient).concat();
        assert_eq!(group.rows(0).0, whole, "{kind:?}");
    }
}

#[test]
fn a_row_wise_rule_on_some_columns_is_refused_by_name() {
    let window = Window { first_column: 8, ..Window::whole(24) };
    let spec = TableSpec { window, ..table("t", 50, 8, RuleKind::RowWiseAdaGrad) };
    let mut group = Group::new(&[spec], Pooling::Sum);
    let before = group.rows(0);
    let error = group.update(&batch(&["t"], 1, &[1], &[3]), &[1.0; 8]).expect_err("a cut row");
    assert!(error.to_string().starts_with("table \"t\": 8 of 24 columns are here"), "{error}");
    assert_eq!(before, group.rows(0));
}
