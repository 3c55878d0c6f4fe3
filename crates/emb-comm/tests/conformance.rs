//! The public suite, over the transports of this crate.
#![cfg(not(loom))]

use emb_comm::{Error, Local, Options, Solo, conformance, run};
use std::time::Duration;

fn options() -> Options {
    Options::default().with_timeout(Duration::from_secs(30))
}

#[test]
fn local_conforms_in_worlds_of_1_to_8() {
    for world in 1..=8 {
        let done = run(world, &options(), |rank| {
            for check in conformance::checks::<Local>() {
                check.run(rank).map_err(|error| format!("{}: {error}", check.name()))?;
            }
            Ok::<_, String>(())
        });
        done.unwrap_or_else(|failure| panic!("world of {world}: {failure}"));
    }
}

#[test]
fn local_refuses_in_worlds_of_2_to_8() {
    for world in 2..=8 {
        for check in conformance::refusals::<Local>() {
            let mut ranks = Local::world(world, &options());
            std::thread::scope(|scope| {
                for rank in &mut ranks {
                    let check = &check;
                    scope.spawn(move || {
                        let outcome = check.run(rank);
                        outcome.unwrap_or_else(|error| panic!("{}: {error}", check.name()));
                    });
                }
            });
        }
    }
}

#[test]
fn solo_conforms() {
    for check in conformance::checks::<Solo>() {
        let outcome: Result<(), Error> = check.run(&mut Solo);
        outcome.unwrap_or_else(|error| panic!("{}: {error}", check.name()));
    }
}
