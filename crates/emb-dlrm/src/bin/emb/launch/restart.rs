//! Going on with the ranks that are left.

use super::decide::{Plan, additions, manifest};
use crate::output;
use emb_dlrm::checkpoint::Manifest;
use emb_dlrm::config::Options;
use emb_dlrm::launch::{Start, Verdict, Voice, smaller};
use emb_dlrm::{Error, Result};
use std::ffi::OsString;
use std::path::Path;

impl Plan {
    /// Prepares the next start after a failure; `false` where there is to be none.
    pub(super) fn goes_on(&mut self, verdict: &Verdict, voice: &dyn Voice) -> Result<bool> {
        let Some(left) = self.restarts else { return Ok(false) };
        if verdict.lost.is_empty() {
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
        self.restarts = Some(left - 1);
        let world = self.launch.world.saturating_sub(verdict.lost.len()).max(1);
        let found = manifest(&dir);
        let of_this_run = self.options.resume == Some(true) || found != self.before;
        let from =
            match (found.is_some() && of_this_run).then(|| Manifest::read(&dir)).transpose()? {
                Some(manifest) => format!("going on from the checkpoint of step {}", manifest.step),
                None => "there is no checkpoint yet: beginning anew".to_owned(),
            };
        let ranks = if world == 1 { "rank" } else { "ranks" };
        voice.note(&format!("{}; {from} on {world} {ranks}", lost(verdict)));
        let less = smaller(&self.options, world);
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
            run.hosts = run.hosts.take().map(|hosts| hosts.without(&verdict.lost));
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

/// "rank 2 was lost in step 37".
fn lost(verdict: &Verdict) -> String {
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
