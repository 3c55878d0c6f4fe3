//! Reading ahead for all ranks changes nothing but the time.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use emb_kernels::Jagged;

use super::synthetic::{Bag, Feature, Options, Synthetic};
use super::*;

fn criteo(folder: &Folder, text: &str) -> Criteo {
    open(&[folder.write("day.txt", text)], CriteoOptions::default()).expect("a good file")
}

/// Samples with weights, long bags and empty ones.
fn generated(rows: u64) -> Synthetic {
    let bag = Bag::Geometric(0.8);
    let features = vec![
        Feature { bag, weighted: true, ..Feature::new("item", 5000) },
        Feature { bag, missing: 0.3, ..Feature::new("user", 50) },
    ];
    let options = Options { rows: Some(rows), ..Options::default() };
    Synthetic::new(features, options).expect("good features")
}

/// All samples of all batches of a rank; two are equal where they are so bitwise.
#[derive(Clone, Debug, Default, PartialEq)]
struct Taken {
    /// `[batches]`: samples of this rank's share.
    rows: Vec<usize>,
    /// `[batches]`: samples of the global batch.
    global: Vec<usize>,
    /// `[batches][samples]`: bits of dense values and label, ids and bits of weights of each bag.
    samples: Vec<Vec<Sample>>,
}

type Sample = (Vec<u32>, Vec<(Vec<i64>, Vec<u32>)>);

fn samples(batch: &Batch) -> Vec<Sample> {
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let sparse = batch.sparse.as_ref();
    let sample = |i: usize| {
        let mut values = bits(&batch.dense[i * DENSE..(i + 1) * DENSE]);
        values.extend(bits(&batch.labels[i..=i]));
        let bag = |f: usize| {
            let span = sparse.bag_range(f, i);
            let weights = sparse.weights.map_or(Vec::new(), |weights| bits(&weights[span.clone()]));
            (sparse.values[span].to_vec(), weights)
        };
        (values, (0..sparse.features()).map(bag).collect())
    };
    assert_eq!((batch.rows, batch.labels.len()), (sparse.batch, batch.rows));
    (0..batch.rows).map(sample).collect()
}

impl Taken {
    fn push(&mut self, share: Share<'_>) {
        self.rows.push(share.batch.rows);
        self.global.push(share.rows);
        self.samples.push(samples(share.batch));
    }

    /// The global batches of the ranks' shares in rank order.
    fn joined(ranks: &[Self]) -> Self {
        let mut all = ranks[0].clone();
        for rank in &ranks[1..] {
            assert_eq!(rank.global, all.global);
            for (batch, share) in all.samples.iter_mut().zip(&rank.samples) {
                batch.extend(share.iter().cloned());
            }
        }
        all.rows = all.samples.iter().map(Vec::len).collect();
        all
    }
}

/// What the source itself gives from its next sample on, in batches of `limit`.
fn direct(source: &mut dyn Source, limit: usize) -> Taken {
    let (mut all, mut batch) = (Taken::default(), Batch::default());
    while source.next(limit, &mut batch).expect("good data") > 0 {
        all.push(Share { batch: &batch, rows: batch.rows, seen: 0, trouble: None });
    }
    all
}

fn take_all(feed: &mut Feed) -> Result<Taken> {
    let mut all = Taken::default();
    while let Some(share) = feed.next()? {
        all.push(share);
    }
    assert!(feed.next()?.is_none(), "the end comes again");
    Ok(all)
}

/// Runs every rank in a thread of its own; fails where that takes longer than a minute.
fn ranks<T: Send + 'static>(
    feeds: Vec<Feed>,
    work: impl Fn(usize, Feed) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let (work, (done, results)) = (Arc::new(work), channel());
    let world = feeds.len();
    for (rank, feed) in feeds.into_iter().enumerate() {
        let (work, done) = (Arc::clone(&work), done.clone());
        thread::spawn(move || {
            let result = work(rank, feed);
            done.send((rank, result)).expect("the test waits");
        });
    }
    drop(done);
    let mut all: Vec<_> = (0..world).map(|_| within_a_minute(&results)).collect();
    all.sort_by_key(|&(rank, _)| rank);
    all.into_iter().map(|(_, result)| result).collect()
}

