//! Both models against TorchRec's: logits, loss and gradients of the first step, weights after all.

mod support;

use emb_dlrm::model::{Interaction, Shape};
use emb_dlrm::train::{Rates, Samples, Trainer};
use emb_dlrm::{Dlrm, EmbeddingBags};
use emb_kernels::{Backend, Cpu, CpuOptions, Feature, Jagged, PairOrder, Pooling, TableSpec};
use emb_optim::{DenseOptimizer, Extent, Optimizer, OptimizerConfig, RuleKind, Schedule, Slot};
use support::Golden;

#[test]
fn golden_dlrm_dot() {
    check("dlrm_dot");
}

#[test]
fn golden_dlrm_dcn() {
    check("dlrm_dcn");
}

/// A rule as the metadata's sentence describes it: `row-wise AdaGrad lr 0.1 eps 1e-8, ...`.
fn rule(sentence: &str) -> (OptimizerConfig, f64) {
    let words: Vec<&str> = sentence.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        Some(words[at + 1].parse::<f64>().expect("a number"))
    };
    let lower = sentence.to_lowercase();
    let kind = match () {
        () if lower.contains("row-wise adagrad") => RuleKind::RowWiseAdaGrad,
        () if lower.contains("adagrad") => RuleKind::AdaGrad,
        () if lower.contains("adam") => RuleKind::Adam,
        () if lower.starts_with("sgd") => RuleKind::Sgd,
        () => panic!("unknown rule {sentence:?}"),
    };
    let config = OptimizerConfig {
        eps: after("eps"),
        initial_accumulator: after("accumulator"),
        ..OptimizerConfig::new(kind)
    };
    (config, after("lr").expect("a learning rate"))
}

/// Our name of a TorchRec parameter of the dense part.
fn our_name(golden: &Golden, name: &str) -> Option<String> {
    let layers = (0..).take_while(|i| {
        let probe = format!("init.over_arch.model.0._mlp.{i}._linear.weight");
        golden.names().contains(&probe)
    });
    let last = layers.count();
    let part = |rest: &str| rest.replace("._linear.", ".");
    if let Some(rest) = name.strip_prefix("dense_arch.model._mlp.") {
        return Some(format!("bottom.{}", part(rest)));
    }
    if let Some(rest) = name.strip_prefix("over_arch.model.0._mlp.") {
        return Some(format!("top.{}", part(rest)));
    }
    if let Some(rest) = name.strip_prefix("over_arch.model.1.") {
        return Some(format!("top.{last}.{rest}"));
    }
    let cross = name.strip_prefix("inter_arch.crossnet.")?;
    let (kind, layer) = cross.split_once('.')?;
    let ours = match kind {
        "V_kernels" => "v",
        "W_kernels" => "w",
        _ => "bias",
    };
    Some(format!("cross.{layer}.{ours}"))
}

fn table_weight(t: usize) -> String {
    format!("sparse_arch.embedding_bag_collection.embedding_bags.t_cat_{t}.weight")
}

struct Setup {
    golden: Golden,
    rows: Vec<u64>,
    dim: usize,
    batch: usize,
    dense_in: usize,
    shape: Shape,
    names: Vec<String>,
}

impl Setup {
    fn new(golden: Golden) -> Self {
        let rows: Vec<u64> = serde_json::from_str(&golden.meta("rows")).expect("rows");
        let number = |key: &str| golden.meta(key).parse::<usize>().expect("a number");
        let outputs = |prefix: &str| -> Vec<usize> {
            (0..usize::MAX)
                .map(|i| format!("init.{prefix}.{i}._linear.bias"))
                .take_while(|name| golden.names().contains(name))
                .map(|name| golden.shape(&name)[0])
                .collect()
        };
        let names = golden.names();
        let layers =
            names.iter().filter(|name| name.starts_with("init.inter_arch.crossnet.V")).count();
        let interaction = if layers == 0 {
            Interaction::Dot(PairOrder::Upper)
        } else {
            Interaction::Cross {
                layers,
                rank: golden.shape("init.inter_arch.crossnet.V_kernels.0")[0],
            }
        };
        let (dim, batch, dense_in) = (number("dim"), number("batch"), number("dense_in"));
        let shape = Shape {
            dense_columns: dense_in,
            bottom: outputs("dense_arch.model._mlp"),
            top: outputs("over_arch.model.0._mlp"),
            interaction,
        };
        let names = (0..rows.len()).map(|t| format!("t_cat_{t}")).collect();
        Self { golden, rows, dim, batch, dense_in, shape, names }
    }

