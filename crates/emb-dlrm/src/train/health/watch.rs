//! The ranks' health in a loop of steps: [`Watch`].

use super::Health;
use super::judge::{Judge, Looked};
use super::measure::{Figures, Reading, Window};
use crate::config::{Config, Ranks};
use crate::sharded::ShardedBags;
use crate::train::Trainer;
use crate::{Embeddings, Result};
use emb_comm::{Collective, Meter};
use emb_kernels::{Backend, JaggedRef};
use emb_shard::{Plan, ReplicaSync};

/// Looks at what slows the ranks down, every so many steps.
///
/// Every rank has one, made at the same step, and tells it of every step and every interruption. In
/// ordinary steps it reads meters and a clock, and nothing is allocated or sent; in every `N`th
/// all ranks gather a few numbers each, and rank 0 makes a [`Health`] of them.
#[derive(Debug)]
pub struct Watch<E> {
    every: u64,
    window: Window,
    /// Whether the first step, in which memory is touched for the first time, is over.
    warm: bool,
    /// What the exchanges of the tables have cost; their other collectives make replicas equal.
    exchanged: fn(&E) -> Meter,
    /// The table of each feature.
    tables: Vec<usize>,
    /// Look-ups of this rank in the window, by table.
    lookups: Vec<f64>,
    /// Samples of the run when the window began.
    samples: u64,
    own: Vec<f64>,
    all: Vec<f64>,
    counts: Vec<usize>,
    /// On rank 0.
    judge: Option<Judge>,
}

impl<B: Backend, C: Collective + 'static> Watch<ShardedBags<B, C>> {
    /// For the ranks of a run, before its first step; `None` where the configuration wants none.
    ///
    /// # Errors
    /// On rank 0: look-ups that were measured for other tables.
    pub fn new(
        config: &Config,
        ranks: &Ranks,
        trainer: &mut Trainer<B, ShardedBags<B, C>, C>,
    ) -> Result<Option<Self>> {
        let Some(every) = config.health else { return Ok(None) };
        let plan = &ranks.plan;
        let first = trainer.ranks().rank() == 0;
        let judge = if first { Some(Judge::new(config, ranks)?) } else { None };
        let exchanged: fn(&ShardedBags<B, C>) -> Meter = |bags| bags.tables().exchanged();
        let reading = reading(trainer, exchanged);
        let tables = config.tables.features.iter().map(|feature| feature.table).collect();
        let numbers = Figures::COUNT + config.tables.tables.len();
        let world = trainer.ranks().world();
        Ok(Some(Self {
            every,
            window: Window::new(period(plan), reading),
            warm: every == 1,
            exchanged,
            tables,
            lookups: vec![0.0; config.tables.tables.len()],
            samples: trainer.samples(),
            own: Vec::with_capacity(numbers),
            all: vec![0.0; world * numbers],
            counts: vec![numbers; world],
            judge,
        }))
    }
}

impl<E> Watch<E> {
    /// After every step, with the ids of this rank's samples. Every rank calls it; rank 0 gets what
    /// there is to say after every `N`th step.
    ///
    /// # Errors
    /// A peer that fails.
    pub fn after_step<B: Backend, C: Collective + 'static>(
        &mut self,
        trainer: &mut Trainer<B, E, C>,
        ids: JaggedRef<'_>,
    ) -> Result<Option<Health>>
    where
        E: Embeddings<B>,
    {
        for (feature, &table) in self.tables.iter().enumerate() {
            let bags = &ids.offsets[feature * ids.batch..=(feature + 1) * ids.batch];
            self.lookups[table] += (bags[ids.batch] - bags[0]) as f64;
        }
        let step = trainer.step();
        self.window.step(step, &reading(trainer, self.exchanged));
        if !self.warm {
            self.warm = true;
            self.restart(trainer);
            return Ok(None);
        }
        if !step.is_multiple_of(self.every) || self.window.steps() == 0 {
            return Ok(None);
        }
        let trace = trainer.trace().clone();
        trace.phase("health", || self.gather(trainer))?;
        let health = self.look(trainer);
        self.restart(trainer);
        Ok(health)
    }

    /// Before something that is not training, such as an evaluation.
    pub fn pause<B: Backend, C: Collective + 'static>(&mut self, trainer: &mut Trainer<B, E, C>)
    where
        E: Embeddings<B>,
    {
        self.window.pause(reading(trainer, self.exchanged));
    }

    /// After it.
    pub fn resume<B: Backend, C: Collective + 'static>(&mut self, trainer: &mut Trainer<B, E, C>)
    where
        E: Embeddings<B>,
    {
        self.window.resume(&reading(trainer, self.exchanged));
    }

    /// Tells all ranks what each measured.
    fn gather<B: Backend, C: Collective + 'static>(
        &mut self,
        trainer: &mut Trainer<B, E, C>,
    ) -> Result<()>
    where
        E: Embeddings<B>,
    {
        self.own.clear();
        self.own.extend(self.window.figures().to_array());
        self.own.extend(&self.lookups);
        trainer.ranks().all_gather_v(&self.own[..], &mut self.all[..], &self.counts)?;
        Ok(())
    }

    /// On rank 0, what is to be said of it.
    fn look<B: Backend, C: Collective + 'static>(
        &mut self,
        trainer: &Trainer<B, E, C>,
    ) -> Option<Health>
    where
        E: Embeddings<B>,
    {
        let judge = self.judge.as_mut()?;
        let mut ranks = Vec::with_capacity(self.counts.len());
        self.lookups.fill(0.0);
        for numbers in self.all.chunks_exact(Figures::COUNT + self.lookups.len()) {
            let (figures, lookups) = numbers.split_at(Figures::COUNT);
            let figures = figures.try_into().expect("invariant: split at this length");
            ranks.push(Figures::from_array(figures));
            self.lookups.iter_mut().zip(lookups).for_each(|(sum, lookups)| *sum += lookups);
        }
        let at = Looked {
            step: trainer.step(),
            steps: self.window.steps(),
            samples: trainer.samples() - self.samples,
            lookups: &self.lookups,
        };
        Some(judge.look(at, &ranks))
    }

    fn restart<B: Backend, C: Collective + 'static>(&mut self, trainer: &mut Trainer<B, E, C>)
    where
        E: Embeddings<B>,
    {
        self.lookups.fill(0.0);
        self.samples = trainer.samples();
        self.window.restart(&reading(trainer, self.exchanged));
    }
}

/// What this rank's collectives have cost so far.
fn reading<B: Backend, E: Embeddings<B>, C: Collective + 'static>(
    trainer: &mut Trainer<B, E, C>,
    exchanged: fn(&E) -> Meter,
) -> Reading {
    let bags = &trainer.model.embeddings;
    let (tables, exchanges) = (bags.exchanged(), exchanged(bags));
    let (syncs, dense) = (tables - exchanges, trainer.dense_sums());
    Reading { exchanges, syncs, loss: trainer.ranks().meters().total(), dense }
}

/// Steps after which all syncs of a plan have recurred.
fn period(plan: &Plan) -> u64 {
    let every = plan.sync_classes().iter().map(|class| match class.sync {
        ReplicaSync::Weights { every } | ReplicaSync::TouchedRows { every } => every.get().into(),
        ReplicaSync::None | ReplicaSync::Gradients | ReplicaSync::FullyShardedReplicas => 1,
    });
    every.fold(1_u64, |all, one| {
        let (mut a, mut b) = (all, one);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (all / a).saturating_mul(one)
    })
}
