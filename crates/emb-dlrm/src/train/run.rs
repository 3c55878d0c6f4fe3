//! A whole run from a configuration: [`train`].

use super::agree::agree;
use super::compare::Reads;
use super::gather::{gather, most};
use super::health::Watch;
use super::observer::Observer;
use super::rank::{Feeds, Rank};
use super::report::Report;
use super::timeline;
use super::trainer::{Rates, Trainer};
use crate::config::{Config, DENSE_COLUMNS, Origin, Ranks};
use crate::data::Feed;
use crate::device::{Machine, Peers, Work, with_machine};
use crate::model::Dlrm;
use crate::sharded::{ShardedBags, ShardedEmbeddings};
use crate::{EmbeddingBags, Embeddings, Error, Result, checkpoint, sources};
use emb_comm::{Collective, Solo, Trace, Traced};
use emb_kernels::Backend;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Samples computed at a time in evaluation; results do not depend on it.
const EVAL_BATCH: usize = 2048;

/// Builds the model of a configuration on a backend, untrained, for one process.
///
/// # Errors
/// Memory that can't be had; tables or shapes that can't be.
pub fn build<B: Backend>(mut backend: B, config: &Config) -> Result<Trainer<B>> {
    let tables = &config.tables;
    let specs: Vec<_> = tables.tables.iter().map(|table| table.spec.clone()).collect();
    let lrs = tables.tables.iter().map(|table| table.lr).collect();
    let (features, first) = (tables.features(), first_column(config));
    let bags = EmbeddingBags::new(&mut backend, &specs, features, lrs, first, config.seed)?;
    build_around(backend, config, bags, Solo)
}

/// Builds one rank of the model of a configuration, untrained: every rank of a world calls it.
///
/// # Errors
/// As [`build`]; a plan that can't be executed, by table; a peer that fails.
pub fn build_rank<B: Backend, C: Collective + 'static>(
    world: &mut C,
    mut backend: B,
    config: &Config,
    ranks: &Ranks,
) -> Result<Trainer<B, ShardedBags<B, C>, C>> {
    let tables = &config.tables;
    let specs: Vec<_> = tables.tables.iter().map(|table| table.spec.clone()).collect();
    let lrs = tables.tables.iter().map(|table| table.lr).collect();
    let (features, first) = (tables.features(), first_column(config));
    let mut sharded = ShardedEmbeddings::new(
        world,
        &mut backend,
        &ranks.plan,
        &specs,
        features,
        lrs,
        first,
        config.seed,
    )?;
    sharded.set_id_wire(ranks.id_wire);
    sharded.set_wires(ranks.wires)?;
    sharded.sync_beside(world, &backend)?;
    let rank = world.rank();
    let all = world.split(Some(0), rank)?.ok_or_else(no_set)?;
    let mut trainer = build_around(backend, config, ShardedBags::new(sharded), all)?;
    trainer.set_wires(ranks.wires);
    Ok(trainer)
}

/// Records where a timeline is wanted.
fn trace(config: &Config, begin: Instant) -> Trace {
    if config.timeline.is_some() { Trace::from(begin) } else { Trace::default() }
}

/// A transport that makes no set for a rank that asked for one.
fn no_set() -> Error {
    Error::Config("the transport made no set of ranks".into())
}

fn first_column(config: &Config) -> usize {
    config.shape.bottom.last().copied().unwrap_or(0)
}

fn build_around<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    mut backend: B,
    config: &Config,
    embeddings: E,
    ranks: C,
) -> Result<Trainer<B, E, C>> {
    let optimizers = &config.optimizers;
    let model = Dlrm::new(&mut backend, &config.shape, embeddings, &optimizers.dense, config.seed)?;
    let rates = Rates { tables: optimizers.lr, dense: optimizers.dense_lr };
    let schedule = optimizers.schedule.clone();
    Trainer::new(backend, model, ranks, DENSE_COLUMNS, optimizers.dense, rates, schedule)
}

/// Trains as configured: loads, trains, evaluates, saves, in one process or on many ranks.
///
/// All data files are opened and the folder to save to is tried before anything is trained. The
/// checkpoint is written when training went well, unless the last evaluation finds scores that are
/// not numbers, and every so many steps where that is asked for.
///
/// # Errors
/// Whatever is refused by name: data, ids, a loss that is not finite, a checkpoint that does not
/// fit, a disk that fails. With ranks: which rank failed first, in which step.
pub fn train(config: &Config, observer: &mut (dyn Observer + Send)) -> Result<Report> {
    train_among(config, Peers::default(), observer)
}

/// [`train`] as one of several processes: each calls it with the same options and peers of its own.
/// Rank 0 tells its observer, writes timeline and checkpoints; every rank gets a report.
///
/// # Errors
/// As there; ranks that were started with other options, by name.
pub fn train_among(
    config: &Config,
    peers: Peers,
    observer: &mut (dyn Observer + Send),
) -> Result<Report> {
    let feeds = peers.tell(prepare(config, &peers))?;
    let (first, here) = (peers.is_first(), peers.rank());
    let hosts = peers.hosts().to_vec();
    let training = Training { config, observer, feeds, here, hosts };
    let mut report = with_machine(config, peers, training)?;
    if config.data == Origin::Synthetic && first {
        let teacher = sources::teacher(config)?;
        report.teacher_auc = teacher.auc;
        report.teacher_normalized_entropy = teacher.normalized_entropy;
    }
    Ok(report)
}