    /// A model with the file's initial weights.
    fn trainer(&self, table: (Optimizer, f64), dense: (Optimizer, f64)) -> Trainer<Cpu> {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("a backend");
        let specs: Vec<TableSpec> = self
            .names
            .iter()
            .zip(&self.rows)
            .map(|(name, &rows)| TableSpec::new(name, rows, self.dim, table.0))
            .collect();
        let features = self
            .names
            .iter()
            .enumerate()
            .map(|(table, name)| Feature { name: name.clone(), table, pooling: Pooling::Sum })
            .collect();
        let slots = specs[0].optimizer.slots();
        let lrs = vec![table.1; specs.len()];
        let mut bags =
            EmbeddingBags::new(&mut cpu, &specs, features, lrs, self.dim, 1).expect("tables");
        for (t, &rows) in self.rows.iter().enumerate() {
            let weights = self.golden.f32(&format!("init.{}", table_weight(t)));
            let width = |slot: &Slot| match slot.extent {
                Extent::Row => rows as usize,
                Extent::Element => weights.len(),
            };
            let state: Vec<Vec<f32>> =
                slots.iter().map(|slot| vec![table.0.initial_state(*slot); width(slot)]).collect();
            cpu.write_rows(bags.tables_mut(), t, 0, &weights, &state).expect("rows");
        }
        let dense_rule = DenseOptimizer::new(dense.0).expect("a dense rule");
        let mut model = Dlrm::new(&mut cpu, &self.shape, bags, &dense_rule, 1).expect("a model");
        for name in self.golden.names() {
            let Some(theirs) = name.strip_prefix("init.") else { continue };
            let Some(ours) = our_name(&self.golden, theirs) else { continue };
            let parameter = parameter(&model, &ours);
            let weights = self.golden.f32(&name);
            cpu.upload(&weights, Cpu::view_mut(&mut model.dense.weights, parameter)).expect("copy");
        }
        let rates = Rates { tables: table.1, dense: dense.1 };
        let schedule = Schedule::constant(1.0).expect("a schedule");
        Trainer::new(cpu, model, emb_comm::Solo, self.dense_in, dense_rule, rates, schedule)
            .expect("a trainer")
    }

    /// Runs `f` on the samples of one step.
    fn with_step<T>(&self, step: usize, f: impl FnOnce(Samples<'_>) -> T) -> T {
        let lengths = self.golden.i64(&format!("step{step}.lengths"));
        let values = self.golden.i64(&format!("step{step}.values"));
        let sparse =
            Jagged::from_lengths(&self.names, self.batch, &lengths, values, None).expect("a batch");
        f(Samples {
            dense: &self.golden.f32(&format!("step{step}.dense")),
            labels: &self.golden.f32(&format!("step{step}.label")),
            sparse: sparse.as_ref(),
        })
    }
}

fn parameter(model: &Dlrm<Cpu>, name: &str) -> std::ops::Range<usize> {
    let found = model.dense.parameters.iter().find(|parameter| parameter.name == name);
    found.unwrap_or_else(|| panic!("no parameter {name}")).range.clone()
}

fn close(what: &str, ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what}[{i}]: {a} here, {b} there");
    }
}

