//! Whether a run goes on from the checkpoint that it would replace: [`to_resume`].

use super::manifest::Manifest;
use crate::config::{Config, Options, choices};
use crate::{Error, Result};
use std::path::Path;

/// The checkpoint that a run with `--resume` goes on from: that in the folder it saves to. `None`
/// where it isn't asked to, or where there is none yet.
///
/// Ranks, plans, devices, lengths and what is evaluated may be others than before: a training that
/// lost a rank goes on with those that are left.
///
/// # Errors
/// A checkpoint that can't be read, or that options made which give other weights: the first of
/// them, by name, with both values.
pub fn to_resume(config: &Config) -> Result<Option<Manifest>> {
    let Some(dir) = config.resume.as_deref() else { return Ok(None) };
    let manifest = dir.join("manifest.json");
    // One that may not be looked at is not one that isn't there.
    if !manifest.try_exists().map_err(Error::io("opening", &manifest))? {
        return Ok(None);
    }
    let manifest = Manifest::read(dir)?;
    refuse_other(dir, &manifest.options, config)?;
    Ok(Some(manifest))
}

/// Refuses a checkpoint whose options would have given other weights.
fn refuse_other(dir: &Path, saved: &Options, config: &Config) -> Result<()> {
    let refuse = |then: &str, now: &str| {
        let what = format!(
            "--resume: it was trained with {then}, this run has {now}: give the same, or another \
             folder to --save, or start from it with --load"
        );
        Err(Error::checkpoint(dir, what))
    };
    if saved.data != config.options.data {
        return refuse(&data(&saved.data), &data(&config.options.data));
    }
    let alone = |options: &Options| {
        let mut options = options.clone().alone();
        // Neither is of the weights, and both may be gone.
        (options.device, options.precision, options.load) = (None, None, None);
        (options.threads, options.resume, options.save_every) = (None, None, None);
        Config::resolve(options)
    };
    let (then, now) = (alone(saved)?, alone(&config.options)?);
    let (then, now) = (choices::of_model(&then), choices::of_model(&now));
    for other in &now {
        match then.iter().find(|choice| choice.name == other.name) {
            Some(choice) if choice.value == other.value => {}
            Some(choice) => return refuse(&choice.words, &other.words),
            None => return refuse(&format!("no {}", other.name), &other.words),
        }
    }
    match then.iter().find(|choice| now.iter().all(|other| other.name != choice.name)) {
        Some(choice) => refuse(&choice.words, &format!("no {}", choice.name)),
        None => Ok(()),
    }
}

fn data(paths: &[std::path::PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    format!("--data {}", paths.join(" "))
}
