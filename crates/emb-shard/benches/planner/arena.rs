//! All planners on all tasks, scored by one simulator: [`run`].

use crate::tasks::ArenaTask;
use crate::{Options, planners};
use emb_shard::{CostModel, Lattice, Planner, StepModel, Task};
use serde_json::json;
use std::time::Instant;

/// What one planner did on one task.
#[derive(Clone, Copy)]
struct Score {
    /// Seconds of a simulated step; `None` for no valid plan.
    step: Option<f64>,
    /// Seconds that planning took.
    planning: f64,
}

/// What all planners did on one task.
struct Round {
    scores: Vec<Score>,
    /// Seconds that no plan is below.
    bound: Option<f64>,
}

/// One planner over all tasks.
struct Summary {
    name: &'static str,
    valid: usize,
    /// Mean seconds of a step over its valid plans.
    step: f64,
    /// Mean ratio to the best greedy plan, over tasks where both are valid.
    to_greedy: f64,
    /// Tasks where no plan is faster.
    wins: usize,
    planning: f64,
}

/// The planner whose plans are compared with those of all others.
const OURS: &str = "lattice";

/// Runs the tasks and prints what came of it.
pub(crate) fn run(name: &str, tasks: impl Iterator<Item = ArenaTask>, options: &Options) {
    let planners = planners();
    let rounds: Vec<Round> = tasks.map(|task| round(&planners, &task)).collect();
    let names: Vec<&'static str> = planners.iter().map(|planner| planner.name()).collect();
    if options.each {
        for (task, round) in rounds.iter().enumerate() {
            print_round(name, task, &names, round);
        }
    }
    let summaries: Vec<Summary> =
        (0..names.len()).map(|planner| summary(&names, planner, &rounds)).collect();
    let ours = ours(&names, &rounds);
    if options.json {
        println!("{}", as_json(name, rounds.len(), &summaries, &ours));
    } else {
        print(name, rounds.len(), &summaries, &ours);
    }
}

fn round(planners: &[Box<dyn Planner>], task: &ArenaTask) -> Round {
    let asked = task.asked();
    let scores = planners.iter().map(|planner| score(planner.as_ref(), &asked)).collect();
    let bound = Lattice::default().solve(&asked).ok().map(|planned| planned.lower_bound_seconds);
    Round { scores, bound }
}

fn score(planner: &dyn Planner, task: &Task<'_>) -> Score {
    let begin = Instant::now();
    let plan = planner.plan(task);
    let planning = begin.elapsed().as_secs_f64();
    let step = plan.ok().and_then(|plan| {
        let estimate = StepModel::default().estimate(&plan, task.workload, task.topology);
        let estimate = estimate.expect("a plan of this task");
        let fits = estimate.ranks.iter().all(|rank| {
            let tables = rank.peak.weights + rank.peak.state;
            tables <= task.table_budget().get() as f64
                && rank.peak.total() <= task.budget().get() as f64
        });
        fits.then(|| estimate.step_seconds())
    });
    Score { step, planning }
}

/// Fewest seconds of the planners that `which` names.
fn best(names: &[&str], round: &Round, which: impl Fn(&str) -> bool) -> Option<f64> {
    let steps = names.iter().zip(&round.scores).filter(|(name, _)| which(name));
    steps.filter_map(|(_, score)| score.step).reduce(f64::min)
}

fn summary(names: &[&'static str], planner: usize, rounds: &[Round]) -> Summary {
    let steps = rounds.iter().filter_map(|round| Some((round, round.scores[planner].step?)));
    let to_greedy = steps.clone().filter_map(|(round, step)| {
        Some(step / best(names, round, |name| name.starts_with("greedy"))?)
    });
    let wins = steps.clone().filter(|(round, step)| best(names, round, |_| true) == Some(*step));
    let planning = rounds.iter().map(|round| round.scores[planner].planning);
    Summary {
        name: names[planner],
        valid: steps.clone().count(),
        step: mean(steps.clone().map(|(_, step)| step)),
        to_greedy: mean(to_greedy),
        wins: wins.count(),
        planning: mean(planning),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// How our plans stand.
struct Ours {
    /// Tasks where no baseline is faster.
    equal_or_better: usize,
    /// Tasks for which any planner has a valid plan.
    solved: usize,
    /// Mean of the step over the bound, less 1.
    gap: f64,
}

fn ours(names: &[&'static str], rounds: &[Round]) -> Ours {
    let step = |round: &Round| best(names, round, |name| name == OURS);
    let not_behind = rounds.iter().filter(|round| {
        let baseline = best(names, round, |name| name != OURS).unwrap_or(f64::INFINITY);
        // Equal plans may be summed in another order.
        step(round).is_some_and(|step| step <= baseline * (1.0 + 1e-9))
    });
    let gaps = rounds.iter().filter_map(|round| Some(step(round)? / round.bound? - 1.0));
    let solved = rounds.iter().filter(|round| best(names, round, |_| true).is_some()).count();
    Ours { equal_or_better: not_behind.count(), solved, gap: mean(gaps) }
}

/// One task in a line: milliseconds of every planner's step and of the bound.
fn print_round(name: &str, task: usize, names: &[&'static str], round: &Round) {
    let text = |seconds: Option<f64>| {
        seconds.map_or("-".to_owned(), |seconds| format!("{:.4}", seconds * 1e3))
    };
    let steps = names.iter().zip(&round.scores);
    let steps = steps.map(|(planner, score)| format!("{planner} {}", text(score.step)));
    let steps: Vec<String> = steps.collect();
    println!("{name} {task}: {}, bound {}", steps.join(", "), text(round.bound));
}

fn print(name: &str, tasks: usize, summaries: &[Summary], ours: &Ours) {
    println!("{name}: {tasks} tasks from a synthetic pool, one simulator");
    println!(
        "{:<20}{:>8}{:>12}{:>16}{:>7}{:>12}",
        "planner", "valid", "step ms", "to best greedy", "wins", "plan ms"
    );
    for summary in summaries {
        println!(
            "{:<20}{:>8}{:>12.4}{:>16.4}{:>7}{:>12.3}",
            summary.name,
            summary.valid,
            summary.step * 1e3,
            summary.to_greedy,
            summary.wins,
            summary.planning * 1e3,
        );
    }
    println!(
        "{OURS}: no baseline is faster on {} of the {} tasks that any planner solves; on average \
         {:.2} % above the bound\n",
        ours.equal_or_better,
        ours.solved,
        ours.gap * 100.0,
    );
}

fn as_json(name: &str, tasks: usize, summaries: &[Summary], ours: &Ours) -> serde_json::Value {
    let planners = summaries.iter().map(|summary| {
        json!({
            "planner": summary.name,
            "valid": summary.valid,
            "step_seconds": summary.step,
            "ratio_to_best_greedy": summary.to_greedy,
            "wins": summary.wins,
            "planning_seconds": summary.planning,
        })
    });
    json!({
        "bench": "planner",
        "set": name,
        "tasks": tasks,
        "planners": planners.collect::<Vec<_>>(),
        "lattice": {
            "equal_or_better": ours.equal_or_better,
            "of_solved": ours.solved,
            "gap_to_bound": ours.gap,
        },
    })
}