fn check(name: &str) {
    let Some(golden) = Golden::open(name) else { return };
    let setup = Setup::new(golden);
    let hyper: serde_json::Value =
        serde_json::from_str(&setup.golden.meta("hyper")).expect("hyper-parameters");
    let read = |key: &str| rule(hyper[key].as_str().expect("a sentence"));
    let (table, dense) = (read("sparse"), read("dense"));
    first_step(&setup);
    let build = |(config, lr): (OptimizerConfig, f64)| (config.build().expect("a rule"), lr);
    let mut trainer = setup.trainer(build(table), build(dense));
    let steps: usize = setup.golden.meta("steps").parse().expect("a number");
    for step in 0..steps {
        let loss = setup.with_step(step, |samples| trainer.train_step(samples).expect("a step"));
        let mean = (loss.sum / loss.rows as f64) as f32;
        let theirs = setup.golden.f32(&format!("step{step}.loss"));
        close(
            &format!("{name} loss {step}"),
            &[mean],
            &theirs,
            if step == 0 { 1e-5 } else { 1e-4 },
        );
    }
    let mut compared = 0;
    for full in setup.golden.names() {
        let Some(theirs) = full.strip_prefix("final.") else { continue };
        let Some(ours) = our_name(&setup.golden, theirs) else { continue };
        let range = parameter(&trainer.model, &ours);
        let mut weights = vec![0.0; range.len()];
        let view = Cpu::view(&trainer.model.dense.weights, range);
        trainer.backend.download(view, &mut weights).expect("copy");
        close(&format!("{name} {ours}"), &weights, &setup.golden.f32(&full), 1e-4);
        compared += 1;
    }
    assert_eq!(compared, trainer.model.dense.parameters.len(), "every parameter is compared");
    for (t, &rows) in setup.rows.iter().enumerate() {
        let weights = read_table(&mut trainer, t, rows as usize, setup.dim);
        let theirs = setup.golden.f32(&format!("final.{}", table_weight(t)));
        close(&format!("{name} table {t}"), &weights, &theirs, 1e-4);
    }
}

/// Logits, loss and all gradients of step 0: with SGD at rate 1 the gradient of a table is what
/// its weights lost.
fn first_step(setup: &Setup) {
    let sgd = (Optimizer::new(RuleKind::Sgd), 1.0);
    let mut trainer = setup.trainer(sgd, sgd);
    let mut logits = Vec::new();
    setup.with_step(0, |samples| trainer.logits(samples, &mut logits).expect("logits"));
    close("logits", &logits, &setup.golden.f32("step0.logits"), 1e-5);
    let loss = setup.with_step(0, |samples| trainer.train_step(samples).expect("a step"));
    let mean = (loss.sum / loss.rows as f64) as f32;
    close("loss", &[mean], &setup.golden.f32("step0.loss"), 1e-5);
    let mut gradients = vec![0.0; trainer.model.dense.total()];
    let view = Cpu::view(&trainer.model.dense.gradients, 0..gradients.len());
    trainer.backend.download(view, &mut gradients).expect("copy");
    let mut compared = 0;
    for full in setup.golden.names() {
        let Some(theirs) = full.strip_prefix("step0.grad.") else { continue };
        let Some(ours) = our_name(&setup.golden, theirs) else { continue };
        let range = parameter(&trainer.model, &ours);
        close(&ours, &gradients[range], &setup.golden.f32(&full), 1e-5);
        compared += 1;
    }
    assert_eq!(compared, trainer.model.dense.parameters.len(), "every gradient is compared");
    for (t, &rows) in setup.rows.iter().enumerate() {
        let after = read_table(&mut trainer, t, rows as usize, setup.dim);
        let before = setup.golden.f32(&format!("init.{}", table_weight(t)));
        let lost: Vec<f32> =
            before.iter().zip(&after).map(|(before, after)| before - after).collect();
        let theirs = setup.golden.f32(&format!("step0.grad.{}", table_weight(t)));
        close(&format!("gradient of table {t}"), &lost, &theirs, 1e-5);
    }
}

fn read_table(trainer: &mut Trainer<Cpu>, t: usize, rows: usize, dim: usize) -> Vec<f32> {
    let slots = trainer.model.embeddings.specs()[t].optimizer.slots();
    let mut weights = vec![0.0; rows * dim];
    let width = |slot: &Slot| match slot.extent {
        Extent::Row => rows,
        Extent::Element => rows * dim,
    };
    let mut state: Vec<Vec<f32>> = slots.iter().map(|slot| vec![0.0; width(slot)]).collect();
    let Trainer { backend, model, .. } = trainer;
    backend.read_rows(model.embeddings.tables_mut(), t, 0, &mut weights, &mut state).expect("rows");
    weights
}