/// Tries what can fail before anything is built, and opens the data of the ranks that live here.
fn prepare(config: &Config, peers: &Peers) -> Result<Vec<Feeds>> {
    if let Some(dir) = &config.save {
        if peers.is_first() {
            checkpoint::prepare(dir, &config.options)?;
        }
        checkpoint::to_resume(config)?;
    }
    if let Some(path) = config.timeline.as_ref().filter(|_| peers.is_first()) {
        timeline::prepare(path)?;
    }
    feeds(config, peers.rank())
}

/// A run whose data are open.
struct Training<'a> {
    config: &'a Config,
    observer: &'a mut (dyn Observer + Send),
    /// Of the ranks that live here.
    feeds: Vec<Feeds>,
    /// The rank that lives here, where each is a process.
    here: Option<usize>,
    /// The host of every rank, where each is a process.
    hosts: Vec<String>,
}

impl Work for Training<'_> {
    type Output = Report;

    fn on<M: Machine>(self, machine: &M) -> Result<Report> {
        match &self.config.ranks {
            None => self.alone(machine),
            Some(ranks) => self.on_ranks(machine, ranks),
        }
    }
}

/// The data of every rank that lives here: of all of them, or of the one.
fn feeds(config: &Config, here: Option<usize>) -> Result<Vec<Feeds>> {
    let world = config.ranks.as_ref().map_or(1, Ranks::world);
    let start = |source, rows| match here {
        None => Feed::start(source, rows, world),
        Some(rank) => Ok(vec![Feed::one_of(source, rows, rank, world)?]),
    };
    let train = start(sources::training(config)?, config.batch_size)?;
    let mut eval = match sources::evaluation(config)? {
        Some(eval) => start(eval, EVAL_BATCH)?.into_iter().map(Some).collect(),
        None => Vec::new(),
    }
    .into_iter();
    Ok(train.into_iter().map(|train| Feeds { train, eval: eval.next().flatten() }).collect())
}

/// A rank that was given no data to read.
fn no_data() -> Error {
    Error::Config("a rank started without its data".into())
}

impl Training<'_> {
    /// Trains in one process.
    fn alone(mut self, machine: &impl Machine) -> Result<Report> {
        let Self { config, observer, .. } = self;
        let trace = trace(config, Instant::now());
        let trainer = build(machine.backend()?, config)?;
        let run = Rank::new(trainer, config, Some(observer), trace.clone(), None)?;
        let report = run.run(self.feeds.pop().ok_or_else(no_data)?)?;
        if let Some(path) = &config.timeline {
            timeline::write(path, &[timeline::events(0, &trace.take())])?;
        }
        Ok(report)
    }

    /// Trains on ranks, those of them that live here; the report is that of the first of them.
    fn on_ranks(self, machine: &impl Machine, ranks: &Ranks) -> Result<Report> {
        /// What a rank takes with it.
        type Luggage<'a> = Mutex<Option<(Feeds, Option<&'a mut (dyn Observer + Send)>)>>;
        let Self { config, observer, feeds, here, hosts } = self;
        let mut observer = Some(observer).filter(|_| here.is_none_or(|rank| rank == 0));
        let luggage: Vec<Luggage<'_>> =
            feeds.into_iter().map(|feeds| Mutex::new(Some((feeds, observer.take())))).collect();
        let begin = Instant::now();
        let reports = machine.run(ranks, |mut all, backend| {
            let rank = all.rank();
            let own = &luggage[rank - here.unwrap_or(0)];
            let taken = own.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (feeds, observer) = taken.ok_or_else(no_data)?;
            let mut begin = begin;
            if here.is_some() {
                agree(&mut all, config, &hosts)
                    .inspect_err(|error| all.abort(&error.to_string()))?;
                // Clocks of processes have nothing in common but this moment.
                begin = Instant::now();
            }
            let trace = trace(config, begin);
            let mut all = Traced::new(all, trace.clone());
            let mut trainer = build_rank(&mut all, backend, config, ranks)?;
            *trainer.reads() = Reads::among(&hosts);
            let watch = Watch::new(config, ranks, &mut trainer)?;
            let report = Rank::new(trainer, config, observer, trace.clone(), watch)?.run(feeds)?;
            let exchange = most(&mut all, report.exchange)?;
            if let Some(path) = &config.timeline {
                let events = timeline::events(rank, &trace.take());
                if let Some(ranks) = gather(&mut all, &events)? {
                    timeline::write(path, &ranks)?;
                }
            }
            Ok(Report { exchange, ..report })
        })?;
        reports.into_iter().next().ok_or_else(no_data)
    }
}
