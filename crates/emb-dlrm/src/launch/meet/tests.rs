//! Meetings between threads, with guests who should not be there.

use super::super::Point;
use super::super::hello::{Hello, MAGIC, pack};
use super::{Met, meet_as};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::scope;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A port that is free now.
fn point() -> Point {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    Point { host: "127.0.0.1".to_owned(), port }
}

fn hello(rank: usize, world: usize) -> Hello {
    let (version, meeting) = ("1.0".to_owned(), "job".to_owned());
    Hello { version, meeting, world, rank, host: format!("host{}", rank / 2) }
}

fn come(at: &Point, hello: &Hello) -> Result<Met, String> {
    let blob: Vec<u8> = if hello.rank == 0 { (0..128).collect() } else { Vec::new() };
    meet_as(at, hello, &blob, TIMEOUT).map_err(|error| error.to_string())
}

fn connect(at: &Point) -> TcpStream {
    let begin = Instant::now();
    loop {
        match TcpStream::connect((at.host.as_str(), at.port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(begin.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a meeting of four while `others` do what they want; the ranks start after them.
fn meets_despite(others: impl FnOnce(&Point) + Send) {
    let at = &point();
    scope(|scope| {
        let first = scope.spawn(move || come(at, &hello(0, 4)));
        scope.spawn(move || others(at)).join().expect("others");
        let rest: Vec<_> =
            (1..4).map(|rank| scope.spawn(move || come(at, &hello(rank, 4)))).collect();
        for rank in std::iter::once(first).chain(rest) {
            let met = rank.join().expect("no panic").expect("all meet");
            assert_eq!(met.hosts, ["host0", "host0", "host1", "host1"]);
            assert_eq!(met.blob, (0..128).collect::<Vec<u8>>());
        }
    });
}

#[test]
fn all_ranks_learn_all_hosts_and_the_blob_whoever_comes_first() {
    let at = &point();
    scope(|scope| {
        // Rank 0 comes last: the others try again.
        let rest: Vec<_> =
            (1..4).map(|rank| scope.spawn(move || come(at, &hello(rank, 4)))).collect();
        std::thread::sleep(Duration::from_millis(60));
        let all = come(at, &hello(0, 4)).expect("all meet");
        for rank in rest {
            let met = rank.join().expect("no panic").expect("all meet");
            assert_eq!((met.hosts, met.blob), (all.hosts.clone(), all.blob.clone()));
        }
    });
    meets_despite(|_| {});
    assert_eq!(come(at, &hello(0, 1)).expect("alone").hosts, ["host0"]);
}

#[test]
fn u28_strangers_neither_end_nor_hold_up_a_meeting() {
    let begin = Instant::now();
    meets_despite(|at| {
        let say = |bytes: &[u8]| {
            let mut stream = connect(at);
            // The other end may have closed already.
            drop(stream.write_all(bytes));
            stream
        };
        let mut stay: Vec<TcpStream> = (0..50).map(|_| connect(at)).collect();
        let mut http = say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(http.read(&mut [0; 16]).unwrap_or(0), 0, "a stranger is told nothing");
        stay.push(say(&[0x9e; 100_000]));
        stay.push(say(&MAGIC[..5]));
        stay.push(say(&[&MAGIC[..], &u32::MAX.to_le_bytes()].concat()));
        stay.push(say(&[&MAGIC[..], &8u32.to_le_bytes(), b"not JSON"].concat()));
        stay.push(say(&[&MAGIC[..], &2u32.to_le_bytes(), b"{}"].concat()));
        let whole = pack(&hello(1, 4)).expect("bytes");
        stay.push(say(&whole[..whole.len() - 1]));
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(8));
            drop(stay);
        });
    });
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

#[test]
fn ranks_of_other_worlds_versions_and_jobs_are_sent_away_with_the_reason() {
    meets_despite(|at| {
        let say = |change: &dyn Fn(&mut Hello), says: &[&str]| {
            let mut other = hello(2, 4);
            change(&mut other);
            let error = come(at, &other).expect_err("sent away");
            for word in says {
                assert!(error.contains(word), "{error:?} does not say {word:?}");
            }
        };
        say(&|at| at.version = "0.9".to_owned(), &["rank 2 on host1 runs emb 0.9", "emb 1.0"]);
        say(&|at| at.world = 8, &["rank 2", "a world of 8", "one of 4"]);
        say(&|at| at.meeting = "old".to_owned(), &["\"old\"", "\"job\""]);
    });
}

#[test]
fn what_is_said_right_behind_the_reply_stays_on_the_connection() {
    let at = &point();
    scope(|scope| {
        let ranks = (1..3).map(|rank| {
            scope.spawn(move || {
                let met = come(at, &hello(rank, 3)).expect("all meet");
                let [mut line] = <[TcpStream; 1]>::try_from(met.lines).expect("that to rank 0");
                let mut said = [0; 6];
                line.read_exact(&mut said).expect("heard");
                assert_eq!(&said, &[b"rank ", &[b'0' + rank as u8][..]].concat()[..]);
            })
        });
        let ranks: Vec<_> = ranks.collect();
        let met = come(at, &hello(0, 3)).expect("all meet");
        for (mut line, rank) in met.lines.iter().zip(1..) {
            line.write_all(&[b"rank ", &[b'0' + rank][..]].concat()).expect("said");
        }
        for rank in ranks {
            rank.join().expect("no panic");
        }
    });
}

#[test]
fn two_processes_of_one_rank_are_told_and_the_first_stays() {
    let at = &point();
    scope(|scope| {
        let first = scope.spawn(move || come(at, &hello(0, 3)));
        let one = scope.spawn(move || come(at, &hello(1, 3)));
        // Whichever of the two comes second is refused.
        let two = scope.spawn(move || come(at, &hello(1, 3)));
        while !one.is_finished() && !two.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let last = come(at, &hello(2, 3));
        let ends = [one, two].map(|rank| rank.join().expect("no panic"));
        let refused: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "{ends:?}");
        assert!(refused[0].contains("two processes have one rank"), "{refused:?}");
        let [first, last] =
            [first.join().expect("no panic"), last].map(|met| met.map(|met| met.hosts));
        assert_eq!(first, last);
        assert!(last.is_ok(), "{last:?}");
    });
}

#[test]
fn a_rank_that_left_may_come_again_and_is_waited_for() {
    let at = &point();
    scope(|scope| {
        let mut ranks = vec![scope.spawn(move || come(at, &hello(0, 4)))];
        let mut stream = connect(at);
        stream.write_all(&pack(&hello(3, 4)).expect("bytes")).expect("heard");
        // Long enough that it is mostly a guest when it leaves, and its place seems taken.
        std::thread::sleep(Duration::from_millis(60));
        drop(stream);
        ranks.extend((1..3).map(|rank| scope.spawn(move || come(at, &hello(rank, 4)))));
        // All others are there by now.
        std::thread::sleep(Duration::from_millis(150));
        ranks.push(scope.spawn(move || come(at, &hello(3, 4))));
        for rank in ranks {
            let met = rank.join().expect("no panic").expect("all meet");
            assert_eq!(met.hosts, ["host0", "host0", "host1", "host1"]);
        }
    });
}

#[test]
fn u28_who_does_not_come_is_named_by_all_in_bounded_time() {
    let at = &point();
    let short = Duration::from_millis(300);
    let begin = Instant::now();
    scope(|scope| {
        let rank = |rank| move || meet_as(at, &hello(rank, 5), &[], short).expect_err("too few");
        let ranks: Vec<_> = [0, 3].into_iter().map(|at| scope.spawn(rank(at))).collect();
        for rank in ranks {
            let error = rank.join().expect("no panic").to_string();
            assert!(error.contains("ranks 1, 2 and 4 of 5 did not come"), "{error}");
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

#[test]
fn u40_a_rank_that_finds_nobody_says_whom_it_looked_for_where() {
    let short = Duration::from_millis(100);
    let at = point();
    let nobody = meet_as(&at, &hello(2, 4), &[], short).expect_err("nobody").to_string();
    let says = format!("rank 2 of 4 on host1 did not meet rank 0 at {at} within 0.1 s");
    assert!(nobody.contains(&says), "{nobody}");
    // Something else listens at the port.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let at = Point { host: "127.0.0.1".to_owned(), port };
    let taken = meet_as(&at, &hello(0, 4), &[], short).expect_err("taken").to_string();
    assert!(taken.contains("EMB_RENDEZVOUS_PORT"), "{taken}");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
            drop(stream.read(&mut [0; 1024]));
        }
    });
    let error = meet_as(&at, &hello(2, 4), &[], short).expect_err("no emb").to_string();
    assert!(error.contains("is not emb"), "{error}");
}
