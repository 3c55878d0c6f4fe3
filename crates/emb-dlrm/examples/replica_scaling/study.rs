//! What is compared: a run in one process, the same run over replicas, and where they end.

use emb_comm::{Collective, Local};
use emb_dlrm::config::{Config, ModelKind, OptimizerKind, Options, ScalingKind, TableOptions};
use emb_dlrm::data::synthetic::{EVALUATION_START, Feature, Synthetic};
use emb_dlrm::data::{Feed, Share};
use emb_dlrm::train::{Samples, Trainer, build, build_rank, evaluate};
use emb_dlrm::{Embeddings, Error, Result};
use emb_kernels::{Backend, Cpu, CpuOptions};
use emb_optim::Extent;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// Samples computed at a time in evaluation; results do not depend on it.
const EVAL_BATCH: usize = 4096;
/// Ranks wait for each other this long: a study runs beside others, on a machine that may be busy.
const TIMEOUT_SECONDS: f64 = 3600.0;

/// Data, model and optimizer of a run, whatever its ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Tables, one feature each.
    pub(crate) tables: usize,
    /// Rows of a table, ids by a Zipf law of exponent 1.05.
    pub(crate) rows_per_table: u64,
    /// Columns of a row.
    pub(crate) dim: usize,
    /// Dot interaction, or two cross layers of rank 16; MLPs of 32.
    pub(crate) model: ModelKind,
    /// Samples of the global batch.
    pub(crate) batch: usize,
    /// Steps; a sample is seen once.
    pub(crate) steps: u64,
    /// Fresh samples that the end of a run is evaluated on.
    pub(crate) eval_samples: u64,
    /// Seed of samples, teacher and weights.
    pub(crate) seed: u64,
    /// Update rule of the tables.
    pub(crate) optimizer: OptimizerKind,
    /// Learning rate of the tables.
    pub(crate) lr: f64,
    /// Learning rate of the dense part, by AdaGrad.
    pub(crate) dense_lr: f64,
    /// What accumulators begin with; `None` for 0.
    pub(crate) initial_accumulator: Option<f64>,
    /// Steps over which learning rates rise linearly from 0.
    pub(crate) warm_up: u64,
}

/// Where a run ends, or begins.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Normalized entropy on the evaluation samples.
    pub(crate) ne: f64,
    /// Weights of each table, `[rows, dim]`.
    pub(crate) weights: Vec<Vec<f32>>,
    /// Sum of all accumulators; 0 for a rule without.
    pub(crate) accumulated: f64,
}

/// How far a run ends from the run of one process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Apart {
    /// Normalized entropy minus that of one process, in percent of it.
    pub(crate) ne_percent: f64,
    /// `|w - w1| / |w1|` over all tables.
    pub(crate) distance: f64,
    /// `|w - w1| / |w1 - w0|`: in parts of the way that one process went.
    pub(crate) of_the_way: f64,
    /// Sum of the accumulators over that of one process; `None` for a rule without.
    pub(crate) accumulated: Option<f64>,
}

impl Setup {
    /// Trains in one process and evaluates.
    ///
    /// # Errors
    /// Options that can't be; a run that fails.
    pub(crate) fn one_process(&self) -> Result<Outcome> {
        let config = self.config(Options::default())?;
        let mut trainer = build(Cpu::new(CpuOptions { threads: config.threads })?, &config)?;
        let feeds = self.feeds(1)?.pop().expect("invariant: one rank has its data");
        let outcome = finish(&mut trainer, feeds)?;
        Ok(outcome.expect("invariant: rank 0 has the outcome"))
    }

    /// Trains `replicas` groups of one rank, made equal after every step, and evaluates.
    ///
    /// # Errors
    /// Options that can't be; a rank that fails.
    pub(crate) fn replicated(&self, replicas: u32, rule: ScalingKind) -> Result<Outcome> {
        let config = self.config(Options {
            world: Some(replicas),
            replicas: Some(replicas),
            replica_scaling: Some(rule),
            plan: Some("table-wise".into()),
            threads_per_rank: Some(1),
            timeout: Some(TIMEOUT_SECONDS),
            ..Options::default()
        })?;
        let ranks = config.ranks.as_ref().ok_or_else(|| Error::Config("one rank".into()))?;
        let feeds = self.feeds(ranks.world())?;
        let feeds: Vec<_> = feeds.into_iter().map(|feeds| Mutex::new(Some(feeds))).collect();
        let options = emb_comm::Options::default().with_timeout(ranks.timeout);
        let outcomes = emb_comm::run(ranks.world(), &options, |world: &mut Local| {
            let own = feeds[world.rank()].lock().unwrap_or_else(PoisonError::into_inner).take();
            let own = own.expect("invariant: every rank starts once");
            let backend = Cpu::new(CpuOptions { threads: config.threads })?;
            finish(&mut build_rank(world, backend, &config, ranks)?, own)
        })?;
        Ok(outcomes.into_iter().flatten().next().expect("invariant: rank 0 has the outcome"))
    }

