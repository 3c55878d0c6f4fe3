//! What goes wrong, and where: [`Fault`], [`Sets`], [`Case`].

/// Ranks of every case.
pub const WORLD: usize = 4;

/// The rank at fault: the last, which of two ranks that differ is the one named.
pub const CULPRIT: usize = WORLD - 1;

/// The step in which it happens.
pub const STEP: u64 = 5;

/// What the rank at fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It calls another operation.
    OtherOperation,
    /// Its elements are of another type.
    OtherType,
    /// Its values are more.
    OtherLength,
    /// It expects an element less than a peer sends.
    ExpectsLess,
    /// It sends an element more than a peer expects.
    SendsMore,
    /// It calls two operations of a set the other way round.
    OtherOrder,
    /// It calls operations of two sets the other way round, so that ranks wait for each other.
    OtherSetFirst,
    /// It broadcasts from another root.
    OtherRoot,
    /// It is in another step.
    OtherStep,
    /// It divides its set by other lists.
    OtherLists,
    /// It divides its set by lists, the others by colors.
    OtherDivision,
    /// Its arguments do not fit each other.
    WrongArguments,
    /// It gives up, with a reason.
    GivesUp,
    /// It panics.
    Panics,
    /// It drops its ends and goes: it is out of data.
    Leaves,
    /// It stays away for longer than the timeout, and then comes.
    Stalls,
    /// It never calls anything.
    NeverCalls,
    /// Its process exits in order, with 0, without a word.
    ExitsWell,
    /// Its process exits with 3, without a word.
    Exits,
    /// Its process is killed by signal 9.
    IsKilled,
    /// Its process is stopped by a signal, and not continued.
    IsStopped,
    /// Its process aborts.
    Aborts,
    /// Its process reads memory that is not its own.
    Crashes,
    /// Its process is there, and never joins.
    NeverJoins,
    /// Its process ends before it has joined.
    EndsBeforeJoining,
}

impl Fault {
    /// Faults of a thread as of a process.
    pub const OF_RANKS: [Self; 17] = [
        Self::OtherOperation,
        Self::OtherType,
        Self::OtherLength,
        Self::ExpectsLess,
        Self::SendsMore,
        Self::OtherOrder,
        Self::OtherSetFirst,
        Self::OtherRoot,
        Self::OtherStep,
        Self::OtherLists,
        Self::OtherDivision,
        Self::WrongArguments,
        Self::GivesUp,
        Self::Panics,
        Self::Leaves,
        Self::Stalls,
        Self::NeverCalls,
    ];

    /// Faults that take a process.
    pub const OF_PROCESSES: [Self; 8] = [
        Self::ExitsWell,
        Self::Exits,
        Self::IsKilled,
        Self::IsStopped,
        Self::Aborts,
        Self::Crashes,
        Self::NeverJoins,
        Self::EndsBeforeJoining,
    ];

    /// In a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherOperation => "other operation",
            Self::OtherType => "other element type",
            Self::OtherLength => "other length",
            Self::ExpectsLess => "expects one less",
            Self::SendsMore => "sends one more",
            Self::OtherOrder => "other order",
            Self::OtherSetFirst => "other set first",
            Self::OtherRoot => "other root",
            Self::OtherStep => "other step",
            Self::OtherLists => "other lists of groups",
            Self::OtherDivision => "lists, not colors",
            Self::WrongArguments => "wrong arguments",
            Self::GivesUp => "gives up",
            Self::Panics => "panics",
            Self::Leaves => "leaves",
            Self::Stalls => "stalls",
            Self::NeverCalls => "never calls",
            Self::ExitsWell => "exit(0)",
            Self::Exits => "exit(3)",
            Self::IsKilled => "kill -9",
            Self::IsStopped => "SIGSTOP",
            Self::Aborts => "abort",
            Self::Crashes => "SIGSEGV",
            Self::NeverJoins => "never joins",
            Self::EndsBeforeJoining => "ends before it joins",
        }
    }

    /// Whether nobody can tell but by waiting.
    pub fn takes_the_timeout(self) -> bool {
        matches!(
            self,
            Self::OtherSetFirst
                | Self::Stalls
                | Self::NeverCalls
                | Self::IsStopped
                | Self::NeverJoins
        )
    }

    /// Whether it happens before the ranks have made their sets.
    pub fn is_early(self) -> bool {
        matches!(self, Self::NeverCalls | Self::NeverJoins | Self::EndsBeforeJoining)
    }

    /// Whether it is one of a process.
    pub fn takes_a_process(self) -> bool {
        Self::OF_PROCESSES.contains(&self)
    }
}

/// The sets that ranks make, and in which of them it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sets {
    /// One dimension: the world alone.
    World,
    /// Two dimensions, in an operation of a group: ranks 0 and 1, ranks 2 and 3.
    Group,
    /// Two dimensions, in an operation of a replica set: ranks 0 and 2, ranks 1 and 3.
    Replicas,
}

impl Sets {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::World, Self::Group, Self::Replicas];

    /// In a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::World => "1D",
            Self::Group => "2D group",
            Self::Replicas => "2D replicas",
        }
    }
}

/// A fault in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Case {
    /// What goes wrong.
    pub fault: Fault,
    /// Where.
    pub sets: Sets,
}

impl Case {
    /// Every case of `faults`: each in each set, where that makes a difference.
    pub fn of(faults: &[Fault]) -> Vec<Self> {
        let cases = faults.iter().flat_map(|&fault| Sets::ALL.map(|sets| Self { fault, sets }));
        let differs = |case: &Self| match case.sets {
            Sets::World => case.fault != Fault::OtherSetFirst,
            Sets::Group => true,
            Sets::Replicas => !case.fault.is_early(),
        };
        cases.filter(differs).collect()
    }

    /// The case called by [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        let faults = [&Fault::OF_RANKS[..], &Fault::OF_PROCESSES[..]].concat();
        Self::of(&faults).into_iter().find(|case| case.name() == name)
    }

    /// "1D, kill -9".
    pub fn name(&self) -> String {
        format!("{}, {}", self.sets.name(), self.fault.name())
    }

    /// Whether a rank is in the set in which it happens, with the rank at fault.
    pub fn is_near(&self, rank: usize) -> bool {
        match self.sets {
            Sets::World => true,
            Sets::Group => rank / 2 == CULPRIT / 2,
            Sets::Replicas => rank % 2 == CULPRIT % 2,
        }
    }
}
