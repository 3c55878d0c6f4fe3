//! Whether ranks that are processes were started alike: [`agree`].
//!
//! Threads share one configuration. Processes have one each, from a command line each, and ranks of
//! different ones would exchange lists that mean different things. So before anything is built they
//! compare digests, a few hundred bytes each, and what differs is named:
//! `rank 2 was started with --batch-size 64, ranks 0, 1 and 3 with 128`.

use super::names::names;
use crate::checkpoint::{Manifest, to_resume};
use crate::config::choices::{Choice, of_model, of_ranks};
use crate::config::{Config, Origin};
use crate::data::files::expand;
use crate::{Error, Result};
use emb_comm::Collective;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// What ranks compare, in the order in which differences are looked for: the first may explain the
/// others.
const SECTIONS: [&str; 11] = [
    "program",
    "checkpoint",
    "files",
    "model",
    "tables",
    "optimizers",
    "data",
    "training",
    "device",
    "plan",
    "wire",
];
/// Digests that are sent: programs with more sections can still be compared.
const DIGESTS: usize = 16;

/// Compares how the ranks were started: two collectives where they agree on how, else three.
///
/// # Errors
/// The first thing that differs, with the ranks that differ; a peer that fails.
pub(super) fn agree<C: Collective>(ranks: &mut C, config: &Config, hosts: &[String]) -> Result<()> {
    let own = choices(config)?;
    let world = ranks.world();
    let mut digests = [0; DIGESTS];
    for (digest, section) in digests.iter_mut().zip(SECTIONS) {
        let mut hasher = DefaultHasher::new();
        own.iter()
            .filter(|choice| choice.section == section)
            .for_each(|c| c.value.hash(&mut hasher));
        *digest = hasher.finish();
    }
    let mut all = vec![0; world * DIGESTS];
    ranks.all_gather_v::<u64>(&digests, &mut all, &vec![DIGESTS; world])?;
    let differs =
        |&place: &usize| all.chunks_exact(DIGESTS).any(|other| other[place] != all[place]);
    let Some(place) = (0..DIGESTS).find(differs) else { return Ok(()) };
    let section = SECTIONS.get(place).copied().unwrap_or("program");
    let told = tell(ranks, &own, section)?;
    Err(Error::Config(explain(section, &told, hosts)))
}

/// Everything that all ranks must have alike.
fn choices(config: &Config) -> Result<Vec<Choice>> {
    let mut all = of_model(config);
    all.extend(of_ranks(config));
    let mut add = |section, name: &str, words| {
        let (name, value) = (name.to_owned(), String::clone(&words));
        all.push(Choice { section, name, words, value });
    };
    add("program", "version", format!("emb {}", env!("CARGO_PKG_VERSION")));
    if let Origin::Files(paths) = &config.data {
        add("files", "training", sizes("training", paths)?);
        add("files", "evaluation", sizes("evaluation", &config.eval)?);
    }
    let found = match (&config.load, to_resume(config)?) {
        (Some(dir), _) => Some(Manifest::read(dir)?),
        (None, found) => found,
    };
    let words = match found {
        Some(found) => format!("a checkpoint of step {} ({})", found.step, short(&found)),
        None => "no checkpoint".to_owned(),
    };
    add("checkpoint", "checkpoint", words);
    Ok(all)
}

/// What tells a checkpoint from others of the same step.
fn short(found: &Manifest) -> String {
    let mut hasher = DefaultHasher::new();
    found.tensors.iter().for_each(|tensor| tensor.sha256.hash(&mut hasher));
    format!("digest {:08x}", hasher.finish() as u32)
}

/// How much there is to read: what can be told of files without reading them.
fn sizes(what: &str, paths: &[PathBuf]) -> Result<String> {
    let files = if paths.is_empty() { Vec::new() } else { expand(paths)? };
    let mut bytes = 0;
    for file in &files {
        bytes += std::fs::metadata(file).map_err(Error::io("opening", file))?.len();
    }
    let s = if files.len() == 1 { "" } else { "s" };
    Ok(format!("{} {what} file{s} of {bytes} bytes", files.len()))
}

