//! Reading ahead changes nothing but the time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::*;

fn source(folder: &Folder, text: &str) -> Criteo {
    open(&[folder.write("day.txt", text)], CriteoOptions::default()).expect("a good file")
}

#[test]
fn the_same_rows_come_in_the_same_batches_for_every_epoch() {
    let folder = Folder::new();
    let text = good_rows(1003);
    let expected = read_all(&mut source(&folder, &text), 64).expect("an epoch");
    let mut prefetch = Prefetch::new(source(&folder, &text), 64).expect("a thread");
    assert_eq!(prefetch.describe().kind, "criteo");
    for _ in 0..3 {
        assert_eq!(read_all(&mut prefetch, 64).expect("an epoch"), expected);
        let mut batch = Batch::default();
        assert_eq!(prefetch.next(64, &mut batch).expect("still the end"), 0);
        prefetch.restart().expect("restart");
    }
    // A restart in the middle of an epoch, with batches in flight.
    let mut batch = Batch::default();
    for start in [0, 10, 700, 1003, 5000] {
        prefetch.restart().expect("restart");
        prefetch.next(64, &mut batch).expect("one batch");
        prefetch.restart_at(start).expect("restart");
        let rest = read_all(&mut prefetch, 64).expect("the rest");
        assert_eq!(rest.ids[..], expected.ids[(start as usize).min(1003)..]);
    }
}

#[test]
fn errors_arrive_in_order_and_a_restart_heals() {
    let folder = Folder::new();
    let mut prefetch =
        Prefetch::new(source(&folder, &(good_rows(10) + "bad\n")), 5).expect("thread");
    let mut batch = Batch::default();
    for _ in 0..3 {
        assert_eq!(prefetch.next(5, &mut batch).expect("good"), 5);
        assert_eq!(prefetch.next(5, &mut batch).expect("good"), 5);
        let error = prefetch.next(5, &mut batch).expect_err("a bad row").to_string();
        assert!(error.contains("line 11"), "{error}");
        assert_eq!(batch.rows, 0);
        assert!(matches!(prefetch.next(5, &mut batch), Err(Error::Failed)));
        prefetch.restart().expect("restart");
    }
    let error = prefetch.next(6, &mut batch).expect_err("another limit").to_string();
    assert!(error.contains("batch limit = 6"), "{error}");
}

#[test]
fn skipped_rows_are_reported_through_it() {
    let folder = Folder::new();
    let path = folder.write("day.txt", good_rows(10) + "bad\n" + &good_rows(10));
    let mut prefetch = Prefetch::new(open(&[path], skipping()).expect("open"), 7).expect("thread");
    assert_eq!(read_all(&mut prefetch, 7).expect("an epoch").labels.len(), 20);
    assert_eq!(prefetch.skipped().total(), 1);
}

/// Counts how many batches it was asked for; panics at one of them.
struct Counting {
    asked: Arc<AtomicUsize>,
    panic_at: usize,
}

impl Source for Counting {
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        assert!(asked < self.panic_at, "batch {asked} is poisoned");
        batch.dense.resize(limit * DENSE, 0.0);
        batch.rows = limit;
        Ok(limit)
    }

    fn restart_at(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn describe(&self) -> SourceInfo {
        SourceInfo { kind: "counting", files: Vec::new(), rows: None }
    }
}

#[test]
fn at_most_two_batches_are_read_ahead_and_dropping_joins_the_thread() {
    let asked = Arc::new(AtomicUsize::new(0));
    let endless = Counting { asked: Arc::clone(&asked), panic_at: usize::MAX };
    let mut prefetch = Prefetch::new(endless, 4).expect("a thread");
    let mut batch = Batch::default();
    for taken in 1..=50 {
        prefetch.next(4, &mut batch).expect("a batch");
        assert!(asked.load(Ordering::SeqCst) <= taken + 2);
    }
    drop(prefetch);
    assert_eq!(Arc::strong_count(&asked), 1, "the thread has dropped its source");
}

#[test]
fn a_panic_of_the_reader_becomes_an_error() {
    let source = Counting { asked: Arc::default(), panic_at: 1 };
    let mut prefetch = Prefetch::new(source, 4).expect("a thread");
    let mut batch = Batch::default();
    let mut errors = 0;
    for _ in 0..4 {
        if let Err(error) = prefetch.next(4, &mut batch) {
            errors += 1;
            let text = error.to_string();
            assert!(errors > 1 || text.contains("batch 1 is poisoned"), "{text}");
        }
    }
    assert!(errors >= 2);
    assert!(prefetch.restart().is_err());
}
