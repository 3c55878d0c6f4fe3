//! What is run: which part, in which flavour, under which schedule of streams.

use clap::ValueEnum;

/// A part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The kernels alone, against plain loops, and the defects planted in them.
    Kernels,
    /// The fake driver alone, and the defects planted in its callers.
    Driver,
    /// Streams, memory and launches.
    EmbCuda,
    /// The conformance suite of the backend.
    EmbKernels,
    /// The conformance suites of the transports over device memory.
    EmbComm,
    /// Training.
    EmbDlrm,
}

impl Part {
    pub(crate) const ALL: [Self; 6] = [
        Self::Kernels,
        Self::Driver,
        Self::EmbCuda,
        Self::EmbKernels,
        Self::EmbComm,
        Self::EmbDlrm,
    ];

    /// As in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Driver => "driver",
            Self::EmbCuda => "emb-cuda",
            Self::EmbKernels => "emb-kernels",
            Self::EmbComm => "emb-comm",
            Self::EmbDlrm => "emb-dlrm",
        }
    }

    /// Whether its tests are a crate's, in Rust, over the fake driver.
    pub(crate) fn is_crate(self) -> bool {
        !matches!(self, Self::Kernels | Self::Driver)
    }

    /// Schedules of those asked for that it runs under: a training run takes long, and meets many
    /// orders by itself.
    pub(crate) fn schedules(self, asked: usize) -> usize {
        if self == Self::EmbDlrm { asked.div_ceil(3) } else { asked }
    }

    /// Fake devices that its tests see: four ranks, or a device, another, and one to be filled.
    pub(crate) fn devices(self) -> u32 {
        if matches!(self, Self::EmbComm | Self::EmbDlrm) { 4 } else { 3 }
    }
}

/// How the kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flavour {
    /// As they are.
    Plain,
    /// With the address and undefined-behaviour sanitizers.
    Asan,
    /// With the thread sanitizer, every CUDA thread one of its threads.
    Tsan,
    /// Counting bytes moved.
    Count,
    /// With the portable switch between fibers.
    Ucontext,
    /// Each but `plain`, whose tests `count` runs too.
    All,
}

impl Flavour {
    /// Flavours that this one stands for. `Count` runs every test as `Plain` does, so that one is
    /// not among all.
    pub(crate) fn each(self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::Asan, Self::Tsan, Self::Count, Self::Ucontext],
            one => vec![one],
        }
    }

    /// As the scripts call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Asan => "asan",
            Self::Tsan => "tsan",
            Self::Count => "count",
            Self::Ucontext => "ucontext",
            Self::All => "all",
        }
    }
}

impl Flavour {
    /// The one of the fake libraries: sanitizers reach the crates' suites where asked for alone,
    /// because a suite takes many times as long.
    pub(crate) fn of_libraries(self) -> Self {
        if matches!(self, Self::Asan | Self::Tsan) { self } else { Self::Plain }
    }

    /// Part of the names of the kernels' tests that it runs, where that is not all: the switch
    /// between fibers is the runtime's alone.
    pub(crate) fn tests(self) -> Option<&'static str> {
        (self == Self::Ucontext).then_some("runtime_basics")
    }

    /// Library of its sanitizer.
    pub(crate) fn sanitizer(self) -> Option<&'static str> {
        match self {
            Self::Asan => Some("libasan.so"),
            Self::Tsan => Some("libtsan.so"),
            _ => None,
        }
    }
}

/// An order in which streams of the fake driver do their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// As the fake driver calls it.
    pub(crate) kind: &'static str,
    pub(crate) seed: u64,
}

impl Schedule {
    pub(crate) fn name(self) -> String {
        if self.kind == "random" { format!("random {}", self.seed) } else { self.kind.to_owned() }
    }
}

/// The first `count`: a random one, which finds most alone; the two that are extreme; more seeds.
pub(crate) fn schedules(count: usize) -> Vec<Schedule> {
    let schedule = |index: usize| match index {
        0 => Schedule { kind: "random", seed: 1 },
        1 => Schedule { kind: "sequential", seed: 1 },
        2 => Schedule { kind: "reverse", seed: 1 },
        more => Schedule { kind: "random", seed: more as u64 - 1 },
    };
    (0..count).map(schedule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_schedule_comes_twice() {
        let names: Vec<String> = schedules(5).into_iter().map(Schedule::name).collect();
        assert_eq!(names, ["random 1", "sequential", "reverse", "random 2", "random 3"]);
    }

    #[test]
    fn all_flavours_are_each_of_them() {
        assert_eq!(Flavour::All.each().len(), 4);
        assert_eq!(Flavour::Tsan.each(), [Flavour::Tsan]);
    }
}