    /// The weights that every run begins with.
    ///
    /// # Errors
    /// Options that can't be.
    pub(crate) fn start(&self) -> Result<Vec<Vec<f32>>> {
        let config = self.config(Options::default())?;
        let mut trainer = build(Cpu::new(CpuOptions { threads: config.threads })?, &config)?;
        Ok(tables(&mut trainer)?.0)
    }

    /// What the teacher that made the labels scores: the best normalized entropy of any model.
    ///
    /// # Errors
    /// Options that no generator takes.
    pub(crate) fn teacher(&self) -> Result<Option<f64>> {
        let range = EVALUATION_START..EVALUATION_START + self.eval_samples;
        Ok(self.samples(0, None)?.teacher(range)?.normalized_entropy)
    }

    fn config(&self, ranks: Options) -> Result<Config> {
        let table = |t| TableOptions {
            name: name(t),
            rows: Some(self.rows_per_table),
            dim: None,
            weight_type: None,
            init: None,
            optimizer: None,
            lr: None,
            placement: None,
            replicas: None,
        };
        let cross = self.model == ModelKind::DlrmDcn;
        Config::resolve(Options {
            data: vec!["synthetic".into()],
            table: (0..self.tables).map(table).collect(),
            dim: Some(self.dim),
            bottom: Some(vec![32]),
            top: Some(vec![32]),
            batch_size: Some(self.batch),
            steps: Some(self.steps),
            seed: Some(self.seed),
            optimizer: Some(self.optimizer),
            lr: Some(self.lr),
            dense_lr: Some(self.dense_lr),
            initial_accumulator: self.initial_accumulator,
            lr_warmup: Some(self.warm_up),
            model: Some(self.model),
            dcn_layers: cross.then_some(2),
            dcn_rank: cross.then_some(16),
            ..ranks
        })
    }

    /// The data of every rank: training, and evaluation on fresh samples.
    fn feeds(&self, world: usize) -> Result<Vec<[Feed; 2]>> {
        let train = self.samples(0, Some(self.batch as u64 * self.steps))?;
        let eval = self.samples(EVALUATION_START, Some(self.eval_samples))?;
        let train = Feed::start(train, self.batch, world)?;
        let eval = Feed::start(eval, EVAL_BATCH, world)?;
        Ok(train.into_iter().zip(eval).map(|(train, eval)| [train, eval]).collect())
    }

    fn samples(&self, first: u64, rows: Option<u64>) -> Result<Synthetic> {
        let features = (0..self.tables).map(|t| Feature::new(&name(t), self.rows_per_table));
        let options =
            emb_dlrm::data::synthetic::Options { seed: self.seed, first, rows, ..<_>::default() };
        Ok(Synthetic::new(features.collect(), options)?)
    }
}

impl Apart {
    /// Compares a run with that of one process; both began with the weights `start`.
    pub(crate) fn new(run: &Outcome, one: &Outcome, start: &[Vec<f32>]) -> Self {
        let apart = distance(&run.weights, &one.weights);
        let accumulates = one.accumulated > 0.0;
        Self {
            ne_percent: 100.0 * (run.ne / one.ne - 1.0),
            distance: apart / norm(&one.weights),
            of_the_way: apart / distance(&one.weights, start),
            accumulated: accumulates.then(|| run.accumulated / one.accumulated),
        }
    }
}

fn name(table: usize) -> String {
    format!("t{table}")
}

/// Trains on all samples, evaluates, and gathers the tables; the outcome is on rank 0.
fn finish<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
    [mut train, mut eval]: [Feed; 2],
) -> Result<Option<Outcome>> {
    while let Some(Share { batch, rows, .. }) = train.next()? {
        let samples =
            Samples { dense: &batch.dense, labels: &batch.labels, sparse: batch.sparse.as_ref() };
        trainer.train_share(samples, rows)?;
    }
    trainer.sync()?;
    let report = evaluate(trainer, &mut eval, false)?;
    let (weights, accumulated) = tables(trainer)?;
    let ne = report.and_then(|report| report.normalized_entropy);
    Ok(ne.map(|ne| Outcome { ne, weights, accumulated }))
}

/// The weights of each table and the sum of all their accumulators, on rank 0.
fn tables<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
) -> Result<(Vec<Vec<f32>>, f64)> {
    let Trainer { backend, model, .. } = trainer;
    let specs = model.embeddings.specs().to_vec();
    let (mut tables, mut accumulated) = (Vec::new(), 0.0);
    for (t, spec) in specs.iter().enumerate() {
        let rows = spec.rows as usize;
        let mut weights = vec![0.0; rows * spec.dim];
        let slots = spec.optimizer.slots().iter().map(|slot| match slot.extent {
            Extent::Row => vec![0.0; rows],
            Extent::Element => vec![0.0; rows * spec.dim],
        });
        let mut state: Vec<Vec<f32>> = slots.collect();
        model.embeddings.read_rows(backend, t, 0, &mut weights, &mut state)?;
        accumulated += state.iter().flatten().map(|&v| f64::from(v)).sum::<f64>();
        tables.push(weights);
    }
    Ok((tables, accumulated))
}

/// Euclidean norm of all tables together.
pub(crate) fn norm(tables: &[Vec<f32>]) -> f64 {
    tables.iter().flatten().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt()
}

/// Euclidean distance of all tables together.
pub(crate) fn distance(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
}
