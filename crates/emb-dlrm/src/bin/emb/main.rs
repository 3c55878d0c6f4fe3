//! `emb`: train, evaluate, look into and plan recommendation models from the command line.
#![forbid(unsafe_code)]

mod args;
mod calibrate;
mod doctor;
mod evaluate;
mod health;
mod inspect;
mod launch;
mod output;
mod plan;
mod predict;
mod profile;
mod progress;
mod reading;
mod simulate;
mod text;
mod train;

use args::{Cli, Command};
use clap::Parser;
use emb_dlrm::{Error, launch::Error as Launch};
use std::process::ExitCode;

/// Exit code for a command line or configuration that can't be honoured.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if let Some(result) = launch::hidden() {
        return exit(result.map(|()| ExitCode::SUCCESS));
    }
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Launch(args) => return exit(launch::run(*args)),
        Command::Doctor(args) => return exit(doctor::run(&args)),
        Command::Train(args) => train::run(*args),
        Command::Eval(args) => evaluate::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
    };
    exit(result.map(|()| ExitCode::SUCCESS))
}

fn exit(result: Result<ExitCode, Error>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            let of_peer = emb_dlrm::launch::exit_code(&error);
            ExitCode::from(of_peer.unwrap_or_else(|| exit_code(&error)))
        }
    }
}

fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Config(_)
        | Error::Optimizer(_)
        | Error::NotBuilt(_)
        | Error::Launch(
            Launch::Variable { .. }
            | Launch::Half { .. }
            | Launch::Contradiction { .. }
            | Launch::NoAddress(_),
        ) => USAGE,
        Error::On { source, .. } => exit_code(source),
        _ => 1,
    }
}
