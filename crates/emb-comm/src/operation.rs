//! The operations of a collective, by name.

use std::fmt;

/// An operation of [`Collective`](crate::Collective): what errors name and meters count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`all_to_all_v`](crate::Collective::all_to_all_v).
    AllToAllV,
    /// [`exchange_counts`](crate::Collective::exchange_counts).
    ExchangeCounts,
    /// [`all_reduce`](crate::Collective::all_reduce).
    AllReduce,
    /// [`all_reduce_max`](crate::Collective::all_reduce_max).
    AllReduceMax,
    /// [`reduce_scatter_v`](crate::Collective::reduce_scatter_v).
    ReduceScatterV,
    /// [`all_gather_v`](crate::Collective::all_gather_v).
    AllGatherV,
    /// [`broadcast`](crate::Collective::broadcast).
    Broadcast,
    /// [`barrier`](crate::Collective::barrier).
    Barrier,
    /// [`split`](crate::Collective::split).
    Split,
    /// [`subgroups`](crate::Collective::subgroups).
    Subgroups,
    /// [`duplicate`](crate::Collective::duplicate).
    Duplicate,
}

impl Operation {
    /// Every operation, in the order of meters.
    pub const ALL: [Self; 11] = [
        Self::AllToAllV,
        Self::ExchangeCounts,
        Self::AllReduce,
        Self::AllReduceMax,
        Self::ReduceScatterV,
        Self::AllGatherV,
        Self::Broadcast,
        Self::Barrier,
        Self::Split,
        Self::Subgroups,
        Self::Duplicate,
    ];

    /// The method's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllToAllV => "all_to_all_v",
            Self::ExchangeCounts => "exchange_counts",
            Self::AllReduce => "all_reduce",
            Self::AllReduceMax => "all_reduce_max",
            Self::ReduceScatterV => "reduce_scatter_v",
            Self::AllGatherV => "all_gather_v",
            Self::Broadcast => "broadcast",
            Self::Barrier => "barrier",
            Self::Split => "split",
            Self::Subgroups => "subgroups",
            Self::Duplicate => "duplicate",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
