//! Tables that the programs of nccl-tests print: [`read_table`].
//!
//! Their lines are found by the header, whose columns have come and gone over the years (`root`,
//! `error` became `#wrong`); ranks and hosts by the lines that begin with `# Rank`; the test by its
//! name where it is printed, by the file's name, or by the ratio of the two bandwidths.

use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Which test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclTest {
    /// `all_reduce_perf`
    AllReduce,
    /// `alltoall_perf`
    AllToAll,
    /// `sendrecv_perf`
    SendRecv,
}

const NAMES: [(NcclTest, &str); 3] = [
    (NcclTest::AllReduce, "all_reduce"),
    (NcclTest::AllToAll, "alltoall"),
    (NcclTest::SendRecv, "sendrecv"),
];

/// What a table says.
#[derive(Clone, Debug, PartialEq)]
pub struct NcclTable {
    /// Where it was read.
    pub path: PathBuf,
    /// Which test has printed it.
    pub test: NcclTest,
    /// The host of every rank.
    pub hosts: Vec<String>,
    /// `(size, seconds)`, out of place, by ascending size.
    pub points: Vec<(u64, f64)>,
    /// Elements that arrived other than they were sent, where the test has compared them.
    pub wrong: u64,
}

impl NcclTable {
    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.hosts.len()
    }

    /// Hosts.
    pub fn nodes(&self) -> usize {
        let mut hosts: Vec<&String> = self.hosts.iter().collect();
        hosts.sort();
        hosts.dedup();
        hosts.len()
    }

    /// Ranks of a host.
    pub fn node_ranks(&self) -> usize {
        self.ranks() / self.nodes().max(1)
    }

    /// Ranks over the level that is measured to which a rank sends.
    pub fn peers(&self) -> u32 {
        let others = match (self.test, self.nodes()) {
            (NcclTest::SendRecv, _) => 1,
            (_, 1) => self.ranks() - 1,
            (..) => self.ranks() - self.node_ranks(),
        };
        others as u32
    }

    /// How often the latency counts: a sum goes up and down a tree, as the cost model has it.
    pub fn hops(&self) -> f64 {
        match self.test {
            NcclTest::AllReduce => 2.0 * (self.ranks() as f64).log2().ceil().max(1.0),
            NcclTest::AllToAll | NcclTest::SendRecv => 1.0,
        }
    }

    /// Bytes that a rank sends over the level that is measured, by size: `(n - p) / n` of an
    /// all-to-all of `n` ranks, `p` of them on a host, and `2 (n - 1) / n` of a sum (nccl-tests,
    /// doc/PERFORMANCE.md).
    ///
    /// # Errors
    /// A test over hosts of several ranks that does not say what each of them sends.
    pub fn sent(&self) -> Result<Vec<u64>> {
        let (ranks, nodes) = (self.ranks() as f64, self.nodes());
        if nodes > 1 && self.node_ranks() > 1 && self.test != NcclTest::AllToAll {
            return Err(Error::Config(format!(
                "{}: {nodes} hosts of several ranks: only alltoall_perf says what each rank reaches \
                 between hosts",
                self.path.display()
            )));
        }
        let part = match self.test {
            NcclTest::AllReduce => 2.0 * (ranks - 1.0) / ranks,
            NcclTest::AllToAll => f64::from(self.peers()) / ranks,
            NcclTest::SendRecv => 1.0,
        };
        Ok(self.points.iter().map(|&(size, _)| (size as f64 * part).round() as u64).collect())
    }
}

/// Reads the output of one of the programs, saved to a file.
///
/// # Errors
/// A file that can't be read; by file and line: no table, numbers that are none, negative times;
/// no lines of ranks, fewer than two ranks, hosts that differ in ranks; a test that is not known.
pub fn read_table(path: &Path) -> Result<NcclTable> {
    let text = std::fs::read(path).map_err(Error::io("reading", path))?;
    parse(path, &String::from_utf8_lossy(&text))
}

/// Where the columns are.
struct Columns {
    time: usize,
    algorithm: usize,
    bus: usize,
    wrong: Option<usize>,
}

/// What the lines so far have said.
#[derive(Default)]
struct Reading {
    hosts: Vec<String>,
    columns: Option<Columns>,
    named: Option<NcclTest>,
    rows: Vec<(u64, f64)>,
    /// Bandwidth of the bus over that of the algorithm, on the last size.
    ratio: Option<f64>,
    wrong: u64,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.trim_start().starts_with('#') {
            if let Some(host) = host_of(&words) {
                self.hosts.push(host);
            } else if let Some(found) = header(&words) {
                self.columns = Some(found);
            } else if self.named.is_none() {
                self.named = test_named(line);
            }
            return Ok(());
        }
        // Launchers and libraries say something between the lines, too.
        let is_number = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let Some(size) = words.first().filter(is_number) else { return Ok(()) };
        let Some(columns) = &self.columns else {
            return Err(
                "expected the header of nccl-tests before numbers: # size count type ..".into()
            );
        };
        let size: u64 = size.parse().map_err(|_| format!("{size} bytes: too many"))?;
        let time = cell(&words, columns.time, "a time in microseconds")?;
        let algorithm = cell(&words, columns.algorithm, "a bandwidth")?;
        let bus = cell(&words, columns.bus, "a bandwidth")?;
        // Sizes that do not fill one element for each rank are printed as 0.
        if size == 0 {
            return Ok(());
        }
        if !(time > 0.0 && time.is_finite()) {
            return Err(format!("a time of {time} us: must be above 0"));
        }
        if algorithm > 0.0 {
            self.ratio = Some(bus / algorithm);
        }
        self.rows.push((size, time * 1e-6));
        // `N/A` where nothing was compared; older programs print an error as a float there.
        let wrong = columns.wrong.and_then(|column| words.get(column)?.parse::<u64>().ok());
        self.wrong = self.wrong.saturating_add(wrong.unwrap_or(0));
        Ok(())
    }
}

