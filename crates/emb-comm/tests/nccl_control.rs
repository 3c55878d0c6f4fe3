//! What processes tell each other beside NCCL, beside the failure contract of `contract_nccl.rs`:
//! of processes that are killed, cut off, silent or strange, before they join and after.
#![cfg(not(loom))]

mod control;
mod devices;
#[path = "control/lines.rs"]
mod lines;

use control::controls;
use emb_comm::{
    Collective, Error, Failure, FailureKind, Nccl, NcclControl, NcclOptions, Result, UniqueId,
};
use emb_cuda::Device;
use lines::Lines;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For ranks that are told; never reached.
const LONG: Duration = Duration::from_mins(1);
/// For ranks that find out by waiting.
const SHORT: Duration = Duration::from_millis(500);
/// Until when ranks are told that need not wait.
const SOON: Duration = Duration::from_secs(2);

/// Tests take turns: one of them counts threads.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As many devices; without them or the library, the reason is printed and the test is skipped.
fn devices(wanted: usize) -> Option<Vec<Device>> {
    if let Err(error) = Nccl::library() {
        eprintln!("skipped: {error}");
        return None;
    }
    Some(devices::devices(wanted)).filter(|devices| devices.len() == wanted)
}

fn options(timeout: Duration) -> NcclOptions {
    NcclOptions::default().with_timeout(timeout)
}

