//! The words that options take: one spelling on the command line and in files.

use serde::{Deserialize, Serialize};

/// Declares an enum of words that reads the same on the command line and in a file.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(crate::config::nearest::explain(word, Self::WORDS)),
                }
            }
        }
    };
}

words! {
    /// What happens to ids at or above the rows of their table.
    IdPolicy {
        /// Taken modulo the rows.
        Modulo = "modulo",
        /// Refused with table, id and rows.
        Error = "error",
    }
}
words! {
    /// What happens to lines that can't be read.
    BadRows {
        /// The first one ends the run.
        Error = "error",
        /// Skipped, counted and reported.
        Skip = "skip",
    }
}
words! {
    /// The model.
    ModelKind {
        /// Dot interaction.
        Dlrm = "dlrm",
        /// Low-rank cross layers.
        DlrmDcn = "dlrm-dcn",
    }
}
words! {
    /// Stored type of embedding weights.
    WeightType {
        /// 4 bytes.
        F32 = "f32",
        /// IEEE binary16.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
    }
}
words! {
    /// Rounding of updates stored into 16-bit weights.
    RoundingMode {
        /// Unbiased.
        Stochastic = "stochastic",
        /// To nearest, ties to even.
        Nearest = "nearest",
    }
}
words! {
    /// Update rule of embedding tables.
    OptimizerKind {
        /// One accumulator a row.
        RowWiseAdaGrad = "row-wise-adagrad",
        /// One accumulator an element.
        AdaGrad = "adagrad",
        /// Stochastic gradient descent.
        Sgd = "sgd",
        /// Lazy Adam with a global step.
        Adam = "adam",
        /// Adam with one second moment a row.
        RowWiseAdam = "row-wise-adam",
    }
}
words! {
    /// Update rule of the dense part.
    DenseKind {
        /// One accumulator an element.
        AdaGrad = "adagrad",
        /// Stochastic gradient descent.
        Sgd = "sgd",
        /// Adam.
        Adam = "adam",
    }
}
words! {
    /// Where weight decay acts.
    DecayKind {
        /// In the gradient.
        L2 = "l2",
        /// On the row itself.
        Decoupled = "decoupled",
    }
}
words! {
    /// Pooling of a bag.
    PoolingKind {
        /// Weighted sum.
        Sum = "sum",
        /// Weighted mean.
        Mean = "mean",
    }
}
words! {
    /// Which ranks form a sharding group.
    LayoutKind {
        /// Every M-th rank.
        Strided = "strided",
        /// Neighbours.
        Contiguous = "contiguous",
    }
}
words! {
    /// How replicas are kept equal.
    SyncKind {
        /// Weights and optimizer state of all rows are averaged.
        Weights = "weights",
        /// The same, but only rows that a replica touched travel.
        TouchedRows = "touched-rows",
        /// Gradients are summed in every step.
        Gradients = "gradients",
    }
}
words! {
    /// How ids travel to the owners of rows.
    IdWireKind {
        /// 8 bytes each.
        Plain = "plain",
        /// In as few bits as they need.
        Packed = "packed",
    }
}
words! {
    /// What computes.
    DeviceKind {
        /// The processor.
        Cpu = "cpu",
        /// NVIDIA GPUs.
        Cuda = "cuda",
        /// GPUs where there are any, else the processor.
        Auto = "auto",
    }
}
words! {
    /// What carries between ranks.
    TransportKind {
        /// The memory of this process.
        Local = "local",
        /// MPI, one process a rank.
        Mpi = "mpi",
        /// NVIDIA's collectives, one device a rank; a process a rank where a launcher started several.
        Nccl = "nccl",
    }
}
words! {
    /// Numbers that matrix products multiply on a device; sums are `f32`.
    PrecisionKind {
        /// 24 bits of significand.
        F32 = "f32",
        /// `TensorFloat-32`: 11 bits.
        Tf32 = "tf32",
        /// bfloat16: 8 bits.
        Bf16 = "bf16",
    }
}
words! {
    /// What adaptive rules do about seeing one replica's gradient out of M.
    ScalingKind {
        /// Nothing.
        None = "none",
        /// Squares over M.
        Moment = "moment",
        /// Learning rate times M.
        Lr = "lr",
        /// Squares over M^2, added up over the replicas at each sync.
        History = "history",
        /// Sync gradients.
        Exact = "exact",
    }
}
words! {
    /// Where the rows and columns of a table live in a sharding group.
    PlacementKind {
        /// Whole on one rank.
        TableWise = "table-wise",
        /// Rows over all ranks.
        RowWise = "row-wise",
        /// Columns over all ranks.
        ColumnWise = "column-wise",
        /// Whole on every rank.
        DataParallel = "data-parallel",
    }
}
