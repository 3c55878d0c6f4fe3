//! [`Config`]: options checked against each other, defaults filled in.

use super::device::Device;
use super::nearest::nearest;
use super::optimizers::Optimizers;
use super::ranks::{self, Ranks};
use super::tables::{Tables, check_dims};
use super::words::{BadRows, IdPolicy, ModelKind};
use super::workload::workload;
use super::{DENSE_COLUMNS, Options};
use crate::model::{Interaction, Shape};
use crate::{Error, Result};
use emb_kernels::PairOrder;
use emb_shard::WorkloadSpec;
use std::path::PathBuf;

/// Default columns of embedding rows.
pub(super) const DEFAULT_DIM: usize = 16;
/// Steps on synthetic data unless asked otherwise.
const SYNTHETIC_STEPS: u64 = 4000;
/// Largest batch: bags of a batch are counted in 32 bits.
const MAX_BATCH: usize = 1 << 24;

/// Where samples come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Files or patterns, in order.
    Files(Vec<PathBuf>),
    /// Generated.
    Synthetic,
}

/// How long a run trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Passes over the data.
    Epochs(u64),
    /// Steps, over as many passes as they take.
    Steps(u64),
}

/// A consistent run.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it was made from; saved with checkpoints.
    pub options: Options,
    /// Training data.
    pub data: Origin,
    /// Evaluation files; empty for none (synthetic data evaluates on fresh rows).
    pub eval: Vec<PathBuf>,
    /// Ids at or above a table's rows.
    pub id_policy: IdPolicy,
    /// Lines that can't be read.
    pub bad_rows: BadRows,
    /// Whether a short last batch is left out.
    pub drop_last: bool,
    /// Whether labels between 0 and 1 are accepted.
    pub soft_labels: bool,
    /// Tables and features.
    pub tables: Tables,
    /// Sizes of the dense part.
    pub shape: Shape,
    /// Update rules and schedule.
    pub optimizers: Optimizers,
    /// How long to train.
    pub length: Length,
    /// Samples of a step.
    pub batch_size: usize,
    /// Seed of weights, rounding and synthetic data.
    pub seed: u64,
    /// What computes, and what carries between ranks.
    pub device: Device,
    /// Threads that compute, of each rank.
    pub threads: usize,
    /// Ranks of this host, where each rank is a process.
    pub local: Option<usize>,
    /// The ranks and the plan; `None` for one process.
    pub ranks: Option<Ranks>,
    /// Whether replicas are compared after syncs.
    pub check_replicas: bool,
    /// Where to write a timeline.
    pub timeline: Option<PathBuf>,
    /// Look at the ranks' health every so many steps.
    pub health: Option<u64>,
    /// The look-ups that bytes are expected for, where somebody measured them.
    pub workload: Option<WorkloadSpec>,
    /// Evaluate every so many steps.
    pub eval_every: Option<u64>,
    /// Where to save at the end.
    pub save: Option<PathBuf>,
    /// Save there every so many steps too.
    pub save_every: Option<u64>,
    /// That folder, where the run is to go on from the checkpoint there, if there is one.
    pub resume: Option<PathBuf>,
    /// Where to go on from.
    pub load: Option<PathBuf>,
}

impl Config {
    /// Checks options against each other and fills in defaults.
    ///
    /// # Errors
    /// No data; options that contradict each other or have no effect; values out of range. All by
    /// name, with what to do.
    pub fn resolve(options: Options) -> Result<Self> {
        Self::resolve_among(options, None)
    }

    /// [`resolve`](Self::resolve) for one of several processes, of which `local` are on this host.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn resolve_among(options: Options, local: Option<usize>) -> Result<Self> {
        let data = origin(&options)?;
        let synthetic = data == Origin::Synthetic;
        refuse_void(&options, synthetic)?;
        let optimizers = Optimizers::from_options(&options)?;
        let mut tables = Tables::from_options(&options, &optimizers, synthetic)?;
        let model = options.model.unwrap_or(ModelKind::Dlrm);
        let shape = shape(&options, model)?;
        check_dims(model, options.dim.unwrap_or(DEFAULT_DIM), &tables.tables)?;
        let batch_size = within("batch-size", options.batch_size.unwrap_or(128), MAX_BATCH)?;
        let device = Device::from_options(&options, local)?;
        let threads = ranks::threads(&options, local)?;
        let workload = workload(&options, &tables)?;
        let ranks = Ranks::from_options(&options, &mut tables, batch_size, workload.as_ref())?;
        Ok(Self {
            data,
            eval: options.eval.clone(),
            id_policy: options.id_policy.unwrap_or(IdPolicy::Modulo),
            bad_rows: options.bad_rows.unwrap_or(BadRows::Error),
            drop_last: options.drop_last.unwrap_or(false),
            soft_labels: options.soft_labels.unwrap_or(false),
            tables,
            shape,
            optimizers,
            length: length(&options, synthetic),
            batch_size,
            seed: options.seed.unwrap_or(1),
            device,
            threads,
            local,
            ranks,
            check_replicas: options.check_replicas.unwrap_or(false),
            timeline: options.timeline.clone(),
            health: options.health.filter(|&every| every > 0),
            workload,
            eval_every: options.eval_every,
            save: options.save.clone(),
            save_every: options.save_every,
            resume: options.save.clone().filter(|_| options.resume == Some(true)),
            load: options.load.clone(),
            options,
        })
    }
}

