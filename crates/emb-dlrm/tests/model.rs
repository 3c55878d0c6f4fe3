//! Claims about the models and the embedding layer that no golden file makes.

use emb_dlrm::model::{Dense, Interaction, Layout, Shape};
use emb_dlrm::train::{Rates, Samples, Trainer};
use emb_dlrm::{DeviceBatch, Dlrm, EmbeddingBags};
use emb_kernels::{
    Backend, Cpu, CpuOptions, Feature, Init, Jagged, Mat, PairOrder, Pooling, TableSpec,
};
use emb_optim::{DenseOptimizer, Optimizer, RuleKind, Schedule};

fn cpu(threads: usize) -> Cpu {
    Cpu::new(CpuOptions { threads }).expect("a backend")
}

fn feature(name: &str, table: usize) -> Feature {
    Feature { name: name.into(), table, pooling: Pooling::Sum }
}

/// `(weights, state)` of all rows of a table.
fn rows_of(
    cpu: &mut Cpu,
    bags: &mut EmbeddingBags<Cpu>,
    table: usize,
) -> (Vec<f32>, Vec<Vec<f32>>) {
    let spec = bags.specs()[table].clone();
    let (rows, dim) = (spec.rows as usize, spec.dim);
    let mut weights = vec![0.0; rows * dim];
    let width = |slot: &emb_optim::Slot| match slot.extent {
        emb_optim::Extent::Row => rows,
        emb_optim::Extent::Element => rows * dim,
    };
    let mut state: Vec<Vec<f32>> =
        spec.optimizer.slots().iter().map(|slot| vec![0.0; width(slot)]).collect();
    cpu.read_rows(bags.tables_mut(), table, 0, &mut weights, &mut state).expect("rows");
    (weights, state)
}

#[test]
fn u20_the_schedule_reaches_tables_and_dense_parameters_alike_and_survives_a_resume() {
    let schedule = Schedule::piecewise(0.1, vec![(2, 0.2), (3, 0.4)]).expect("a schedule");
    let sgd = Optimizer::new(RuleKind::Sgd);
    let dense_rule = DenseOptimizer::new(sgd).expect("a dense rule");
    let mut cpu = cpu(1);
    let mut spec = TableSpec::new("t", 3, 2, sgd);
    spec.init = Init::Constant(0.0);
    let mut bags = EmbeddingBags::new(&mut cpu, &[spec], vec![feature("t", 0)], vec![1.0], 0, 1)
        .expect("tables");
    let mut layout = Layout::default();
    let bias = layout.add("bias".into(), &[2], 0.0);
    let mut dense = Dense::new(&mut cpu, layout, &[], 1).expect("parameters");
    cpu.upload(&[1.0, 1.0], Cpu::view_mut(&mut dense.gradients, bias.clone())).expect("copy");
    let ids = Jagged::from_lengths(&["t"], 1, &[1], vec![1], None).expect("a batch");
    let mut batch = DeviceBatch::new(&mut cpu, 0).expect("a batch");
    batch.upload(&mut cpu, &[], &[0.0], ids.as_ref()).expect("copy");
    let ones = [1.0_f32; 2];
    for step in 1..=2 {
        let lr = schedule.lr(step);
        bags.backward(&mut cpu, batch.sparse(), Mat::new(&ones[..], 1, 2), lr, step).expect("step");
        dense.update(&mut cpu, &dense_rule.rule(lr, step)).expect("step");
    }
    // A resumed run has the schedule as text and the step, nothing else.
    let resumed: Schedule = schedule.to_string().parse().expect("a schedule");
    let lr = resumed.lr(3);
    bags.backward(&mut cpu, batch.sparse(), Mat::new(&ones[..], 1, 2), lr, 3).expect("step");
    dense.update(&mut cpu, &dense_rule.rule(lr, 3)).expect("step");
    let (weights, _) = rows_of(&mut cpu, &mut bags, 0);
    let mut biases = vec![0.0; 2];
    cpu.download(Cpu::view(&dense.weights, bias), &mut biases).expect("copy");
    for weight in weights[2..4].iter().chain(&biases) {
        assert!((weight + 0.7).abs() < 1e-6, "{weight}");
    }
    assert_eq!(weights[..2], [0.0, 0.0], "an untouched row stays");
}

