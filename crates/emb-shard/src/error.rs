//! The one error type of this crate.

use crate::{Batch, DoesNotFit, PlanFault};

/// What went wrong, with the names and values a person needs to find it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An id that does not fit in its 32 bits.
    #[error("{kind} {index} does not fit in 32 bits")]
    IdTooLarge {
        /// What was to be named.
        kind: &'static str,
        /// Its position.
        index: usize,
    },
    /// A rank, group, owner, row or the like that is not there.
    #[error("{kind} {index} does not exist: there are {count}")]
    NoSuch {
        /// What was asked for.
        kind: &'static str,
        /// Its number.
        index: u64,
        /// How many there are, numbered from 0.
        count: u64,
    },
    /// A range that ends before it starts.
    #[error("{kind} range {start}..{end} ends before it starts")]
    RangeReversed {
        /// `row` or `column`.
        kind: &'static str,
        /// First.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// A table that cannot exist.
    #[error("table {table:?}: {what}")]
    BadTable {
        /// Table name.
        table: String,
        /// What is wrong, with the value and the valid range.
        what: String,
    },
    /// An access pattern, or a question about one, that makes no sense.
    #[error("access: {what}")]
    BadAccess {
        /// What is wrong, with the value and the valid range.
        what: String,
    },
    /// Machines that cannot exist.
    #[error("topology {topology:?}: {what}")]
    BadTopology {
        /// Topology name.
        topology: String,
        /// What is wrong, with the level, the value and the valid range.
        what: String,
    },
    /// Measured messages that no latency and bandwidth explain.
    #[error("links from measured messages: {what}")]
    Fit {
        /// What is wrong, with the bytes and the seconds.
        what: String,
    },
    /// A workload that cannot exist.
    #[error("workload {workload:?}: {what}")]
    BadWorkload {
        /// Workload name.
        workload: String,
        /// What is wrong, with the value and the valid range.
        what: String,
    },
    /// A constraint on plans that cannot be met.
    #[error("constraint: {what}")]
    Constraint {
        /// What is wrong, with the table, the value and the valid range.
        what: String,
    },
    /// A batch that so many ranks cannot have.
    #[error("{}", batch_text(*.batch, *.world))]
    BatchOfRanks {
        /// The batch.
        batch: Batch,
        /// Ranks.
        world: u32,
    },
    /// Two things of one name.
    #[error("two {kind}s are named {name:?}")]
    DuplicateName {
        /// `table` or `feature`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Ranks that cannot be split into groups of the size asked for.
    #[error("{world} ranks do not split into sharding groups of {group_ranks}")]
    GroupSize {
        /// Ranks of the run.
        world: u32,
        /// Ranks of a group asked for.
        group_ranks: u32,
    },
    /// A row map over nobody.
    #[error("a row map needs at least one owner")]
    NoOwners,
    /// Starts of row ranges that do not begin at 0.
    #[error("row starts must begin at 0, they begin at {first}")]
    StartsBegin {
        /// The first start.
        first: u64,
    },
    /// Starts of row ranges that decrease.
    #[error("row starts decrease at owner {owner}: {previous} then {next}")]
    StartsDecrease {
        /// The owner whose range would have negative length.
        owner: usize,
        /// Its start.
        previous: u64,
        /// Its end.
        next: u64,
    },
    /// A permutation of another number of rows than the map it feeds.
    #[error("the permutation has {permutation} rows, the row map behind it {rows}")]
    PermutationLength {
        /// Entries of the permutation.
        permutation: u64,
        /// Rows of the map.
        rows: u64,
    },
    /// A permutation that leaves the rows.
    #[error("the permutation sends row {row} to {place}, there are {rows} rows")]
    PermutationRange {
        /// The row.
        row: u64,
        /// Where it would go.
        place: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// A permutation that sends two rows to one place.
    #[error("the permutation sends rows {first} and {second} to {place}")]
    PermutationTwice {
        /// One row.
        first: u64,
        /// Another row.
        second: u64,
        /// Where both go.
        place: u64,
    },
    /// An order that lists a hot row twice.
    #[error("hot row {row} is listed twice, at places {first} and {second}")]
    HotRowTwice {
        /// The row.
        row: u64,
        /// Its first place.
        first: u32,
        /// Another place.
        second: u32,
    },
    /// An order of rows in a plan file that is none.
    #[error("table {table:?}, order of rows: {fault}")]
    Order {
        /// Table name.
        table: String,
        /// What is wrong.
        fault: Box<Self>,
    },
    /// A tier of a plan file whose ranges, groups or row maps are none.
    #[error("table {table:?}, tier {tier}: {fault}")]
    Tier {
        /// Table name.
        table: String,
        /// Its tier, by position.
        tier: usize,
        /// What is wrong.
        fault: Box<Self>,
    },
    /// More ranks than a plan may have.
    #[error("a plan of {world} ranks: at most {limit} are supported")]
    WorldTooLarge {
        /// Ranks asked for.
        world: u32,
        /// The most there may be.
        limit: u32,
    },
    /// Nodes that do not share out the world.
    #[error("{world} ranks do not split into nodes of {node_ranks}")]
    NodeRanks {
        /// Ranks of the run.
        world: u32,
        /// Ranks of a node.
        node_ranks: u32,
    },
    /// Tables without a place.
    #[error("the plan has no place for {}", quoted(.tables))]
    TablesMissing {
        /// Their names.
        tables: Vec<String>,
    },
    /// Tables that do not exist.
    #[error("the plan names {}, which the model does not have", quoted(.tables))]
    TablesUnknown {
        /// Their names.
        tables: Vec<String>,
    },
    /// A table placed more than once.
    #[error("the plan places table {table:?} twice")]
    TablePlacedTwice {
        /// Table name.
        table: String,
    },
    /// A table that is not the one the plan was made for.
    #[error("table {table:?}: {what} {given}, the plan was made for {plan}")]
    TableDiffers {
        /// Table name.
        table: String,
        /// What differs.
        what: &'static str,
        /// As the plan knows it.
        plan: String,
        /// As it is.
        given: String,
    },
    /// Tables that are not those the plan was made for, though every shape is the same.
    #[error("the tables have fingerprint {given:016x}, the plan was made for {plan:016x}")]
    Fingerprint {
        /// As the plan knows them.
        plan: u64,
        /// As they are.
        given: u64,
    },
    /// A plan file of another version.
    #[error("plan file of version {version}: this program reads version {supported}")]
    PlanVersion {
        /// As the file says.
        version: u32,
        /// What is read.
        supported: u32,
    },
    /// A placement that does not cover a table as it must, or that contradicts itself.
    #[error("table {table:?}{}: {fault}", tier_text(*.tier))]
    Plan {
        /// Table name.
        table: String,
        /// Its tier, by position.
        tier: Option<usize>,
        /// What is wrong.
        fault: PlanFault,
    },
    /// A placement that cannot be made of a table.
    #[error("table {table:?} as {placement}: {what}")]
    Placement {
        /// Table name.
        table: String,
        /// The placement asked for.
        placement: &'static str,
        /// Why not, with the values and the valid range.
        what: String,
    },
    /// A table that no rank has room for.
    #[error(transparent)]
    DoesNotFit(Box<DoesNotFit>),
    /// Lengths of bags that contradict the ids.
    #[error("feature {feature:?}: the lengths sum to {lengths}, there are {ids} ids")]
    Lengths {
        /// Feature name.
        feature: String,
        /// Sum of all lengths.
        lengths: u64,
        /// Ids given.
        ids: u64,
    },
    /// An id that its table does not have.
    #[error(
        "feature {feature:?}, sample {sample}, position {position}: id {id} is outside 0..{rows}"
    )]
    IdOutOfRange {
        /// Feature name.
        feature: String,
        /// The sample, in the batch of the rank.
        sample: usize,
        /// The position in its bag.
        position: u64,
        /// The id.
        id: i64,
        /// Rows of the table.
        rows: u64,
    },
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("table{} {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
}

fn tier_text(tier: Option<usize>) -> String {
    tier.map_or_else(String::new, |tier| format!(", tier {tier}"))
}

fn batch_text(batch: Batch, world: u32) -> String {
    let samples = match batch {
        Batch::Global(samples) => format!("{samples} samples of all ranks"),
        Batch::PerRank(samples) => format!("{samples} samples of each of {world} ranks"),
    };
    if world == 0 {
        return format!("{samples}, and there are no ranks");
    }
    format!("{samples} exceed 64 bits")
}
