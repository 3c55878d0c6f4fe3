//! Tables as the programs print them, old and new, and files that are none.

use super::*;
use crate::calibrate::{Machine, from_tables};
use std::fmt::Write as _;

/// A table as `alltoall_perf` and the others print it.
struct Printed {
    test: &'static str,
    /// Host of every rank.
    hosts: Vec<&'static str>,
    latency: f64,
    bandwidth: f64,
    /// Whether there is a column `root`, and the program names itself.
    new: bool,
}

impl Printed {
    fn text(&self) -> String {
        let ranks = self.hosts.len();
        let mut text =
            String::from("# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n");
        if self.new {
            writeln!(text, "# Collective test starting: {}_perf", self.test).expect("text");
        }
        text.push_str("#\n# Using devices\n");
        for (rank, host) in self.hosts.iter().enumerate() {
            writeln!(text, "#  Rank {rank:2} Group  0 Pid {:6} on {host:>10} device {rank:2} [0x07] NVIDIA H100", 4000 + rank).expect("text");
        }
        let root = if self.new { "    root" } else { "" };
        text.push_str("node1:4000:4000 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n#\n");
        writeln!(
            text,
            "#                                     out-of-place                in-place"
        )
        .expect("text");
        writeln!(text, "#       size         count      type   redop{root}     time   algbw   busbw #wrong     time   algbw   busbw #wrong").expect("text");
        writeln!(text, "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)")
            .expect("text");
        let (part, hops) = match self.test {
            "all_reduce" => {
                (2.0 * (ranks as f64 - 1.0) / ranks as f64, 2.0 * (ranks as f64).log2().ceil())
            }
            "alltoall" => {
                let same = self.hosts.iter().filter(|&&host| host == self.hosts[0]).count();
                let near = if same == ranks { 1 } else { same };
                ((ranks - near) as f64 / ranks as f64, 1.0)
            }
            _ => (1.0, 1.0),
        };
        for power in 10..28 {
            let size = 1_u64 << power;
            let seconds = hops * self.latency + part * size as f64 / self.bandwidth;
            let algorithm = size as f64 / seconds / 1e9;
            let root = if self.new { "      -1" } else { "" };
            writeln!(text, "{size:12}  {:12}     float     sum{root}  {:.2}  {algorithm:.4}  {:.4}      0  {:.2}  1.0  1.0    N/A", size / 4, seconds * 1e6, algorithm * part, seconds * 1e6).expect("text");
        }
        text.push_str("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 6.5\n#\n");
        text
    }

    fn table(&self, name: &str) -> NcclTable {
        parse(Path::new(name), &self.text()).expect("a table")
    }
}

fn machine() -> Machine {
    Machine { name: "lab".into(), memory_bytes: 80 << 30, memory_bandwidth: 3e12, flops: 9e14 }
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.05
}

#[test]
fn each_test_gives_back_the_links_it_was_printed_from() {
    for (test, name) in [
        ("all_reduce", "x"),
        ("alltoall", "x"),
        ("sendrecv", "x"),
        ("all_reduce", "old_all_reduce.txt"),
    ] {
        let new = name == "x";
        let printed =
            Printed { test, hosts: vec!["node1"; 8], latency: 12e-6, bandwidth: 2e11, new };
        let table = printed.table(name);
        assert_eq!((table.ranks(), table.nodes(), table.points.len()), (8, 1, 18));
        let made = from_tables(&[table], &machine()).expect("a topology");
        let level = &made.topology.levels[0];
        assert!(near(level.latency, 12e-6) && near(level.bandwidth, 2e11), "{test}: {level:?}");
        assert_eq!((level.name.as_str(), made.topology.ranks), ("node", 8));
        assert!(made.worst(true).expect("held out") < 0.05, "{test}");
    }
}

#[test]
fn a_table_of_one_host_and_one_of_two_make_two_levels() {
    let inside = Printed {
        test: "alltoall",
        hosts: vec!["a"; 4],
        latency: 5e-6,
        bandwidth: 3e11,
        new: true,
    };
    let hosts = vec!["a", "a", "a", "a", "b", "b", "b", "b"];
    let outside = Printed { test: "alltoall", hosts, latency: 2e-5, bandwidth: 2e10, new: true };
    let (inside, outside) = (inside.table("in"), outside.table("out"));
    let made = from_tables(&[outside.clone(), inside], &machine()).expect("a topology");
    let levels = &made.topology.levels;
    assert_eq!((levels[0].name.as_str(), levels[1].name.as_str()), ("node", "cluster"));
    assert!(near(levels[0].bandwidth, 3e11) && near(levels[1].bandwidth, 2e10), "{levels:?}");
    assert!(near(levels[0].latency, 5e-6) && near(levels[1].latency, 2e-5), "{levels:?}");
    let error = from_tables(&[outside], &machine()).expect_err("no table of a node").to_string();
    assert!(error.contains("give a table of one host as well"), "{error}");
}