#[test]
fn u17_tables_and_dense_parameters_have_one_eps_and_one_initial_accumulator() {
    let tables = Optimizer::new(RuleKind::AdaGrad);
    let dense = DenseOptimizer::new(Optimizer::new(RuleKind::AdaGrad)).expect("a dense rule");
    assert_eq!(tables.eps(), dense.optimizer().eps());
    assert_eq!(tables.eps(), 1e-8);
    let slot = tables.slots()[0];
    assert_eq!(tables.initial_state(slot), dense.optimizer().initial_state(slot));
}

/// A small model over jagged bags with several features on a table.
fn small(threads: usize, interaction: Interaction) -> Trainer<Cpu> {
    let mut cpu = cpu(threads);
    let rule = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let specs = vec![TableSpec::new("a", 50, 8, rule), TableSpec::new("b", 7, 8, rule)];
    let features = vec![feature("a1", 0), feature("b", 1), feature("a2", 0)];
    let bags = EmbeddingBags::new(&mut cpu, &specs, features, vec![0.1; 2], 8, 3).expect("tables");
    let dense = DenseOptimizer::new(Optimizer::new(RuleKind::AdaGrad)).expect("a dense rule");
    let shape = Shape { dense_columns: 5, bottom: vec![16, 8], top: vec![12], interaction };
    let model = Dlrm::new(&mut cpu, &shape, bags, &dense, 3).expect("a model");
    let schedule = Schedule::constant(1.0).expect("a schedule");
    let rates = Rates { tables: 0.1, dense: 0.05 };
    Trainer::new(cpu, model, emb_comm::Solo, 5, dense, rates, schedule).expect("a trainer")
}

/// Deterministic samples: uneven bags, some empty.
fn samples(rows: usize, seed: usize) -> (Vec<f32>, Vec<f32>, Jagged) {
    let dense = (0..rows * 5).map(|i| ((i * 37 + seed * 11) % 19) as f32 / 19.0).collect();
    let labels = (0..rows).map(|i| ((i + seed).is_multiple_of(3)) as u8 as f32).collect();
    let lengths: Vec<i64> = (0..3 * rows).map(|i| ((i * 5 + seed) % 4) as i64).collect();
    let limits = [50, 7, 50];
    let mut values = Vec::new();
    for (bag, &length) in lengths.iter().enumerate() {
        for k in 0..length {
            values.push(((bag * 13 + k as usize * 29 + seed * 3) % limits[bag / rows]) as i64);
        }
    }
    let names = ["a1", "b", "a2"];
    let sparse = Jagged::from_lengths(&names, rows, &lengths, values, None).expect("a batch");
    (dense, labels, sparse)
}

const BOTH: [Interaction; 2] =
    [Interaction::Dot(PairOrder::Upper), Interaction::Cross { layers: 2, rank: 4 }];

#[test]
fn both_models_learn_and_threads_change_no_bit() {
    for interaction in BOTH {
        let mut runs = Vec::new();
        for threads in [1, 2] {
            let mut trainer = small(threads, interaction);
            let mut losses = Vec::new();
            for step in 0..60 {
                let (dense, labels, sparse) = samples(96, step % 4);
                let samples = Samples { dense: &dense, labels: &labels, sparse: sparse.as_ref() };
                let loss = trainer.train_step(samples).expect("a step");
                losses.push(loss.sum / loss.rows as f64);
            }
            assert!(losses[59] < 0.7 * losses[0], "{interaction:?}: {losses:?}");
            runs.push(losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>());
        }
        assert_eq!(runs[0], runs[1], "{interaction:?}");
    }
}