fn origin(options: &Options) -> Result<Origin> {
    let word = |path: &PathBuf| path.as_os_str() == "synthetic";
    match &options.data[..] {
        [] => Err(Error::Config(
            "no data: give --data FILE... (Criteo format), or --data synthetic".into(),
        )),
        [one] if word(one) => Ok(Origin::Synthetic),
        several if several.iter().any(word) => Err(Error::Config(
            "--data synthetic stands alone; a file of that name is written ./synthetic".into(),
        )),
        [one] if !one.exists() && one.to_str().is_some_and(near_synthetic) => Err(Error::Config(
            format!("there is no file {}; did you mean --data synthetic?", one.display()),
        )),
        files => Ok(Origin::Files(files.to_vec())),
    }
}

fn near_synthetic(word: &str) -> bool {
    nearest(word, &["synthetic"]).is_some()
}

/// Refuses options of saving and evaluating that mean nothing.
fn refuse_in_between(options: &Options) -> Result<()> {
    for (name, every) in [("eval-every", options.eval_every), ("save-every", options.save_every)] {
        if every == Some(0) {
            return Err(Error::Config(format!("--{name} is 0, valid: 1 or more")));
        }
    }
    let resume = options.resume == Some(true);
    for (name, given) in [("save-every", options.save_every.is_some()), ("resume", resume)] {
        if given && options.save.is_none() {
            return Err(Error::Config(format!("--{name} has no effect: give --save DIR")));
        }
    }
    if resume && options.load.is_some() {
        return Err(Error::Config(
            "--load and --resume both say where to go on from: give one (--resume: the folder of \
             --save, if it holds a checkpoint)"
                .into(),
        ));
    }
    Ok(())
}

fn refuse_void(options: &Options, synthetic: bool) -> Result<()> {
    let refuse = |what: &str| Err(Error::Config(what.into()));
    refuse_in_between(options)?;
    if options.epochs.is_some() && options.steps.is_some() {
        return refuse("--epochs and --steps both say how long to train: give one");
    }
    if options.steps == Some(0) || options.epochs == Some(0) {
        return refuse("--steps and --epochs are 1 or more");
    }
    if synthetic {
        if options.epochs.is_some() {
            return refuse("--epochs has no effect: synthetic data has no end; give --steps");
        }
        if !options.eval.is_empty() {
            return refuse("--eval has no effect: synthetic data is evaluated on fresh rows");
        }
        let only_files = [
            ("id-policy", options.id_policy.is_some()),
            ("bad-rows", options.bad_rows.is_some()),
            ("drop-last", options.drop_last.is_some()),
            ("soft-labels", options.soft_labels.is_some()),
        ];
        if let Some((name, _)) = only_files.iter().find(|(_, given)| *given) {
            return Err(Error::Config(format!("--{name} has no effect on synthetic data")));
        }
    } else if options.eval_every.is_some() && options.eval.is_empty() {
        return refuse("--eval-every has no effect without --eval");
    }
    let dcn = options.model == Some(ModelKind::DlrmDcn);
    for (name, given) in
        [("dcn-layers", options.dcn_layers.is_some()), ("dcn-rank", options.dcn_rank.is_some())]
    {
        if given && !dcn {
            return refuse(&format!("--{name} has no effect: give --model dlrm-dcn"));
        }
    }
    Ok(())
}

fn length(options: &Options, synthetic: bool) -> Length {
    match (options.steps, options.epochs) {
        (Some(steps), _) => Length::Steps(steps),
        (None, _) if synthetic => Length::Steps(SYNTHETIC_STEPS),
        (None, epochs) => Length::Epochs(epochs.unwrap_or(1)),
    }
}

fn shape(options: &Options, model: ModelKind) -> Result<Shape> {
    let dim = options.dim.unwrap_or(DEFAULT_DIM);
    let mut bottom = options.bottom.clone().unwrap_or_else(|| vec![512, 256, 64]);
    let top = options.top.clone().unwrap_or_else(|| vec![512, 256]);
    for (name, sizes) in [("bottom", &bottom), ("top", &top)] {
        if let Some(size) = sizes.iter().find(|&&size| size == 0 || size > 1 << 20) {
            return Err(Error::Config(format!("--{name} has a layer of {size}, valid: 1 to 2^20")));
        }
    }
    bottom.push(dim);
    let interaction = match model {
        ModelKind::Dlrm => Interaction::Dot(PairOrder::Upper),
        ModelKind::DlrmDcn => Interaction::Cross {
            layers: within("dcn-layers", options.dcn_layers.unwrap_or(3), 1000)?,
            rank: within("dcn-rank", options.dcn_rank.unwrap_or(512), 1 << 20)?,
        },
    };
    Ok(Shape { dense_columns: DENSE_COLUMNS, bottom, top, interaction })
}

pub(super) fn within(name: &str, value: usize, most: usize) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::Config(format!("--{name} is {value}, valid: 1 to {most}")))
}