fn within_a_minute<T>(results: &Receiver<T>) -> T {
    results.recv_timeout(Duration::from_mins(1)).expect("no rank hangs or panics")
}

#[test]
fn shares_cover_each_row_once_and_differ_by_at_most_one() {
    for world in 1..=9 {
        for rows in 0..=40 {
            let shares: Vec<_> = (0..world).map(|rank| share(rows, world, rank)).collect();
            let covered: Vec<_> = shares.iter().cloned().flatten().collect();
            assert_eq!(covered, (0..rows).collect::<Vec<_>>());
            let sizes: Vec<_> = shares.iter().map(ExactSizeIterator::len).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[world - 1] <= 1);
        }
    }
}

#[test]
fn the_ranks_shares_join_to_the_batches_of_the_source() {
    // The last batch has 2 samples: fewer than most worlds have ranks.
    let expected = direct(&mut generated(51), 7);
    let bags = || expected.samples.iter().flatten().flat_map(|sample| &sample.1);
    assert!(bags().any(|bag| bag.0.is_empty()) && bags().any(|bag| bag.1.len() > 2));
    for world in [1, 2, 3, 5, 9] {
        let feeds = Feed::start(generated(51), 7, world).expect("a thread");
        let taken = ranks(feeds, |_, mut feed| take_all(&mut feed).expect("good data"));
        assert_eq!(Taken::joined(&taken), expected, "{world} ranks");
        for (rank, taken) in taken.iter().enumerate() {
            assert_eq!(taken.global, [7, 7, 7, 7, 7, 7, 7, 2]);
            let expected = taken.global.iter().map(|&rows| share(rows, world, rank).len());
            assert_eq!(taken.rows, expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn ranks_at_very_different_paces_get_the_same_batches() {
    let expected = direct(&mut generated(300), 4);
    let feeds = Feed::start(generated(300), 4, 4).expect("a thread");
    let taken = ranks(feeds, |rank, mut feed| {
        let mut all = Taken::default();
        while let Some(share) = feed.next().expect("good data") {
            all.push(share);
            // Rank 3 is slow throughout, the others now and then.
            let batch = all.rows.len();
            if rank == 3 || (batch * 7 + rank * 5).is_multiple_of(11) {
                thread::sleep(Duration::from_micros(200 * rank as u64 + 100));
            }
        }
        all
    });
    assert_eq!(Taken::joined(&taken), expected);
}

#[test]
fn every_epoch_and_every_restart_gives_the_rows_from_there_on() {
    const ROWS: u64 = 203;
    let folder = Folder::new();
    let text = good_rows(ROWS as u32);
    for world in [1, 3] {
        let feeds = Feed::start(criteo(&folder, &text), 16, world).expect("a thread");
        assert!(feeds.iter().all(|feed| feed.describe().kind == "criteo"));
        let starts = [0, 0, 10, 10, 150, ROWS, 5000, 1, 0];
        let taken = ranks(feeds, move |_, mut feed| {
            let mut epochs = vec![take_all(&mut feed).expect("an epoch")];
            for start in starts {
                // Twice, from the end and then from the middle of an epoch.
                feed.restart_at(0).expect("a restart");
                feed.next().expect("good data").expect("one batch");
                feed.restart_at(start).expect("a restart");
                epochs.push(take_all(&mut feed).expect("the rest"));
            }
            epochs
        });
        for (epoch, start) in [0].into_iter().chain(starts).enumerate() {
            let mut source = criteo(&folder, &text);
            source.restart_at(start).expect("a restart");
            let shares: Vec<_> = taken.iter().map(|epochs| epochs[epoch].clone()).collect();
            assert_eq!(Taken::joined(&shares), direct(&mut source, 16), "from {start}");
        }
    }
}

#[test]
fn a_restart_waits_for_ranks_that_are_behind_and_keeps_none_from_reading() {
    let expected = direct(&mut generated(100), 5);
    let feeds = Feed::start(generated(100), 5, 3).expect("a thread");
    let read_on = Barrier::new(2);
    let taken = ranks(feeds, move |rank, mut feed| match rank {
        // Asks before it read anything, while the others have not.
        0 => {
            feed.restart_at(0).expect("a restart");
            take_all(&mut feed).expect("an epoch")
        }
        // Reads to the end first.
        1 => {
            let first = take_all(&mut feed).expect("an epoch");
            assert_eq!(first.rows.len(), 20);
            read_on.wait();
            feed.restart_at(0).expect("a restart");
            take_all(&mut feed).expect("an epoch")
        }
        // As far, then restarts after all others.
        _ => {
            take_all(&mut feed).expect("an epoch");
            read_on.wait();
            thread::sleep(Duration::from_millis(20));
            feed.restart_at(0).expect("a restart");
            take_all(&mut feed).expect("an epoch")
        }
    });
    assert_eq!(Taken::joined(&taken), expected);
}

#[test]
fn four_ranks_restart_two_hundred_times() {
    let feeds = Feed::start(generated(40), 4, 4).expect("a thread");
    let taken = ranks(feeds, |rank, mut feed| {
        for round in 0..200_u64 {
            // Each rank has read another number of batches, some none, some all.
            for _ in 0..(round as usize * 3 + rank * 5) % 12 {
                feed.next().expect("good data");
            }
            feed.restart_at(round % 45).expect("a restart");
        }
        take_all(&mut feed).expect("the rest")
    });
    let mut source = generated(40);
    source.restart_at(199 % 45).expect("a restart");
    assert_eq!(Taken::joined(&taken), direct(&mut source, 4));
}

#[test]
fn errors_arrive_in_order_at_every_rank_and_a_restart_heals() {
    let folder = Folder::new();
    let text = good_rows(10) + "bad\n";
    for world in [1, 3] {
        let feeds = Feed::start(criteo(&folder, &text), 5, world).expect("a thread");
        let errors = ranks(feeds, |_, mut feed| {
            let mut last = String::new();
            for _ in 0..3 {
                for _ in 0..2 {
                    assert_eq!(feed.next().expect("good").expect("a batch").rows, 5);
                }
                for _ in 0..2 {
                    last = feed.next().expect_err("a bad row").to_string();
                }
                feed.restart_at(0).expect("a restart");
            }
            last
        });
        for error in &errors {
            assert!(error.contains("day.txt, line 11") && *error == errors[0], "{error}");
        }
    }
}

#[test]
fn a_restart_that_fails_fails_at_every_rank_until_one_succeeds() {
    let feeds = Feed::start(Counting { refuse: Some(13), ..Counting::default() }, 4, 3);
    ranks(feeds.expect("a thread"), |_, mut feed| {
        feed.next().expect("good data").expect("a batch");
        for _ in 0..2 {
            let error = feed.restart_at(13).expect_err("refused").to_string();
            assert!(error.contains("row = 13"), "{error}");
            assert_eq!(feed.next().expect_err("not restarted").to_string(), error);
        }
        feed.restart_at(14).expect("a restart");
        assert_eq!(feed.next().expect("good data").expect("a batch").rows, 4);
    });
}

#[test]
fn ranks_that_restart_at_different_rows_are_named() {
    let feeds = Feed::start(generated(40), 4, 3).expect("a thread");
    let rows = ranks(feeds, |rank, mut feed| {
        let error = feed.restart_at([7, 7, 9][rank]).expect_err("another row").to_string();
        assert!(error.contains("rank 0 restarts the data at row 7, rank 2 at row 9"), "{error}");
        assert_eq!(feed.next().expect_err("not restarted").to_string(), error);
        feed.restart_at(8).expect("a restart");
        take_all(&mut feed).expect("the rest").global
    });
    assert_eq!(rows, vec![vec![4; 8]; 3]);
}

#[test]
fn skipped_rows_are_those_of_the_batches_that_a_rank_was_given() {
    let folder = Folder::new();
    let path = folder.write("day.txt", good_rows(10) + "bad\n" + &good_rows(10));
    let feeds = Feed::start(open(&[path], skipping()).expect("open"), 5, 2).expect("a thread");
    ranks(feeds, |_, mut feed| {
        for expected in [[0, 0, 1, 1], [0, 0, 1, 1]] {
            for skipped in expected {
                feed.next().expect("good data").expect("a batch");
                assert_eq!(feed.skipped().total(), skipped);
            }
            assert!(feed.next().expect("the end").is_none());
            assert_eq!(feed.skipped().total(), 1);
            feed.restart_at(0).expect("a restart");
            assert_eq!(feed.skipped(), BadRows::default());
        }
    });
}

#[test]
fn ranks_that_are_gone_are_not_waited_for() {
    let expected = direct(&mut generated(200), 5);
    let mut feeds = Feed::start(generated(200), 5, 4).expect("a thread");
    let (last, unread) = (feeds.pop().expect("rank 3"), feeds.pop().expect("rank 2"));
    drop(unread);
    let gone = Barrier::new(2);
    feeds.push(last);
    let taken = ranks(feeds, move |rank, mut feed| {
        if rank == 1 {
            feed.next().expect("good data").expect("a batch");
            drop(feed);
            gone.wait();
            return Taken::default();
        }
        if rank == 0 {
            gone.wait();
        }
        take_all(&mut feed).expect("an epoch");
        feed.restart_at(0).expect("a restart of those that are left");
        take_all(&mut feed).expect("an epoch")
    });
    for (rank, taken) in [(0, &taken[0]), (3, &taken[2])] {
        assert_eq!(taken.global, expected.global);
        for (share_of, whole) in taken.samples.iter().zip(&expected.samples) {
            assert_eq!(share_of[..], whole[share(whole.len(), 4, rank)]);
        }
    }
}

/// Gives zeros without end and counts how often it was asked for them.
#[derive(Default)]
struct Counting {
    asked: Arc<AtomicUsize>,
    /// The batch, from 0, at which it panics.
    panic_at: Option<usize>,
    /// The row at which it refuses to restart.
    refuse: Option<u64>,
    /// Waits here in the batch with this number.
    gate: Option<(usize, Receiver<()>)>,
}

impl Source for Counting {
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        assert!(self.panic_at != Some(asked), "batch {asked} is poisoned");
        if let Some((at, gate)) = &self.gate
            && *at == asked
        {
            gate.recv().expect("the test opens the gate");
        }
        batch.dense.resize(limit * DENSE, 0.0);
        batch.labels.resize(limit, 0.0);
        batch.sparse = Jagged::from_lengths::<&str>(&[], limit, &[], Vec::new(), None)?;
        batch.rows = limit;
        Ok(limit)
    }

    fn restart_at(&mut self, row: u64) -> Result<()> {
        if self.refuse == Some(row) {
            let (option, value) = ("row".to_owned(), row.to_string());
            return Err(Error::Option { option, value, valid: "another" });
        }
        Ok(())
    }

    fn describe(&self) -> SourceInfo {
        SourceInfo { kind: "counting", files: Vec::new(), rows: None }
    }
}

#[test]
fn at_most_two_batches_are_read_ahead_and_dropping_joins_the_thread() {
    for world in [1, 2] {
        let asked = Arc::new(AtomicUsize::new(0));
        let source = Counting { asked: Arc::clone(&asked), ..Counting::default() };
        let mut feeds = Feed::start(source, 4, world).expect("a thread");
        for taken in 1..=50 {
            for feed in &mut feeds {
                // The others are still at the batch before.
                let ahead = asked.load(Ordering::SeqCst) + 1 - taken;
                assert!(ahead <= 3, "{ahead} batches when {taken} is taken");
                feed.next().expect("good data").expect("a batch");
            }
        }
        drop(feeds);
        assert_eq!(Arc::strong_count(&asked), 1, "the thread has dropped its source");
    }
}

#[test]
fn the_same_three_batches_are_filled_again_and_again() {
    let mut alone = Feed::start(generated(5000), 8, 1).expect("a thread").remove(0);
    let (mut lent, mut batches) = (HashSet::new(), 0);
    while let Some(share) = alone.next().expect("good data") {
        lent.insert(std::ptr::from_ref(share.batch));
        batches += 1;
    }
    assert_eq!((batches, lent.len()), (625, 3));
    let rank = Feed::start(generated(5000), 8, 2).expect("a thread");
    let copies = ranks(rank, |_, mut feed| {
        let mut own = HashSet::new();
        while let Some(share) = feed.next().expect("good data") {
            own.insert(std::ptr::from_ref(share.batch).addr());
        }
        own.len()
    });
    assert_eq!(copies, [1, 1]);
}

#[test]
fn a_panic_of_the_source_becomes_an_error_of_every_rank() {
    let source = Counting { panic_at: Some(5), ..Counting::default() };
    let feeds = Feed::start(source, 4, 3).expect("a thread");
    ranks(feeds, |rank, mut feed| {
        let check = |error: Option<Error>| {
            let error = error.expect("the source has panicked").to_string();
            assert!(error.contains("it panicked: batch 5 is poisoned"), "{error}");
        };
        // Rank 2 waits in vain for a restart; the others find out by reading.
        if rank != 2 {
            for _ in 0..5 {
                feed.next().expect("good data").expect("a batch");
            }
            check(feed.next().err());
        }
        check(feed.restart_at(0).err());
        check((0..3).find_map(|_| feed.next().err()));
    });
}

#[test]
fn a_source_that_blocks_holds_up_the_last_drop_only() {
    let (open, closed) = channel();
    let asked = Arc::new(AtomicUsize::new(0));
    let gate = Some((0, closed));
    let source = Counting { asked: Arc::clone(&asked), gate, ..Counting::default() };
    let mut feeds = Feed::start(source, 4, 3).expect("a thread");
    while asked.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    let (last, others) = (feeds.pop().expect("rank 2"), feeds);
    let (done, dropped) = channel();
    thread::spawn(move || {
        drop(others);
        done.send("others").expect("the test waits");
        drop(last);
        done.send("last").expect("the test waits");
    });
    assert_eq!(within_a_minute(&dropped), "others");
    let joined = dropped.recv_timeout(Duration::from_millis(30));
    assert!(joined.is_err(), "the last end waits for the source");
    open.send(()).expect("the source waits");
    assert_eq!(within_a_minute(&dropped), "last");
}

#[test]
fn worlds_and_batches_of_none_are_refused() {
    for (limit, world, expected) in [(0, 2, "batch limit = 0"), (4, 0, "ranks to read for = 0")] {
        let error = Feed::start(generated(10), limit, world).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Pairs are what `next` gives, each share once as the one after and once as the one to work on;
/// what cannot be read is an error when it is reached, and a restart forgets what was read ahead.
#[test]
fn pairs_look_one_batch_ahead_and_no_further() {
    let folder = Folder::new();
    let text = good_rows(12) + "bad\n" + &good_rows(4);
    let feeds = Feed::start(criteo(&folder, &text), 4, 3).expect("a thread");
    ranks(feeds, |_, mut feed| {
        for _ in 0..2 {
            let mut promised: Option<Batch> = None;
            for number in 0..3 {
                let (share, after) = feed.next_pair().expect("good data").expect("a batch");
                assert_eq!(share.rows, 4);
                if let Some(promised) = promised {
                    assert_eq!(*share.batch, promised, "batch {number}");
                }
                promised = after.map(|after| after.batch.clone());
                assert_eq!(promised.is_some(), number < 2, "the bad row is behind the third batch");
            }
            feed.next_pair().expect_err("a bad row");
            feed.restart_at(0).expect("a restart");
            let first = feed.next_pair().expect("good data").expect("a batch").0.batch.clone();
            feed.restart_at(0).expect("a restart");
            assert_eq!(*feed.next().expect("good data").expect("a batch").batch, first);
            feed.restart_at(0).expect("a restart");
        }
    });
}