#[test]
fn u01_an_empty_batch_and_a_batch_without_ids_train() {
    for interaction in BOTH {
        let mut trainer = small(2, interaction);
        let names = ["a1", "b", "a2"];
        let none = Jagged::from_lengths(&names, 0, &[], vec![], None).expect("a batch");
        let samples = Samples { dense: &[], labels: &[], sparse: none.as_ref() };
        let loss = trainer.train_step(samples).expect("an empty step");
        assert_eq!((loss.sum, loss.rows, trainer.step()), (0.0, 0, 0));
        let before = rows_of(&mut trainer.backend, &mut trainer.model.embeddings, 0);
        let empty = Jagged::from_lengths(&names, 4, &[0; 12], vec![], None).expect("a batch");
        let samples =
            Samples { dense: &[0.5; 20], labels: &[0.0, 1.0, 0.0, 1.0], sparse: empty.as_ref() };
        assert!(trainer.train_step(samples).expect("a step").sum > 0.0);
        assert_eq!(before, rows_of(&mut trainer.backend, &mut trainer.model.embeddings, 0));
    }
}

#[test]
fn u06_an_id_outside_its_table_changes_nothing_and_is_named() {
    let mut trainer = small(1, BOTH[0]);
    let (dense, labels, _) = samples(2, 0);
    let names = ["a1", "b", "a2"];
    let sparse =
        Jagged::from_lengths(&names, 2, &[1, 1, 1, 2, 0, 1], vec![3, 49, 6, 0, 7, 12], None)
            .expect("a batch");
    let tables = |trainer: &mut Trainer<Cpu>| {
        let (backend, bags) = (&mut trainer.backend, &mut trainer.model.embeddings);
        (rows_of(backend, bags, 0), rows_of(backend, bags, 1))
    };
    let before = tables(&mut trainer);
    let samples = Samples { dense: &dense, labels: &labels, sparse: sparse.as_ref() };
    let error = trainer.train_step(samples).expect_err("row 7 of 7 rows").to_string();
    for word in ["\"b\"", "sample 1", "position 1", "id 7", "0..=6"] {
        assert!(error.contains(word), "{word} is missing from: {error}");
    }
    assert_eq!(before, tables(&mut trainer));
    assert_eq!(trainer.step(), 0);
}

#[test]
fn u22_a_loss_that_is_not_finite_is_refused_before_anything_changes() {
    let mut trainer = small(1, BOTH[0]);
    let (mut dense, labels, sparse) = samples(8, 1);
    dense[3] = f32::INFINITY;
    let before = rows_of(&mut trainer.backend, &mut trainer.model.embeddings, 0);
    let samples = Samples { dense: &dense, labels: &labels, sparse: sparse.as_ref() };
    let error = trainer.train_step(samples).expect_err("not finite").to_string();
    assert!(error.contains("step 1") && error.contains("bottom MLP"), "{error}");
    assert_eq!(before, rows_of(&mut trainer.backend, &mut trainer.model.embeddings, 0));
}

#[test]
fn dims_that_differ_are_refused_for_dot_interaction_and_taken_for_cross_layers() {
    let build = |interaction| {
        let mut cpu = cpu(1);
        let rule = Optimizer::new(RuleKind::Sgd);
        let specs = vec![TableSpec::new("a", 5, 8, rule), TableSpec::new("wide", 7, 3, rule)];
        let features = vec![feature("a", 0), feature("wide", 1)];
        let bags =
            EmbeddingBags::new(&mut cpu, &specs, features, vec![0.1; 2], 8, 3).expect("tables");
        let dense = DenseOptimizer::new(rule).expect("a dense rule");
        let shape = Shape { dense_columns: 5, bottom: vec![8], top: vec![], interaction };
        Dlrm::new(&mut cpu, &shape, bags, &dense, 3).map(|_| ())
    };
    let error = build(BOTH[0]).expect_err("dims 8 and 3").to_string();
    assert!(error.contains("\"wide\"") && error.contains('3') && error.contains('8'), "{error}");
    build(BOTH[1]).expect("cross layers take any dims");
}