/// Tells all ranks, in words, what this one has of a section; returns what each has, by rank.
fn tell<C: Collective>(
    ranks: &mut C,
    own: &[Choice],
    section: &str,
) -> Result<Vec<Vec<(String, String)>>> {
    let world = ranks.world();
    let words = own.iter().filter(|choice| choice.section == section);
    let words: Vec<(&str, &str)> = words.map(|choice| (&*choice.name, &*choice.words)).collect();
    let text = serde_json::to_vec(&words).expect("invariant: text becomes JSON");
    let mut lengths = vec![0; world];
    ranks.all_gather_v::<u64>(&[text.len() as u64], &mut lengths, &vec![1; world])?;
    let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
    let mut all = vec![0; lengths.iter().sum()];
    ranks.all_gather_v::<u8>(&text, &mut all, &lengths)?;
    let mut rest = &all[..];
    let told = lengths.into_iter().map(|length| {
        let (text, after) = rest.split_at(length);
        rest = after;
        serde_json::from_slice(text).unwrap_or_default()
    });
    Ok(told.collect())
}

/// The first thing of a section that differs, and on which ranks: those who differ from most first.
fn explain(section: &str, told: &[Vec<(String, String)>], hosts: &[String]) -> String {
    let all_names = told.iter().flatten().map(|(name, _)| name);
    let of = |rank: usize, name: &str| {
        let choice = told[rank].iter().find(|(own, _)| own == name);
        choice.map_or_else(|| format!("no {name}"), |(_, words)| words.clone())
    };
    for name in all_names {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for rank in 0..told.len() {
            let words = of(rank, name);
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, ranks)) => ranks.push(rank),
                None => groups.push((words, vec![rank])),
            }
        }
        if groups.len() > 1 {
            groups.sort_by_key(|(_, ranks)| ranks.len());
            return sentence(section, &groups, hosts);
        }
    }
    format!("the ranks were started differently: {section}")
}

fn sentence(section: &str, groups: &[(String, Vec<usize>)], hosts: &[String]) -> String {
    let (one, many) = match section {
        "files" => ("reads", "read"),
        "checkpoint" => ("sees", "see"),
        "program" => ("is of", "are of"),
        _ => ("was started with", "were started with"),
    };
    let mut text = String::new();
    for (number, (words, ranks)) in groups.iter().enumerate() {
        if number == 3 {
            text.push_str(", and others otherwise");
            break;
        }
        let mut verb = if ranks.len() == 1 { one } else { many };
        let mut words = &words[..];
        if number > 0 {
            text.push_str(", ");
            verb = verb.strip_prefix("was started ").unwrap_or(verb);
            verb = verb.strip_prefix("were started ").unwrap_or(verb);
            // `--batch-size 64` and `128`: the flag is said once.
            let flag = |words: &str| words.split_once(' ').map(|(flag, _)| flag.to_owned());
            let same = flag(words).filter(|flag| flag.starts_with("--"));
            if same.is_some() && same == flag(&groups[0].0) {
                words = words.split_once(' ').map_or(words, |(_, value)| value);
            }
        }
        let _ = write!(text, "{} {verb} {words}", names(ranks, hosts));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::explain;

    fn told(words: &[&str]) -> Vec<Vec<(String, String)>> {
        words.iter().map(|words| vec![("x".to_owned(), (*words).to_owned())]).collect()
    }

    #[test]
    fn who_differs_from_most_is_named_first() {
        let few = told(&["--seed 1", "--seed 1", "--seed 7", "--seed 1"]);
        assert_eq!(
            explain("training", &few, &[]),
            "rank 2 was started with --seed 7, ranks 0, 1 and 3 with 1"
        );
        let steps = told(&["--epochs 1", "--steps 5", "--steps 5"]);
        assert_eq!(
            explain("training", &steps, &[]),
            "rank 0 was started with --epochs 1, ranks 1 and 2 with --steps 5"
        );
        let hosts = ["a", "a", "b"].map(str::to_owned);
        let disks = told(&["a checkpoint of step 5", "a checkpoint of step 5", "no checkpoint"]);
        assert_eq!(
            explain("checkpoint", &disks, &hosts),
            "rank 2 (on b) sees no checkpoint, ranks 0 and 1 see a checkpoint of step 5"
        );
    }

    #[test]
    fn what_one_rank_alone_has_is_named_too() {
        let mut told = told(&["26 tables", "26 tables"]);
        told[1].push(("table C27".to_owned(), "table \"c27\" of 5 rows".to_owned()));
        assert_eq!(
            explain("tables", &told, &[]),
            "rank 0 was started with no table C27, rank 1 with table \"c27\" of 5 rows"
        );
    }
}
