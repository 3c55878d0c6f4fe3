//! Hosts and how many ranks each takes: [`Hosts`].

use super::Error;
use std::path::Path;

/// Hosts in order, with how many ranks each takes. Ranks are dealt in this order: the first host
/// gets the first ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<(String, usize)>);

impl Hosts {
    /// Reads `a,b:2`: one rank on `a`, two on `b`.
    ///
    /// # Errors
    /// A name that is none, a number of ranks that is none, a host twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut hosts = Self::default();
        for part in text.split(',') {
            let (name, ranks) = match part.trim().rsplit_once(':') {
                Some((name, ranks)) => (name, Some(ranks)),
                None => (part.trim(), None),
            };
            hosts.add(name, ranks, &format!("--hosts {text}"))?;
        }
        Ok(hosts)
    }

    /// Reads a file with a host a line, `name`, `name slots=2` or `name:2`; `#` begins a comment.
    ///
    /// # Errors
    /// The file can't be read; as [`Hosts::parse`], with the line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Start(format!("--hostfile {}: {error}", path.display())))?;
        let mut hosts = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let place = format!("--hostfile {}:{}", path.display(), number + 1);
            let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let slots: Vec<&str> = rest.split_whitespace().collect();
            match (&slots[..], name.rsplit_once(':')) {
                ([], Some((name, ranks))) => hosts.add(name, Some(ranks), &place)?,
                ([], None) => hosts.add(name, None, &place)?,
                ([one], None) if one.starts_with("slots=") => {
                    hosts.add(name, one.strip_prefix("slots="), &place)?;
                }
                _ => {
                    return Err(Error::Start(format!("{place}: {line:?} is not `name slots=N`")));
                }
            }
        }
        if hosts.0.is_empty() {
            return Err(Error::Start(format!("--hostfile {}: no host in it", path.display())));
        }
        Ok(hosts)
    }

    fn add(&mut self, name: &str, ranks: Option<&str>, place: &str) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Start(format!("{place}: {what}")));
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        // A name that begins with a dash would be a flag of mpirun.
        if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
            return refuse(format!("{name:?} is no name of a host"));
        }
        let ranks = match ranks.map(str::parse::<usize>) {
            None => 1,
            Some(Ok(ranks)) if (1..=4096).contains(&ranks) => ranks,
            Some(_) => return refuse(format!("host {name}: ranks are a number from 1 to 4096")),
        };
        if self.0.iter().any(|(known, _)| known == name) {
            return refuse(format!("host {name} stands there twice: name it once, as {name}:2"));
        }
        self.0.push((name.to_owned(), ranks));
        Ok(())
    }

    /// Ranks of all hosts together.
    pub fn ranks(&self) -> usize {
        self.0.iter().map(|(_, ranks)| ranks).sum()
    }

    /// The same hosts for so many ranks: the first places of them, or, where each host takes one rank,
    /// as many more on every host.
    ///
    /// # Errors
    /// More ranks than places.
    pub fn for_ranks(self, ranks: usize) -> Result<Self, Error> {
        let places = self.ranks();
        if ranks > places && ranks.is_multiple_of(places) && places == self.0.len() {
            let each = ranks / places;
            return Ok(Self(self.0.into_iter().map(|(name, _)| (name, each)).collect()));
        }
        if ranks > places {
            return Err(Error::Start(format!(
                "-n {ranks}: {self} take {places} ranks: say how many each takes, as a:4,b:4"
            )));
        }
        let beyond: Vec<usize> = (ranks..places).collect();
        Ok(self.without(&beyond))
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Hosts in order, and how many ranks each takes.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, ranks)| (name.as_str(), *ranks))
    }

    /// The host of a rank; `None` beyond the last.
    pub fn of(&self, rank: usize) -> Option<&str> {
        let mut first = 0;
        self.0.iter().find_map(|(name, ranks)| {
            first += ranks;
            (rank < first).then_some(name.as_str())
        })
    }

    /// What is left when ranks are lost: each takes its place on its host with it.
    #[must_use]
    pub fn without(&self, lost: &[usize]) -> Self {
        let on = |name: &str| lost.iter().filter(|&&rank| self.of(rank) == Some(name)).count();
        let left = self.0.iter().map(|(name, ranks)| (name.clone(), ranks - on(name)));
        Self(left.filter(|(_, ranks)| *ranks > 0).collect())
    }
}

impl std::fmt::Display for Hosts {
    /// As `mpirun --host` takes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(name, ranks)| format!("{name}:{ranks}")).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dealt_in_the_order_of_hosts_and_lost_ones_take_their_place_along() {
        let hosts = Hosts::parse("a:2, b,c:3").expect("hosts");
        assert_eq!(hosts.to_string(), "a:2,b:1,c:3");
        assert_eq!(hosts.ranks(), 6);
        let of: Vec<_> = (0..7).map(|rank| hosts.of(rank)).collect();
        assert_eq!(of, [Some("a"), Some("a"), Some("b"), Some("c"), Some("c"), Some("c"), None]);
        assert_eq!(hosts.without(&[2, 3]).to_string(), "a:2,c:2");
    }

    #[test]
    fn hosts_are_cut_or_filled_to_the_ranks_asked_for() {
        let of = |text: &str, ranks| {
            let hosts = Hosts::parse(text).expect("hosts");
            hosts.for_ranks(ranks).map(|hosts| hosts.to_string()).map_err(|e| e.to_string())
        };
        assert_eq!(of("a,b", 8), Ok("a:4,b:4".to_owned()));
        assert_eq!(of("a:2,b:2", 3), Ok("a:2,b:1".to_owned()));
        assert_eq!(of("a:2,b:2", 2), Ok("a:2".to_owned()));
        assert!(of("a:2,b:2", 8).is_err_and(|error| error.contains("a:2,b:2 take 4 ranks")));
        assert!(of("a,b", 3).is_err());
    }

    #[test]
    fn hosts_that_are_none_are_refused_by_name_and_place() {
        for (text, says) in [
            ("a,,b", "\"\" is no name"),
            ("--mca", "\"--mca\" is no name"),
            ("a;rm", "\"a;rm\" is no name"),
            ("a:x", "host a: ranks are a number"),
            ("a:0", "host a: ranks are a number"),
            ("a,a", "host a stands there twice"),
        ] {
            let error = Hosts::parse(text).expect_err(text).to_string();
            assert!(error.contains(says) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_file_has_a_host_a_line() -> std::io::Result<()> {
        let path = std::env::temp_dir().join(format!("emb-hosts-{}", std::process::id()));
        std::fs::write(&path, "# rack 1\na slots=2\n\nb # one\nc:3\n")?;
        assert_eq!(Hosts::read(&path).expect("hosts").to_string(), "a:2,b:1,c:3");
        std::fs::write(&path, "a\nb sluts=2\n")?;
        let error = Hosts::read(&path).expect_err("no host").to_string();
        assert!(error.contains(":2: \"b sluts=2\" is not `name slots=N`"), "{error}");
        std::fs::write(&path, "# none\n")?;
        assert!(Hosts::read(&path).is_err());
        std::fs::remove_file(&path)
    }
}