/// The failure that a control is told of, in time.
#[track_caller]
fn told(control: &NcclControl) -> Failure {
    let began = Instant::now();
    loop {
        if let Some(failure) = control.failure() {
            return failure;
        }
        assert!(began.elapsed() < SOON, "rank {} is not told", control.rank());
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Makes the world of two with a rank that does something else.
fn join_two(
    me: usize,
    timeout: Duration,
    other: impl FnOnce(TcpStream) -> TcpStream,
) -> Option<(Error, Duration)> {
    let devices = devices(1)?;
    let mut lines = Lines::new(2);
    let (own, others) = if me == 0 { (0, 1) } else { (1, 0) };
    let stream = other(lines.take(others));
    let control = lines.control(own);
    let began = Instant::now();
    let id = UniqueId::new().expect("an id");
    let joined = Nccl::from_id_with(&devices[0], id, &control, &options(timeout));
    let error = joined.expect_err("the other does not come");
    drop(stream);
    Some((error, began.elapsed()))
}

#[test]
fn u28_a_process_that_is_killed_is_gone_by_name_at_once() {
    /// Where the process that is killed connects.
    const CHILD: &str = "EMB_TEST_CONTROL";
    if let Ok(address) = std::env::var(CHILD) {
        let stream = TcpStream::connect(address).expect("a connection");
        let control = NcclControl::to_first(2, 3, stream).expect("a control");
        assert!(control.failure().is_none());
        std::thread::sleep(LONG);
        return;
    }
    let _alone = alone();
    let mut lines = Lines::new(3);
    drop(lines.take(2));
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["u28_a_process_that_is_killed_is_gone_by_name_at_once", "--exact"])
        .env(CHILD, lines.address.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("this program runs");
    lines.accept_again(2);
    let others = [lines.control(0), lines.control(1)];
    assert!(others.iter().all(|control| control.failure().is_none()));
    let killed = Instant::now();
    child.kill().expect("it runs");
    let failures = others.each_ref().map(told);
    eprintln!("told {:?} after the kill", killed.elapsed());
    for failure in failures {
        assert_eq!((failure.kind(), failure.ranks()), (FailureKind::Left, &[2][..]));
        let text = "rank 2 is gone: its connection ended without a word while rank 0 was in step 0";
        assert_eq!(failure.to_string(), text);
    }
    child.wait().expect("it ended");
}

/// What a rank of four does until it is told: sums in its half and, on a thread beside, of all.
fn work(mut rank: Nccl, goes: impl Fn(u64) -> bool) -> Result<()> {
    let mut half = rank.split(Some(rank.rank() / 2), 0)?.expect("every rank has a color");
    let mut copy = rank.duplicate()?;
    let sum = |set: &mut Nccl| {
        let mut values = set.space().stream().device().stream()?.zeros::<f32>(100)?;
        set.all_reduce(values.whole_mut())
    };
    std::thread::scope(|scope| {
        let beside = scope.spawn(move || {
            while sum(&mut copy).is_ok() {
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let outcome = (0..).try_for_each(|step| {
            rank.set_step(step);
            if goes(step) {
                return Err(Error::Space("cut off".to_owned()));
            }
            sum(&mut half).and_then(|()| rank.barrier())
        });
        beside.join().expect("no panic");
        outcome
    })
}

#[test]
fn u28_a_rank_that_is_cut_off_at_work_is_named_by_all_in_every_set() {
    let _alone = alone();
    let Some(devices) = devices(4) else { return };
    let id = UniqueId::new().expect("an id");
    let mut lines = Lines::new(4);
    let cut = lines.of(3).try_clone().expect("the same connection");
    let controls = [0, 1, 2, 3].map(|rank| lines.control(rank));
    let (cut, fell) = (&cut, &Mutex::new(None));
    // As the system does with the connections of a process that is killed.
    let goes = |rank: usize, step: u64| {
        let falls = rank == 3 && step == 5;
        if falls {
            *fell.lock().expect("no panic") = Some(Instant::now());
            cut.shutdown(Shutdown::Both).expect("it was open");
        }
        falls
    };
    std::thread::scope(|scope| {
        let ranks = controls.iter().zip(&devices).map(|(control, device)| {
            scope.spawn(move || {
                let rank = Nccl::from_id_with(device, id, control, &options(LONG))?;
                let outcome = work(rank, |step| goes(control.rank(), step));
                Ok::<_, Error>((outcome, Instant::now()))
            })
        });
        let ranks: Vec<_> = ranks.collect();
        for (rank, thread) in ranks.into_iter().enumerate() {
            let (outcome, at) = thread.join().expect("no panic").expect("all come");
            let error = outcome.expect_err("rank 3 is gone").to_string();
            let after = at - fell.lock().expect("no panic").expect("it fell");
            assert!(after < SOON, "rank {rank} ends {after:?} after the cut");
            // The others may not have come from the barrier of the step before.
            let says = [4, 5]
                .iter()
                .flat_map(|own| {
                    [4, 5].map(|first| {
                format!(
                    "on rank {rank} in step {own}: rank 3 is gone: its connection ended without a \
                     word while rank 0 was in step {first}"
                )
            })
                })
                .any(|text| error.contains(&text));
            assert!(rank == 3 || says, "{error}");
        }
    });
}

#[test]
fn a_rank_that_never_joins_is_named_by_what_it_does_instead() {
    let _alone = alone();
    // It is there, and silent.
    let Some((error, after)) = join_two(0, SHORT, |stream| stream) else { return };
    let text = "rank 1 did not arrive at barrier in step 0 within 500ms, rank 0 did: rank 1 does not \
                answer: it is stopped, or its host out of reach";
    assert!(error.to_string().ends_with(text), "{error}");
    assert!(after < SHORT + SOON, "{after:?}");
    // So is rank 0, which knows for the others.
    let (error, after) = join_two(1, SHORT, |stream| stream).expect("devices, as before");
    let text = "barrier in step 0 did not end within 500ms: rank 0 does not answer";
    assert!(error.to_string().contains(text), "{error}");
    assert!(after < SHORT + 2 * SOON, "{after:?}");
    // It ends before.
    for me in [0, 1] {
        let end = |stream: TcpStream| {
            stream.shutdown(Shutdown::Both).expect("it was open");
            stream
        };
        let (error, after) = join_two(me, LONG, end).expect("devices, as before");
        let text = format!("rank {} is gone: its connection ended without a word", 1 - me);
        assert!(error.to_string().contains(&text), "{error}");
        assert!(after < SOON, "{after:?}");
    }
    // It is none of this program.
    let strange = |mut stream: TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is open");
        stream
    };
    let (error, after) = join_two(0, LONG, strange).expect("devices, as before");
    assert!(error.to_string().contains("its connection says what no rank says"), "{error}");
    assert!(after < SOON, "{after:?}");
}

#[test]
fn u28_what_a_rank_finds_wrong_before_it_joins_the_others_are_told() {
    let _alone = alone();
    let Some(devices) = devices(1) else { return };
    for goes in [false, true] {
        let controls = controls(3);
        let id = UniqueId::new().expect("an id");
        let mut controls = controls.into_iter();
        let (first, second) = (controls.next().expect("rank 0"), controls.next().expect("rank 1"));
        let last = controls.next().expect("rank 2");
        if goes {
            drop(last);
        } else {
            last.abort("the disk is full");
        }
        let began = Instant::now();
        let joined = Nccl::from_id_with(&devices[0], id, &first, &options(LONG));
        let error = joined.expect_err("rank 2 does not come").to_string();
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        let why = if goes {
            "rank 2 ended in step 0, without taking part in barrier of step 0"
        } else {
            "rank 2 gave up in step 0: the disk is full"
        };
        assert_eq!(error, format!("barrier on rank 0 in step 0: {why}"));
        assert_eq!(told(&second).to_string(), why);
    }
}

#[test]
fn a_control_is_of_one_world_and_of_a_rank_that_exists() {
    let _alone = alone();
    let mut lines = Lines::new(2);
    let stream = lines.take(1);
    for rank in [0, 2] {
        let error =
            NcclControl::to_first(rank, 2, stream.try_clone().expect("the same connection"));
        let error = error.expect_err("no such rank but 1").to_string();
        assert!(error.contains(&format!("rank {rank} does not exist: there are 2")), "{error}");
    }
    let Some(devices) = devices(1) else { return };
    let control = NcclControl::of_first(Vec::new()).expect("a world of one");
    let id = || UniqueId::new().expect("an id");
    let rank = Nccl::from_id_with(&devices[0], id(), &control, &options(LONG)).expect("alone");
    rank.close().expect("it ends");
    let again = Nccl::from_id_with(&devices[0], id(), &control, &options(LONG));
    let error = again.expect_err("once").to_string();
    assert!(error.contains("a world was made with this control already"), "{error}");
}

/// Threads of controls in this process, once they are `wanted`: the system shows a thread that has
/// begun or ended a moment later.
fn listening(wanted: usize) -> usize {
    let began = Instant::now();
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
        let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
        let listens = |name: &std::io::Result<String>| {
            name.as_ref().is_ok_and(|name| name.trim() == "nccl control")
        };
        let count = names.filter(listens).count();
        if count == wanted || began.elapsed() > SOON {
            return count;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_thread_outlives_the_sets_whether_all_went_well_or_not() {
    let _alone = alone();
    let Some(devices) = devices(3) else { return };
    assert_eq!(listening(0), 0);
    for fails in [false, true] {
        let (id, all) = (UniqueId::new().expect("an id"), Barrier::new(3));
        let all = &all;
        std::thread::scope(|scope| {
            for (control, device) in controls(3).into_iter().zip(&devices) {
                scope.spawn(move || {
                    let joined = Nccl::from_id_with(device, id, &control, &options(LONG));
                    let mut rank = joined.expect("all come");
                    let me = control.rank();
                    drop(control);
                    let copy = rank.duplicate().expect("all make it");
                    all.wait();
                    assert_eq!(listening(3), 3);
                    all.wait();
                    if fails && me == 1 {
                        rank.abort("no more");
                    }
                    drop(rank);
                    drop(copy);
                });
            }
        });
        assert_eq!(listening(0), 0, "after a failure: {fails}");
    }
}
