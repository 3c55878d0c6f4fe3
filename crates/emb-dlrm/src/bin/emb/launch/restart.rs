//! Going on with the ranks that are left.

use super::decide::{Plan, additions, manifest};
use crate::output;
use emb_dlrm::checkpoint::{Manifest, verify};
use emb_dlrm::config::Options;
use emb_dlrm::launch::{Smaller, Start, Verdict, Voice, smaller};
use emb_dlrm::{Error, Result};
use std::ffi::OsString;
use std::path::Path;

impl Plan {
    /// Prepares the next start after a failure; `false` where there is to be none.
    pub(super) fn goes_on(&mut self, verdict: &Verdict, voice: &dyn Voice) -> Result<bool> {
        let Some(left) = self.restarts else { return Ok(false) };
        if verdict.lost.is_empty() && !verdict.orphaned {
            let began = verdict.cause.step > 0 || self.options.resume != Some(true);
            if let Some(dir) = self.options.save.as_deref().filter(|_| !began)
                && let Err(error) = verify(dir)
            {
                voice.note(&damaged(dir, &error));
                return Ok(false);
            }
            voice.note(if verdict.cause.is_of_a_peer() {
                "not starting again: no process is known to be lost"
            } else {
                "not starting again: it would fail again"
            });
            return Ok(false);
        }
        if left == 0 {
            voice.note("not starting again: it was started as often as --restart says");
            return Ok(false);
        }
        let Some(dir) = self.options.save.clone() else { return Ok(false) };
        let left_out = verdict.left_out(self.launch.world);
        let world = self.launch.world - left_out.len();
        let found = manifest(&dir);
        let of_this_run = self.options.resume == Some(true) || found != self.before;
        let from = match (found.is_some() && of_this_run).then(|| Manifest::read(&dir)) {
            Some(Ok(manifest)) => format!("going on from the checkpoint of step {}", manifest.step),
            Some(Err(error)) => {
                voice.note(&damaged(&dir, &error));
                return Ok(false);
            }
            None => "there is no checkpoint yet: beginning anew".to_owned(),
        };
        self.restarts = Some(left - 1);
        let ranks = if world == 1 { "rank" } else { "ranks" };
        let all = if verdict.orphaned { "all " } else { "" };
        voice.note(&format!("{}; {from} on {all}{world} {ranks}", lost(verdict)));
        let less = if verdict.orphaned {
            // The same ranks, however many --world or none had said.
            let ranks = u32::try_from(world).ok().filter(|&ranks| ranks > 1);
            let options = Options { world: ranks, ..self.options.clone() };
            Smaller { options, notes: Vec::new() }
        } else {
            smaller(&self.options, world)
        };
        for line in &less.notes {
            voice.note(line);
        }
        let resume = (found.is_some() && of_this_run).then_some(true);
        self.options = Options { resume, ..less.options };
        self.before = self.before.take().filter(|_| resume.is_none());
        self.launch.program.truncate(1);
        self.launch.program.extend(self.command_line(&dir)?);
        self.launch.world = world;
        if let Start::MpiRun(run) = &mut self.launch.start {
            run.hosts = run.hosts.take().map(|hosts| hosts.without(&left_out));
        }
        Ok(true)
    }

    /// The command line of the next start. Its options are in a file beside the checkpoint, which all
    /// hosts see.
    fn command_line(&self, dir: &Path) -> Result<Vec<OsString>> {
        let text = toml::to_string(&self.options)
            .map_err(|error| Error::Config(format!("--restart: {error}")))?;
        let mut path = dir.as_os_str().to_owned();
        path.push(".restart.toml");
        output::write_file(Path::new(&path), &text)?;
        let mut line: Vec<OsString> = vec!["train".into(), "--config".into(), path];
        if self.json {
            line.push("--json".into());
        }
        let world = self.options.world.map_or(1, |world| world as usize);
        line.extend(
            additions(&self.options, self.transport, world).into_iter().map(OsString::from),
        );
        Ok(line)
    }
}

/// Which checkpoint is damaged, how, and what a person can do. There is no older one to go on from: a
/// checkpoint that is complete takes the place of the one before.
fn damaged(dir: &Path, error: &Error) -> String {
    format!(
        "not starting again: the checkpoint to go on from is damaged: {error}; put a copy of it in \
         {dir}, if there is one, and start with train --resume, or remove {dir} to begin anew",
        dir = dir.display()
    )
}

/// "rank 2 was lost in step 37".
fn lost(verdict: &Verdict) -> String {
    if verdict.orphaned {
        return "no rank is at fault".to_owned();
    }
    let names: Vec<String> = verdict.lost.iter().map(ToString::to_string).collect();
    let who = match &names[..] {
        [one] => format!("rank {one} was"),
        [rest @ .., last] => format!("ranks {} and {last} were", rest.join(", ")),
        [] => "no rank was".to_owned(),
    };
    match verdict.cause.step {
        0 => format!("{who} lost"),
        step => format!("{who} lost in step {step}"),
    }
}
