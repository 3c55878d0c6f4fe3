//! A whole run from a configuration: [`train`].

use super::health::Watch;
use super::observer::Observer;
use super::rank::{Feeds, Rank};
use super::report::{Exchange, Report};
use super::timeline;
use super::trainer::{Rates, Trainer};
use crate::config::{Config, DENSE_COLUMNS, Origin, Ranks};
use crate::data::Feed;
use crate::device::{Machine, Work, with_machine};
use crate::model::Dlrm;
use crate::sharded::{ShardedBags, ShardedEmbeddings};
use crate::{EmbeddingBags, Embeddings, Error, Result, checkpoint, sources};
use emb_comm::{Collective, Local, Options, Solo, Span, Trace, Traced};
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

fn timeline(config: &Config, ranks: &[Vec<Span>]) -> Result<()> {
    match &config.timeline {
        Some(path) => timeline::write(path, ranks),
        None => Ok(()),
    }
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
/// not numbers.
///
/// # Errors
/// Whatever is refused by name: data, ids, a loss that is not finite, a checkpoint that does not
/// fit, a disk that fails. With ranks: which rank failed first, in which step.
pub fn train(config: &Config, observer: &mut (dyn Observer + Send)) -> Result<Report> {
    if let Some(dir) = &config.save {
        checkpoint::prepare(dir, &config.options)?;
        checkpoint::to_resume(config)?;
    }
    if let Some(path) = &config.timeline {
        timeline::prepare(path)?;
    }
    let feeds = feeds(config)?;
    let training = Training { config, observer, feeds, begin: Instant::now() };
    let mut report = with_machine(config, training)?;
    if config.data == Origin::Synthetic {
        let teacher = sources::teacher(config)?;
        report.teacher_auc = teacher.auc;
        report.teacher_normalized_entropy = teacher.normalized_entropy;
    }
    Ok(report)
}

/// A run whose data are open.
struct Training<'a> {
    config: &'a Config,
    observer: &'a mut (dyn Observer + Send),
    /// By rank.
    feeds: Vec<Feeds>,
    begin: Instant,
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

/// The data of every rank.
fn feeds(config: &Config) -> Result<Vec<Feeds>> {
    let world = config.ranks.as_ref().map_or(1, Ranks::world);
    let train = sources::training(config)?;
    let eval = sources::evaluation(config)?;
    let train = Feed::start(train, config.batch_size, world)?;
    let mut eval = match eval {
        Some(eval) => Feed::start(eval, EVAL_BATCH, world)?.into_iter().map(Some).collect(),
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
        let Self { config, observer, begin, .. } = self;
        let trainer = build(machine.backend(0)?, config)?;
        let trace = trace(config, begin);
        let run = Rank::new(trainer, config, Some(observer), trace.clone(), None)?;
        let report = run.run(self.feeds.pop().ok_or_else(no_data)?)?;
        timeline(config, &[trace.take()])?;
        Ok(report)
    }

    /// Trains on threads, one a rank; the report is that of rank 0.
    fn on_ranks(self, machine: &impl Machine, ranks: &Ranks) -> Result<Report> {
        /// What a rank takes with it.
        type Luggage<'a> = Mutex<Option<(Feeds, Option<&'a mut (dyn Observer + Send)>)>>;
        let Self { config, observer, feeds, begin } = self;
        let mut observer = Some(observer);
        let luggage: Vec<Luggage<'_>> =
            feeds.into_iter().map(|feeds| Mutex::new(Some((feeds, observer.take())))).collect();
        let options = Options::default()
            .with_timeout(ranks.timeout)
            .with_ranks_per_node(ranks.ranks_per_node as usize);
        let ended = emb_comm::run(ranks.world(), &options, |threads: &mut Local| {
            let rank = threads.rank();
            let taken = luggage[rank].lock().unwrap_or_else(PoisonError::into_inner).take();
            let (feeds, observer) = taken.ok_or_else(no_data)?;
            let backend = machine.backend(rank)?;
            let trace = trace(config, begin);
            let world = machine.connect(threads, &backend)?;
            let mut world = Traced::new(world, trace.clone());
            let mut trainer = build_rank(&mut world, backend, config, ranks)?;
            let watch = Watch::new(config, ranks, &mut trainer)?;
            let report = Rank::new(trainer, config, observer, trace.clone(), watch)?.run(feeds)?;
            Ok::<_, Error>((report, trace.take()))
        })?;
        let (reports, spans): (Vec<Report>, Vec<Vec<Span>>) = ended.into_iter().unzip();
        timeline(config, &spans)?;
        let bytes = |exchange: &Exchange| {
            exchange.intra_node_bytes_per_step + exchange.inter_node_bytes_per_step
        };
        let most = reports.iter().filter_map(|report| report.exchange);
        let most = most.max_by(|a, b| bytes(a).total_cmp(&bytes(b)));
        let first = reports.into_iter().next().ok_or_else(no_data)?;
        Ok(Report { exchange: most, ..first })
    }
}
