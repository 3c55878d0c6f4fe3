//! The tensors of a model: names, types and shapes, in file order.

use crate::Embeddings;
use crate::model::Dlrm;
use emb_kernels::{Backend, Dtype, TableSpec};
use emb_optim::{Extent, ReplicaSync, Slot};
use std::ops::Range;

/// Where the elements of a tensor live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Weights of a table.
    TableWeight {
        /// Position of the table.
        table: usize,
    },
    /// One optimizer slot of a table.
    TableSlot {
        /// Position of the table.
        table: usize,
        /// Position among the rule's slots.
        slot: usize,
    },
    /// A dense parameter.
    Dense(Range<usize>),
    /// One optimizer slot of a dense parameter: a range of the flat state.
    DenseSlot(Range<usize>),
}

/// One tensor of a checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: safetensors::Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) place: Place,
}

impl Entry {
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub(super) fn bytes(&self) -> usize {
        self.elements() * self.dtype.bitsize() / 8
    }
}

/// All tensors of a model whose replicas are equal; 32-bit ones come first so that every tensor is aligned.
pub(super) fn entries<B: Backend, E: Embeddings<B>>(
    model: &Dlrm<B, E>,
    dense_slots: &[&str],
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let total = model.dense.total();
    for parameter in &model.dense.parameters {
        let dense = |name: String, place| Entry {
            name,
            dtype: safetensors::Dtype::F32,
            shape: parameter.shape.clone(),
            place,
        };
        let name = format!("dense/{}", parameter.name);
        for (slot, slot_name) in dense_slots.iter().enumerate() {
            let range = parameter.range.start + slot * total..parameter.range.end + slot * total;
            entries.push(dense(format!("{name}/{slot_name}"), Place::DenseSlot(range)));
        }
        entries.push(dense(name, Place::Dense(parameter.range.clone())));
    }
    for (table, spec) in model.embeddings.specs().iter().enumerate() {
        table_entries(table, spec, &mut entries);
    }
    entries.sort_by_key(|entry| entry.dtype != safetensors::Dtype::F32);
    entries
}

/// Whether a slot is what one replica adds up between two syncs: 0 whenever replicas are equal, hence
/// in no file.
pub(super) fn is_of_one_replica(spec: &TableSpec, slot: Slot) -> bool {
    spec.optimizer.replica_sync() == ReplicaSync::MeanWithHistory && slot.name == "sum_local"
}

fn table_entries(table: usize, spec: &TableSpec, entries: &mut Vec<Entry>) {
    let (rows, dim) = (spec.rows as usize, spec.dim);
    entries.push(Entry {
        name: format!("{}/weight", spec.name),
        dtype: match spec.dtype {
            Dtype::F32 => safetensors::Dtype::F32,
            Dtype::F16 => safetensors::Dtype::F16,
            Dtype::Bf16 => safetensors::Dtype::BF16,
        },
        shape: vec![rows, dim],
        place: Place::TableWeight { table },
    });
    for (slot, described) in spec.optimizer.slots().iter().enumerate() {
        if is_of_one_replica(spec, *described) {
            continue;
        }
        entries.push(Entry {
            name: format!("{}/{}", spec.name, described.name),
            dtype: safetensors::Dtype::F32,
            shape: match described.extent {
                Extent::Row => vec![rows],
                Extent::Element => vec![rows, dim],
            },
            place: Place::TableSlot { table, slot },
        });
    }
}
