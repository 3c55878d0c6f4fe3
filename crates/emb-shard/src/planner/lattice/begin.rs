//! First plans over one mesh: [`first_plans`].

use super::choice::Choice;
use super::price::{self, Options};
use super::start;
use super::state::{Score, State};
use crate::{Exchange, Ledger, Mesh, Objective, Path, Per, Result, Task};

/// A first plan over one mesh.
#[derive(Clone)]
pub(super) struct Begun<'a> {
    pub(super) state: State<'a>,
    pub(super) score: Score,
    /// The choices that it was made of.
    pub(super) options: Options,
    /// All choices.
    pub(super) all: Options,
}

/// How much busier than the mean an owner may be, and how much of the exchange of ids counts.
const STARTS: [(f64, f64); 6] =
    [(1.0, 1.0), (0.25, 1.0), (1.0, 0.0), (0.05, 1.0), (4.0, 1.0), (0.0, 1.0)];

/// Starts that are worth their time where tables and ranks are many.
const OF_MANY: usize = 4;

/// Tables times ranks up to which the kinds of collectives are worth choosing: with more, bytes
/// take longer than starting a collective.
const FEW: u64 = 50_000;

/// Which choices a first plan may have. Every kind of exchange, and the sync of replicas, takes a
/// latency once for all tables: no single table can tell whether it is worth that.
#[derive(Clone, Copy, Debug)]
struct Only {
    /// Tables or hot rows on every rank.
    everywhere: bool,
    /// The one exchange of all other tables; `None` for any.
    exchange: Option<Exchange>,
}

/// All exchanges between ranks.
pub(super) const EXCHANGES: [Exchange; 5] = [
    Exchange::Reduce { over: Path::Flat },
    Exchange::Reduce { over: Path::Hierarchical },
    Exchange::Unique { per: Per::Rank },
    Exchange::Unique { per: Per::Node },
    Exchange::Rows,
];

impl Only {
    fn any() -> Self {
        Self { everywhere: true, exchange: None }
    }

    fn all() -> impl Iterator<Item = Self> {
        let exchanges = std::iter::once(None).chain(EXCHANGES.map(Some));
        exchanges.flat_map(|exchange| [true, false].map(|everywhere| Self { everywhere, exchange }))
    }

    fn allows(self, choice: &Choice) -> bool {
        let replicated = choice.mesh.group_ranks() == 1;
        if (replicated || choice.hot > 0) && !self.everywhere {
            return false;
        }
        replicated || self.exchange.is_none_or(|only| only == choice.exchange)
    }

    /// The choices that are left; `None` where a table has none.
    fn of(self, options: &Options) -> Option<Options> {
        let left = options.iter().map(|options| {
            let left = options.iter().filter(|priced| self.allows(&priced.choice));
            left.copied().collect()
        });
        let left: Options = left.collect();
        left.iter().all(|options| !options.is_empty()).then_some(left)
    }
}

/// Whether the busiest rank matters, and not only the mean one.
fn by_seconds(task: &Task<'_>) -> bool {
    task.objective == Objective::StepSeconds
}

/// Whether the kinds of collectives are chosen as well.
pub(super) fn is_small(task: &Task<'_>) -> bool {
    let tables = task.workload.tables().tables().len() as u64;
    tables * u64::from(task.topology.world()) <= FEW
}

/// First plans over `mesh`, the best first; `hot` allows hot rows on every rank. `ledger` keeps
/// what it learns.
pub(super) fn first_plans<'a>(
    task: &'a Task<'a>,
    ledger: &mut Ledger<'a>,
    mesh: Mesh,
    hot: bool,
) -> Result<Vec<Begun<'a>>> {
    let mut begun: Vec<Begun<'a>> = Vec::new();
    let mut priced: Vec<(f64, Options)> = Vec::new();
    // Without a dense model no exchange hides behind it.
    let hides = ledger.emptied().parts().dense > 0.0;
    let small = is_small(task);
    for (number, (patience, ids_count)) in STARTS.into_iter().enumerate() {
        if (ids_count < 1.0 && !hides) || (number >= OF_MANY && !small && by_seconds(task)) {
            continue;
        }
        let known = priced.iter().position(|(counted, _)| *counted == ids_count);
        let at = known.unwrap_or(priced.len());
        if known.is_none() {
            priced.push((ids_count, price::of_mesh(task, ledger, mesh, ids_count, hot)?));
        }
        begin(task, ledger, mesh, &priced[at].1, Only::any(), patience, &mut begun)?;
    }
    if small {
        for only in Only::all().skip(1) {
            begin(task, ledger, mesh, &priced[0].1, only, STARTS[0].0, &mut begun)?;
        }
    }
    begun.sort_by(|a, b| a.score.compare(b.score));
    Ok(begun)
}

fn begin<'a>(
    task: &'a Task<'a>,
    ledger: &Ledger<'a>,
    mesh: Mesh,
    all: &Options,
    only: Only,
    patience: f64,
    begun: &mut Vec<Begun<'a>>,
) -> Result<()> {
    let Some(options) = only.of(all) else { return Ok(()) };
    let budget = task.table_budget().get() as f64;
    let chosen = start::greedy(mesh, &options, budget, patience);
    let mut state = State::new(task, mesh, ledger.emptied(), chosen)?;
    let score = state.score();
    // Two starts that end in the same plan count once.
    if begun.iter().all(|begun| begun.score != score) {
        begun.push(Begun { state, score, options, all: all.clone() });
    }
    Ok(())
}