#[test]
fn hosts_with_fewer_ranks_than_the_table_of_one_host_are_refused() {
    let of = |hosts: Vec<&'static str>, name| {
        Printed { test: "alltoall", hosts, latency: 5e-6, bandwidth: 1e11, new: true }.table(name)
    };
    let (inside, outside) = (of(vec!["a"; 4], "in"), of(vec!["a", "b", "c", "d"], "out"));
    let error = from_tables(&[inside, outside], &machine()).expect_err("not one machine");
    assert!(
        error.to_string().contains("out: 1 on each host, a table of one host has 4"),
        "{error}"
    );
}

#[test]
fn elements_that_arrived_wrong_are_said() {
    let good = Printed {
        test: "alltoall",
        hosts: vec!["a"; 4],
        latency: 5e-6,
        bandwidth: 1e11,
        new: true,
    };
    assert_eq!(good.table("good").wrong, 0);
    let mut table = good.table("bad");
    table.wrong = 3;
    let made = from_tables(&[table], &machine()).expect("a topology");
    assert!(made.notes.iter().any(|note| note.contains("bad: 3 elements arrived WRONG")));
    let mut reading = Reading::default();
    let lines = ["# size time algbw busbw #wrong", "8 1.0 1 1 2", "16 1.0 1 1 N/A", "32 1.0 1 1 1"];
    for line in lines {
        reading.line(line).expect("a table");
    }
    assert_eq!(reading.wrong, 3);
}

#[test]
fn a_message_and_an_all_to_all_of_one_host_tell_what_peers_cost() {
    let of = |test, bandwidth| {
        Printed { test, hosts: vec!["a"; 8], latency: 5e-6, bandwidth, new: true }.table(test)
    };
    let (pair, all) = (of("sendrecv", 2e11), of("alltoall", 1e11));
    let made = from_tables(&[all, pair], &machine()).expect("a topology");
    let level = &made.topology.levels[0];
    assert!(near(level.bandwidth, 2e11), "{level:?}");
    assert_eq!(level.all_to_all.len(), 2);
    assert!(near(level.all_to_all[1].1, 0.5) && level.all_to_all[1].0 == 7, "{level:?}");
}

#[test]
fn the_test_is_told_by_its_bandwidths_where_nobody_names_it() {
    let old = Printed {
        test: "alltoall",
        hosts: vec!["a"; 8],
        latency: 5e-6,
        bandwidth: 1e11,
        new: false,
    };
    assert_eq!(old.table("saved.txt").test, NcclTest::AllToAll);
    let two = Printed {
        test: "sendrecv",
        hosts: vec!["a"; 2],
        latency: 5e-6,
        bandwidth: 1e11,
        new: false,
    };
    let error = parse(Path::new("saved.txt"), &two.text()).expect_err("a sum or a message");
    assert!(
        error.to_string().contains("name the file all_reduce, alltoall or sendrecv"),
        "{error}"
    );
}

#[test]
fn files_that_are_no_tables_are_refused_by_file_and_line() {
    let good = Printed {
        test: "alltoall",
        hosts: vec!["a"; 4],
        latency: 5e-6,
        bandwidth: 1e11,
        new: true,
    }
    .text();
    let header = good.lines().position(|line| line.contains("algbw")).expect("a header");
    let without = |word: &str| {
        let kept: Vec<&str> = good.lines().filter(|line| !line.contains(word)).collect();
        kept.join("\n")
    };
    let first = good.lines().nth(header + 2).expect("numbers").to_owned();
    let short = good.lines().take(header + 4).collect::<Vec<_>>().join("\n");
    let cases = [
        ("hello".to_owned(), "t.txt: no table of nccl-tests"),
        (without("algbw"), "expected the header of nccl-tests before numbers"),
        (without("Rank"), "0 lines that begin with \"# Rank\""),
        (short, "t.txt: 2 sizes: needs at least 3"),
        (good.replace(&first, "1024 256 float sum -1 -5.0 1.0 1.0 0"), "a time of -5 us"),
        (good.replace(&first, "1024 256 float sum -1 fast 1.0 1.0 0"), "got \"fast\""),
        (good.replace(&first, "1024 256"), "the line has 2"),
        (good.replacen(" on          a ", " on          b ", 1), "hosts with different numbers"),
    ];
    for (text, words) in cases {
        let error = parse(Path::new("t.txt"), &text).expect_err("refused").to_string();
        assert!(error.contains(words), "{words:?} is missing from: {error}");
        assert!(error.starts_with("t.txt:"), "{error}");
    }
}
