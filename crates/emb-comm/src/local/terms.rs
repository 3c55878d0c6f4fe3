//! What ranks say about an operation, and which of them differ: [`Terms`], [`mismatch`].

use super::board::Call;
use crate::element::name_of;
use crate::element::sealed::Sealed;
use crate::failure::{Failure, FailureKind, list};
use crate::{Element, Operation};

/// What every rank must say alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) operation: Operation,
    /// [`Sealed::CODE`] of the elements, 0 without.
    element: u8,
    /// Elements, where all ranks must have equally many, else 0.
    length: u64,
    /// Root, or a hash of what all ranks must have been given alike.
    tag: u64,
}

impl Terms {
    pub(crate) fn new(operation: Operation) -> Self {
        Self { operation, element: 0, length: 0, tag: 0 }
    }

    pub(crate) fn of<T: Element>(operation: Operation) -> Self {
        Self { element: <T as Sealed>::CODE, ..Self::new(operation) }
    }

    pub(crate) fn length(self, length: usize) -> Self {
        Self { length: length as u64, ..self }
    }

    pub(crate) fn tag(self, tag: u64) -> Self {
        Self { tag, ..self }
    }

    /// What is published of it.
    pub(crate) fn call(self, step: u64) -> Call {
        [(self.operation as u64) << 8 | u64::from(self.element), self.length, self.tag, step]
    }
}

/// Says which ranks differ from most, and how: ranks as numbered in the world, by `members`.
pub(crate) fn mismatch(calls: &[Call], members: &[usize], operation: Operation) -> Failure {
    let votes = |call: &Call| calls.iter().filter(|other| *other == call).count();
    // Of equally common calls that of the lowest position: `max_by_key` returns the last.
    let common = calls.iter().rev().max_by_key(|call| votes(call));
    let common = *common.expect("invariant: a group has members");
    let ranks = |wanted: &Call| {
        let positions = (0..calls.len()).filter(|&position| calls[position] == *wanted);
        let mut ranks: Vec<usize> = positions.map(|position| members[position]).collect();
        ranks.sort_unstable();
        ranks
    };
    let mut message = format!("{}: {}", list(&ranks(&common)), describe(common));
    let mut different = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        if *call != common && !calls[..position].contains(call) {
            let differ = ranks(call);
            message = format!("{message}; but {}: {}", list(&differ), describe(*call));
            different.extend(differ);
        }
    }
    different.sort_unstable();
    let step = common[3];
    Failure::new(FailureKind::Mismatch, different, Some(operation), step, message)
}

fn describe([what, length, tag, step]: Call) -> String {
    let operation = Operation::ALL[(what >> 8) as usize];
    let element = name_of(what as u8);
    let detail = match operation {
        Operation::AllReduce | Operation::AllReduceMax => format!(" of {length} {element}"),
        Operation::AllToAllV => format!(" of {element}"),
        Operation::AllGatherV | Operation::ReduceScatterV => {
            format!(" of {length} {element}, counts {tag:016x}")
        }
        Operation::Broadcast => format!(" of {length} {element} from root {tag}"),
        Operation::ExchangeCounts => format!(" of {length} counts"),
        Operation::Subgroups => format!(", lists {tag:016x}"),
        Operation::Barrier if tag != 0 => format!(" of ranks with options {tag:x}"),
        Operation::Barrier | Operation::Split | Operation::Duplicate => String::new(),
    };
    format!("{operation}{detail} in step {step}")
}
