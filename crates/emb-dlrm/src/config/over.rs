//! Options of two places taken together, and options without those of ranks.

use super::Options;
use std::path::PathBuf;

impl Options {
    /// The same without a word of ranks, the places of single tables included: for one process, or to
    /// be told anew.
    #[must_use]
    pub fn alone(mut self) -> Self {
        for table in &mut self.table {
            (table.placement, table.replicas) = (None, None);
        }
        Self {
            world: None,
            nodes: None,
            plan: None,
            planner: None,
            topology: None,
            replicas: None,
            layout: None,
            sync: None,
            sync_every: None,
            id_wire: None,
            wire: None,
            transport: None,
            replica_scaling: None,
            check_replicas: None,
            threads_per_rank: None,
            timeout: None,
            timeline: None,
            health: None,
            workload: None,
            ..self
        }
    }

    /// These options where they say something, else those of `base`; a length in steps displaces
    /// one in epochs and the other way round, and so do a plan and a planner. Lists are taken whole from whichever has them.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let mut base = base;
        if self.steps.is_some() || self.epochs.is_some() {
            (base.steps, base.epochs) = (None, None);
        }
        if self.plan.is_some() || self.planner.is_some() {
            (base.plan, base.planner) = (None, None);
        }
        let list = |over: Vec<PathBuf>, base| if over.is_empty() { base } else { over };
        Self {
            data: list(self.data, base.data),
            eval: list(self.eval, base.eval),
            table: if self.table.is_empty() { base.table } else { self.table },
            feature: if self.feature.is_empty() { base.feature } else { self.feature },
            rows_per_table: self.rows_per_table.or(base.rows_per_table),
            id_policy: self.id_policy.or(base.id_policy),
            bad_rows: self.bad_rows.or(base.bad_rows),
            drop_last: self.drop_last.or(base.drop_last),
            soft_labels: self.soft_labels.or(base.soft_labels),
            model: self.model.or(base.model),
            dim: self.dim.or(base.dim),
            bottom: self.bottom.or(base.bottom),
            top: self.top.or(base.top),
            dcn_layers: self.dcn_layers.or(base.dcn_layers),
            dcn_rank: self.dcn_rank.or(base.dcn_rank),
            weight_type: self.weight_type.or(base.weight_type),
            rounding: self.rounding.or(base.rounding),
            epochs: self.epochs.or(base.epochs),
            steps: self.steps.or(base.steps),
            batch_size: self.batch_size.or(base.batch_size),
            seed: self.seed.or(base.seed),
            device: self.device.or(base.device),
            precision: self.precision.or(base.precision),
            threads: self.threads.or(base.threads),
            world: self.world.or(base.world),
            nodes: self.nodes.or(base.nodes),
            plan: self.plan.or(base.plan),
            planner: self.planner.or(base.planner),
            topology: self.topology.or(base.topology),
            replicas: self.replicas.or(base.replicas),
            layout: self.layout.or(base.layout),
            sync: self.sync.or(base.sync),
            sync_every: self.sync_every.or(base.sync_every),
            id_wire: self.id_wire.or(base.id_wire),
            wire: self.wire.or(base.wire),
            transport: self.transport.or(base.transport),
            replica_scaling: self.replica_scaling.or(base.replica_scaling),
            check_replicas: self.check_replicas.or(base.check_replicas),
            threads_per_rank: self.threads_per_rank.or(base.threads_per_rank),
            timeout: self.timeout.or(base.timeout),
            timeline: self.timeline.or(base.timeline),
            health: self.health.or(base.health),
            workload: self.workload.or(base.workload),
            eval_every: self.eval_every.or(base.eval_every),
            save: self.save.or(base.save),
            save_every: self.save_every.or(base.save_every),
            resume: self.resume.or(base.resume),
            load: self.load.or(base.load),
            optimizer: self.optimizer.or(base.optimizer),
            lr: self.lr.or(base.lr),
            weight_decay: self.weight_decay.or(base.weight_decay),
            decay: self.decay.or(base.decay),
            eps: self.eps.or(base.eps),
            initial_accumulator: self.initial_accumulator.or(base.initial_accumulator),
            max_gradient: self.max_gradient.or(base.max_gradient),
            max_norm: self.max_norm.or(base.max_norm),
            dense_optimizer: self.dense_optimizer.or(base.dense_optimizer),
            dense_lr: self.dense_lr.or(base.dense_lr),
            lr_warmup: self.lr_warmup.or(base.lr_warmup),
            lr_decay: self.lr_decay.or(base.lr_decay),
        }
    }
}
