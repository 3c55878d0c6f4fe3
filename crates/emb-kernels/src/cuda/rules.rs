//! Rules as kernels take them: twins of the structures of emb-optim's `rules.cuh`, or of a user's.

use super::own_rule::Kernels;
use super::records::RuleRecord;
use crate::rules::Rules;
use crate::{Dtype, Result, TableSpec};
use emb_cuda::{Device, Kernel};
use emb_optim::{Rule, RuleKind};

/// Whose kernels a rule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those of the image.
    Known(RuleKind),
    /// Those that were compiled for it.
    Own(Kernels),
}

/// Rules that have kernels.
pub(super) trait CudaRules: Rules {
    /// Whose kernels the rule of `table` has.
    fn kind(&self, table: usize) -> Kind;

    /// The bytes of its structure.
    fn bytes(&self, table: usize) -> [u64; 9];
}

impl CudaRules for [Rule] {
    fn kind(&self, table: usize) -> Kind {
        Kind::Known(self[table].kind())
    }

    fn bytes(&self, table: usize) -> [u64; 9] {
        bytes(&self[table])
    }
}

/// Tables that one launch updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    kind: Kind,
    dtype: Dtype,
    /// Lanes of a warp that work on a row.
    pub(super) lanes: u32,
    /// Rows are too long for the kernels' shared memory.
    pub(super) far: bool,
}

/// Longest row that fits: `kStage` of `update.cuh`.
const NEAR: usize = 512;

impl Group {
    fn of(spec: &TableSpec, kind: Kind) -> Self {
        Self { kind, dtype: spec.dtype, lanes: lanes(spec.dim), far: spec.dim > NEAR }
    }

    /// The kernel that updates these tables.
    pub(super) fn update(self, device: &Device) -> Result<Kernel> {
        use Dtype::{Bf16, F16, F32};
        use RuleKind::{AdaGrad, Adam, RowWiseAdaGrad, RowWiseAdam, Sgd};
        let kind = match self.kind {
            Kind::Known(kind) => kind,
            Kind::Own(kernels) => return Ok(kernels.of(self.dtype)),
        };
        let name = match (kind, self.dtype) {
            (Sgd, F32) => "emb_update_sgd_f32",
            (Sgd, F16) => "emb_update_sgd_f16",
            (Sgd, Bf16) => "emb_update_sgd_bf16",
            (AdaGrad, F32) => "emb_update_adagrad_f32",
            (AdaGrad, F16) => "emb_update_adagrad_f16",
            (AdaGrad, Bf16) => "emb_update_adagrad_bf16",
            (RowWiseAdaGrad, F32) => "emb_update_row_wise_adagrad_f32",
            (RowWiseAdaGrad, F16) => "emb_update_row_wise_adagrad_f16",
            (RowWiseAdaGrad, Bf16) => "emb_update_row_wise_adagrad_bf16",
            (Adam, F32) => "emb_update_adam_f32",
            (Adam, F16) => "emb_update_adam_f16",
            (Adam, Bf16) => "emb_update_adam_bf16",
            (RowWiseAdam, F32) => "emb_update_row_wise_adam_f32",
            (RowWiseAdam, F16) => "emb_update_row_wise_adam_f16",
            (RowWiseAdam, Bf16) => "emb_update_row_wise_adam_bf16",
        };
        Ok(device.kernel(name)?)
    }

    /// Name of the kernel that measures rows of these tables; `None` where the rule needs no
    /// statistic. Rules of one's own never do: they are not updated in two phases.
    pub(super) fn statistics(self) -> Option<&'static str> {
        use RuleKind::{AdaGrad, Adam, RowWiseAdaGrad, RowWiseAdam, Sgd};
        match self.kind {
            Kind::Own(_) | Kind::Known(Sgd | AdaGrad | Adam) => None,
            Kind::Known(RowWiseAdaGrad) => Some("emb_statistics_row_wise_adagrad"),
            Kind::Known(RowWiseAdam) => Some("emb_statistics_row_wise_adam"),
        }
    }
}

/// Lanes for a row: 16 bytes each of most rows, at least 4 (the kernels' smallest part).
pub(super) fn lanes(dim: usize) -> u32 {
    (dim.div_ceil(4).next_power_of_two() as u32).clamp(4, 32)
}

/// The records of all tables and the launches they need, in memory that is kept.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) records: Vec<RuleRecord>,
    pub(super) groups: Vec<Group>,
}

impl Described {
    /// Describes `rules`, one a table.
    pub(super) fn set(&mut self, specs: &[TableSpec], rules: &(impl CudaRules + ?Sized)) {
        self.records.clear();
        self.groups.clear();
        for (t, spec) in specs.iter().enumerate() {
            let group = Group::of(spec, rules.kind(t));
            let known = self.groups.iter().position(|other| *other == group);
            let number = known.unwrap_or_else(|| {
                self.groups.push(group);
                self.groups.len() - 1
            });
            self.records.push(RuleRecord {
                group: number as u32,
                max_gradient: rules.facts(t).max_gradient.unwrap_or(f32::INFINITY),
                rule: rules.bytes(t),
            });
        }
    }
}

/// The rule's structure: its `f64` first, then its `f32`, then its flag.
fn bytes(rule: &Rule) -> [u64; 9] {
    let mut to = Bytes::default();
    let norm = |limit: Option<f32>| limit.unwrap_or(f32::INFINITY);
    match *rule {
        Rule::Sgd(r) => to.floats(&[r.lr, r.keep, norm(r.max_norm)]),
        Rule::AdaGrad(r) => {
            to.floats(&[r.lr, r.eps, r.l2, r.keep, r.square_scale, norm(r.max_norm)]);
            to.flag(r.history);
        }
        Rule::RowWiseAdaGrad(r) => {
            to.double(r.square_scale);
            to.floats(&[r.lr, r.eps, r.l2, r.keep, norm(r.max_norm)]);
            to.flag(r.history);
        }
        Rule::Adam(r) => to.floats(&[
            r.step_size,
            r.root_scale,
            r.beta1,
            r.gain1,
            r.beta2,
            r.gain2,
            r.eps,
            r.l2,
            r.keep,
            norm(r.max_norm),
        ]),
        Rule::RowWiseAdam(r) => {
            to.double(r.beta2);
            to.double(r.gain2);
            to.floats(&[r.step_size, r.root_scale, r.beta1, r.gain1]);
            to.floats(&[r.eps, r.l2, r.keep, norm(r.max_norm)]);
        }
    }
    to.bytes
}

/// Fields one after the other, each at a multiple of its size.
#[derive(Default)]
struct Bytes {
    bytes: [u64; 9],
    used: usize,
}

impl Bytes {
    fn put(&mut self, field: &[u8]) {
        self.used = self.used.next_multiple_of(field.len());
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut self.bytes);
        bytes[self.used..self.used + field.len()].copy_from_slice(field);
        self.used += field.len();
    }

    fn floats(&mut self, values: &[f32]) {
        for value in values {
            self.put(&value.to_ne_bytes());
        }
    }

    fn double(&mut self, value: f64) {
        self.put(&value.to_ne_bytes());
    }

    fn flag(&mut self, value: bool) {
        self.put(&u32::from(value).to_ne_bytes());
    }
}
