//! What was decided of a run, decision by decision, in words: [`of_model`], [`of_ranks`].
//!
//! Ranks that were started with other options, and checkpoints of other options, are refused by the
//! name of what differs. Compared is what was resolved: saying a default is saying nothing.

use super::{Config, FeaturePlan, Length, Ranks, TablePlan};
use crate::model::Interaction;
use std::fmt::{Debug, Display, Write as _};
use std::hash::{DefaultHasher, Hasher};

/// One decision, as a person would write or read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is about: `model`, `tables`, `optimizers`, `data`, `plan`, `training`, ...
    pub section: &'static str,
    /// Which decision it is; equal for two runs that decided it otherwise.
    pub name: String,
    /// The decision, with the flag that makes it where there is one: `--batch-size 128`.
    pub words: String,
    /// What is compared: equal where two ways of saying it mean the same.
    pub value: String,
}

/// Those that decide the weights after a number of steps in one process: the model, tables, rules,
/// how data are read, the seed and the batch.
pub fn of_model(config: &Config) -> Vec<Choice> {
    let mut all = Choices::default();
    all.flag("training", "seed", config.seed);
    all.flag("training", "batch-size", config.batch_size);
    shape(config, &mut all);
    let optimizers = &config.optimizers;
    all.flag("optimizers", "optimizer", optimizers.tables);
    all.flag("optimizers", "lr", optimizers.lr);
    all.flag("optimizers", "dense-optimizer", optimizers.dense.optimizer());
    all.flag("optimizers", "dense-lr", optimizers.dense_lr);
    all.flag("optimizers", "lr-warmup", config.options.lr_warmup.unwrap_or(0));
    let decay = config.options.lr_decay.as_deref().unwrap_or("constant");
    all.flag("optimizers", "lr-decay", decay);
    all.flag("data", "id-policy", config.id_policy);
    all.flag("data", "bad-rows", config.bad_rows);
    all.flag("data", "drop-last", config.drop_last);
    all.flag("data", "soft-labels", config.soft_labels);
    all.words("tables", "tables", format!("{} tables", config.tables.tables.len()));
    for plan in &config.tables.tables {
        all.words("tables", &format!("table {}", plan.spec.name), table(plan));
    }
    for (number, plan) in config.tables.features.iter().enumerate() {
        all.words("tables", &format!("feature {number}"), feature(config, plan));
    }
    all.0
}

/// Those that all ranks of a run have to make alike, beside [`of_model`]: where tables live, what
/// computes, and when all ranks do something together.
pub fn of_ranks(config: &Config) -> Vec<Choice> {
    let mut all = Choices::default();
    match config.length {
        Length::Steps(steps) => all.words("training", "length", format!("--steps {steps}")),
        Length::Epochs(epochs) => all.words("training", "length", format!("--epochs {epochs}")),
    }
    all.every("eval-every", config.eval_every);
    all.every("save-every", config.save_every);
    all.every("health", config.health);
    let given = |given: bool, flag: &str| {
        if given { format!("--{flag}") } else { format!("no --{flag}") }
    };
    let either = [
        ("save", config.save.is_some()),
        ("load", config.load.is_some()),
        ("resume", config.resume.is_some()),
        ("timeline", config.timeline.is_some()),
        ("check-replicas", config.check_replicas),
        ("eval", !config.eval.is_empty()),
    ];
    for (flag, is) in either {
        all.words("training", flag, given(is, flag));
    }
    all.flag("device", "device", config.device.kind);
    all.flag("device", "precision", config.device.precision);
    if let Some(ranks) = &config.ranks {
        plan(config, ranks, &mut all);
    }
    all.0
}

fn plan(config: &Config, ranks: &Ranks, all: &mut Choices) {
    all.flag("plan", "world", ranks.world());
    all.words("plan", "node", format!("{} ranks a node", ranks.ranks_per_node));
    all.words("wire", "id-wire", format!("--id-wire {:?}", ranks.id_wire).to_lowercase());
    match config.options.wire {
        Some(wire) => all.words("wire", "wire", format!("--wire {wire}")),
        None => all.words("wire", "wire", "no --wire".to_owned()),
    }
    all.means(format!("{:?}", ranks.wires));
    let digest = digest(&(ranks.plan.node_ranks(), ranks.plan.placed()));
    // The flags that made it say more to a person than the digest, and less to a program.
    let options = &config.options;
    let mut words = String::new();
    let mut say = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(words, "--{flag} {value} ");
        }
    };
    say("plan", options.plan.clone());
    say("planner", options.planner.clone());
    say("replicas", options.replicas.map(|replicas| replicas.to_string()));
    say("layout", options.layout.map(|layout| layout.to_string()));
    say("sync", options.sync.map(|sync| sync.to_string()));
    say("sync-every", options.sync_every.map(|every| every.to_string()));
    say("replica-scaling", options.replica_scaling.map(|scaling| scaling.to_string()));
    let _ = write!(words, "(plan {digest:08x})");
    all.words("plan", "plan", words);
    all.means(digest.to_string());
}

fn shape(config: &Config, all: &mut Choices) {
    let sizes =
        |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let shape = &config.shape;
    let (dim, hidden) = shape.bottom.split_last().map_or((0, &[][..]), |(dim, rest)| (*dim, rest));
    match shape.interaction {
        Interaction::Dot(_) => all.flag("model", "model", "dlrm"),
        Interaction::Cross { layers, rank } => {
            all.flag("model", "model", "dlrm-dcn");
            all.flag("model", "dcn-layers", layers);
            all.flag("model", "dcn-rank", rank);
        }
    }
    all.flag("model", "dim", dim);
    all.flag("model", "bottom", sizes(hidden));
    all.flag("model", "top", sizes(&shape.top));
}

fn table(plan: &TablePlan) -> String {
    let TablePlan { spec, buckets, lr } = plan;
    // What replicas ask of the rule is of the plan.
    let rule = spec.optimizer.to_string();
    let rule = rule.split(" replica=").next().unwrap_or(&rule);
    format!(
        "table {:?} of {buckets} rows, dim {}, {:?}, {:?}, {:?}, {rule}, lr {lr}",
        spec.name, spec.dim, spec.dtype, spec.rounding, spec.init
    )
    .to_lowercase()
}

fn feature(config: &Config, plan: &FeaturePlan) -> String {
    let FeaturePlan { name, table, column, pooling, weighted, bag } = plan;
    let table = &config.tables.tables[*table].spec.name;
    let weighted = if *weighted { ", weighted" } else { "" };
    format!(
        "feature {name:?} of column {column} in table {table:?}, {pooling:?}, bags of {bag}{weighted}"
    )
}

/// A number that differs where what is printed of a value differs.
fn digest(value: &impl Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(format!("{value:?}").as_bytes());
    hasher.finish()
}

#[derive(Default)]
struct Choices(Vec<Choice>);

impl Choices {
    fn words(&mut self, section: &'static str, name: &str, words: String) {
        let (name, value) = (name.to_owned(), words.clone());
        self.0.push(Choice { section, name, words, value });
    }

    /// What the last choice comes to, however it was said.
    fn means(&mut self, value: String) {
        if let Some(choice) = self.0.last_mut() {
            choice.value = value;
        }
    }

    fn flag(&mut self, section: &'static str, name: &str, value: impl Display) {
        self.words(section, name, format!("--{name} {value}"));
    }

    fn every(&mut self, name: &str, every: Option<u64>) {
        match every {
            Some(every) => self.flag("training", name, every),
            None => self.words("training", name, format!("no --{name}")),
        }
    }
}
