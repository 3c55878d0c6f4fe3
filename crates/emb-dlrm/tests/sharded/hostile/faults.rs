//! A rank fails, panics, stalls or ends in any collective of a step: every other rank is told who,
//! where and when.

use super::faulty::{Fault, Faulty, INJECTED, Injected, Switch};
use super::{Case, every_exchange, local};
use crate::equality::steps;
use crate::replicas::{touched_rows, weights};
use crate::support::{Random, SEED, cases, cpu};
use emb_comm::{Collective, Failure, Options, run};
use emb_dlrm::sharded::{Error, IdWire, ShardedEmbeddings};
use emb_kernels::{Cpu, Jagged, Pooling};
use emb_shard::ReplicaSync;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long ranks wait for one that stalls, as often as it takes: where processors are so busy that
/// another rank is late, it is missed first.
const SHORT: [Duration; 3] =
    [Duration::from_millis(400), Duration::from_secs(2), Duration::from_secs(10)];

/// Never reached: what ends a rank is noticed without waiting.
const LONG: Duration = Duration::from_secs(25);

/// The step with the fault.
const STEP: u64 = 2;

/// What happened to whom.
struct Seen {
    run: Result<(), Failure>,
    /// By rank, its error.
    errors: Vec<Option<String>>,
    took: Duration,
    /// Collectives of the rank with the fault in the step with it.
    calls: u64,
}

/// Gradients of the output and of every sequence, 1 each.
fn ones(lens: impl Iterator<Item = usize>) -> Vec<Vec<f32>> {
    lens.map(|len| vec![1.0; len]).collect()
}

/// One step and a sync.
fn step(
    case: &Case,
    sharded: &mut ShardedEmbeddings<Cpu, Faulty>,
    cpu: &mut Cpu,
    batch: &Jagged,
    number: u64,
) -> Result<(), Error> {
    let pooled = sharded.route(batch.as_ref())?.exchange(sharded)?.pool(sharded, cpu)?;
    let output = vec![1.0; pooled.output().len()];
    let sequences = case.model.sequences();
    let sequences = ones(sequences.into_iter().map(|f| pooled.sequence(f).len()));
    let sequences: Vec<&[f32]> = sequences.iter().map(Vec::as_slice).collect();
    pooled.backward_all(sharded, cpu, &output, &sequences, 1.0, number)?;
    sharded.sync(cpu)
}

/// Three steps over four ranks, where `culprit` has a fault in the second.
fn attempt(
    case: &Case,
    ids: IdWire,
    culprit: usize,
    (fault, at): (Fault, u64),
    timeout: Duration,
) -> Seen {
    let Case { model, plan, .. } = case;
    let batches = steps(model, &mut Random::new(SEED), 4, 3, true);
    let switch = Arc::new(Switch::new(fault, at));
    let errors = Mutex::new(vec![None; 4]);
    let begun = Instant::now();
    let work = |world: &mut emb_comm::Local| {
        let (mut cpu, me) = (cpu(), world.rank());
        let own = (me == culprit).then(|| Arc::clone(&switch));
        let inner = world.split(Some(0), me)?.expect("a set");
        let mut faulty = Faulty::new(inner, Injected(own.clone()));
        let (features, rates) = (model.features.clone(), model.rates());
        let specs = &model.specs;
        let mut sharded =
            ShardedEmbeddings::new(&mut faulty, &mut cpu, plan, specs, features, rates, 0, SEED)?;
        sharded.set_id_wire(ids);
        for (number, batches) in (1..).zip(&batches) {
            faulty.set_step(number);
            if let Some(switch) = &own {
                switch.turn(number == STEP);
            }
            step(case, &mut sharded, &mut cpu, &batches[me], number)?;
        }
        Ok::<_, Error>(faulty.barrier()?)
    };
    let run = run(4, &Options::default().with_timeout(timeout), |world| {
        let me = world.rank();
        let done = work(world);
        let text = done.as_ref().err().map(ToString::to_string);
        errors.lock().expect("no panic")[me].clone_from(&text);
        match done {
            Err(Error::Comm(error)) if error == INJECTED && fault == Fault::EndsEarly => Ok(()),
            done => done,
        }
    });
    let errors = errors.into_inner().expect("no panic");
    let run = run.map(|_| ());
    Seen { run, errors, took: begun.elapsed(), calls: switch.calls() }
}

/// Every other rank ends, soon, with words that name the culprit, an operation and the step.
fn check(case: &Case, ids: IdWire, culprit: usize, (fault, at): (Fault, u64)) {
    let name = format!("{}, {ids:?}, {fault:?} of rank {culprit} in call {at}", case.name);
    let expected = match fault {
        Fault::Never => "",
        Fault::Error => "failed in step 2: injected",
        Fault::Panic => "panicked in step 2: injected",
        Fault::Stall => "is outside any collective in step 2",
        Fault::EndsEarly => "ended in step 2, without taking part in",
    };
    let expected = format!("rank {culprit} {expected}");
    let timeouts = if fault == Fault::Stall { &SHORT[..] } else { &[LONG] };
    let mut seen = None;
    for &timeout in timeouts {
        let one = attempt(case, ids, culprit, (fault, at), timeout);
        let failure = one.run.as_ref().expect_err(&name).to_string();
        let right = failure.contains(&expected);
        seen = Some((one, failure));
        if right {
            break;
        }
    }
    let (seen, failure) = seen.expect("invariant: there are timeouts");
    assert!(seen.took < LONG, "{name}: {:?}", seen.took);
    assert!(failure.contains(&expected), "{name}: {failure}");
    for (rank, error) in seen.errors.iter().enumerate().filter(|(rank, _)| *rank != culprit) {
        let error = error.as_ref().unwrap_or_else(|| panic!("{name}: rank {rank} has no error"));
        let place = format!(" on rank {rank} in step ");
        let named = error.contains(&format!("rank {culprit}")) && error.contains(&place);
        assert!(named, "{name}: rank {rank}: {error}");
    }
}

fn all() -> Vec<Case> {
    let mut all = every_exchange();
    for sync in [ReplicaSync::Gradients, weights(2), touched_rows(1)] {
        all.push(local(Pooling::Mean, sync));
    }
    all.push(local(Pooling::None, ReplicaSync::Gradients));
    all
}

#[test]
fn a_fault_in_any_collective_ends_every_rank_by_name() {
    // Stalls cost their timeout, ends the grace in which a reason may follow: fewer of them.
    let faults = [Fault::Error, Fault::Panic, Fault::EndsEarly, Fault::Panic, Fault::Error];
    let everything = cases(1) > 1;
    let (mut number, mut stalls) = (0, 0);
    for case in all() {
        for ids in [IdWire::Plain, IdWire::Packed] {
            let seen = attempt(&case, ids, 1, (Fault::Never, u64::MAX), LONG);
            seen.run.unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
            for at in 0..seen.calls {
                let culprit = (at as usize + number) % 4;
                if everything {
                    for fault in [Fault::Error, Fault::Panic, Fault::EndsEarly, Fault::Stall] {
                        check(&case, ids, culprit, (fault, at));
                    }
                } else if number % 2 == 0 {
                    let stall = number % 34 == 0;
                    stalls += usize::from(stall);
                    let fault = if stall { Fault::Stall } else { faults[number / 2 % 5] };
                    check(&case, ids, culprit, (fault, at));
                }
                number += 1;
            }
        }
    }
    eprintln!("{number} collectives, {stalls} stalls");
    assert!(number > 100, "{number} collectives");
}