fn cell(words: &[&str], column: usize, name: &str) -> Result<f64, String> {
    let place = column + 1;
    let word = words.get(column).ok_or_else(|| {
        format!("expected {name} in column {place}, the line has {}", words.len())
    })?;
    word.parse().map_err(|_| format!("expected {name} in column {place}, got {word:?}"))
}

fn parse(path: &Path, text: &str) -> Result<NcclTable> {
    let mut reading = Reading::default();
    for (number, line) in text.lines().enumerate() {
        reading
            .line(line)
            .map_err(|what| Error::Config(format!("{}:{}: {what}", path.display(), number + 1)))?;
    }
    let Reading { hosts, named, rows, ratio, wrong, .. } = reading;
    let whole = |what: &str| Error::Config(format!("{}: {what}", path.display()));
    if rows.is_empty() {
        return Err(whole(
            "no table of nccl-tests: expected a header \"# size count type ..\" and lines of numbers, \
             as all_reduce_perf, alltoall_perf and sendrecv_perf print",
        ));
    }
    if hosts.len() < 2 {
        return Err(whole(&format!(
            "{} lines that begin with \"# Rank\": expected one for each of at least two ranks",
            hosts.len()
        )));
    }
    let in_name = path.file_name().and_then(|name| test_named(&name.to_string_lossy()));
    let test = named.or(in_name).or_else(|| ratio.and_then(|ratio| by_ratio(ratio, hosts.len())));
    let test = test.ok_or_else(|| {
        whole("which test printed it isn't known: name the file all_reduce, alltoall or sendrecv")
    })?;
    let table = NcclTable { path: path.to_owned(), test, hosts, points: merged(rows), wrong };
    let of_host = |host| table.hosts.iter().filter(|&other| other == host).count();
    if table.hosts.iter().any(|host| of_host(host) != table.node_ranks()) {
        return Err(whole(
            "hosts with different numbers of ranks: run it with equally many on each",
        ));
    }
    if table.points.len() < emb_shard::LinkFit::FEWEST {
        let (sizes, least) = (table.points.len(), emb_shard::LinkFit::FEWEST);
        return Err(whole(&format!("{sizes} sizes: needs at least {least}")));
    }
    Ok(table)
}

/// The host of `#  Rank  0 Group  0 Pid  7 on  host device  0 [0x07] NAME`.
fn host_of(words: &[&str]) -> Option<String> {
    let words = if words.first() == Some(&"#") { &words[1..] } else { words };
    let rank = matches!(words.first(), Some(&("Rank" | "#Rank")));
    let on = words.iter().position(|&word| word == "on")?;
    rank.then(|| words.get(on + 1).map(|&host| host.to_owned()))?
}

/// The columns of `#  size  count  type  redop  root  time  algbw  busbw  #wrong ..`.
fn header(words: &[&str]) -> Option<Columns> {
    let words: Vec<&str> = words.iter().copied().filter(|&word| word != "#").collect();
    let find = |name: &str| words.iter().position(|&word| word.trim_start_matches('#') == name);
    (find("size") == Some(0)).then_some(())?;
    let wrong = find("wrong");
    Some(Columns { time: find("time")?, algorithm: find("algbw")?, bus: find("busbw")?, wrong })
}

fn test_named(text: &str) -> Option<NcclTest> {
    let text =
        text.to_lowercase().replace("all_to_all", "alltoall").replace("allreduce", "all_reduce");
    NAMES.into_iter().find(|(_, name)| text.contains(name)).map(|(test, _)| test)
}

/// The bus moves `2 (n - 1) / n` of a sum, `(n - 1) / n` of an all-to-all, and all of a message
/// (nccl-tests, doc/PERFORMANCE.md). With two ranks a sum and a message look the same.
fn by_ratio(ratio: f64, ranks: usize) -> Option<NcclTest> {
    let part = (ranks as f64 - 1.0) / ranks as f64;
    let near = |expected: f64| (ratio / expected - 1.0).abs() < 0.03;
    match (near(2.0 * part), near(part), near(1.0)) {
        (true, false, false) => Some(NcclTest::AllReduce),
        (false, true, false) => Some(NcclTest::AllToAll),
        (false, false, true) => Some(NcclTest::SendRecv),
        _ => None,
    }
}

/// Ascending sizes; times of one size become their mean.
fn merged(mut rows: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    rows.sort_by_key(|row| row.0);
    let groups = rows.chunk_by(|a, b| a.0 == b.0);
    groups
        .map(|group| {
            let sum: f64 = group.iter().map(|row| row.1).sum();
            (group[0].0, sum / group.len() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests;
