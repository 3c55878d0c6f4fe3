//! How runs over NCCL fail, beside the failure contract of `contract_nccl.rs`: by name, within the
//! timeout, and without a panic on the way out.
#![cfg(not(loom))]

mod devices;

use emb_comm::{Check, Collective, Error, Nccl, NcclOptions, UniqueId};
use emb_cuda::Device;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For ranks that are told.
const LONG: Duration = Duration::from_mins(1);
/// For ranks that find out by waiting.
const SHORT: Duration = Duration::from_secs(1);
/// What a test that must not hang may take beyond its timeout.
const SLACK: Duration = Duration::from_secs(15);

/// Devices that no other test uses meanwhile: a failure of the library may be one of its device.
struct Alone {
    devices: Vec<Device>,
    _lock: MutexGuard<'static, ()>,
}

impl Deref for Alone {
    type Target = [Device];

    fn deref(&self) -> &[Device] {
        &self.devices
    }
}

/// Devices for ranks of NCCL; without the library, the reason is printed and the test is skipped.
fn devices(most: usize) -> Alone {
    static LOCK: Mutex<()> = Mutex::new(());
    let devices = match Nccl::library() {
        Ok(_) => devices::devices(most),
        Err(error) => {
            eprintln!("skipped: {error}");
            Vec::new()
        }
    };
    Alone { devices, _lock: LOCK.lock().unwrap_or_else(PoisonError::into_inner) }
}

fn options(timeout: Duration) -> NcclOptions {
    NcclOptions::default().with_timeout(timeout)
}

/// Runs a world of `devices`, each rank on a thread; what each returns, by rank. `by_id` joins
/// them as processes do.
fn world<R: Send>(
    devices: &[Device],
    by_id: bool,
    options: &NcclOptions,
    work: impl Fn(Nccl) -> R + Sync,
) -> Vec<std::thread::Result<R>> {
    let id = UniqueId::new().expect("an id");
    let mut threads = Vec::new();
    if !by_id {
        threads = Nccl::threads(devices, options).expect("all come");
    }
    let mut joined: Vec<Option<Nccl>> = threads.into_iter().map(Some).collect();
    joined.resize_with(devices.len(), || None);
    let work = &work;
    std::thread::scope(|scope| {
        let ranks = joined.into_iter().zip(devices).enumerate();
        let threads: Vec<_> = ranks
            .map(|(rank, (nccl, device))| {
                scope.spawn(move || {
                    let join = || Nccl::from_id(device, id, rank, devices.len(), options);
                    work(nccl.unwrap_or_else(|| join().expect("all come")))
                })
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    })
}

fn sum(rank: &mut Nccl) -> Result<(), Error> {
    let mut values = rank.space().stream().device().stream()?.zeros::<f32>(1000)?;
    rank.all_reduce(values.whole_mut())
}

#[test]
fn two_ranks_on_a_device_are_refused_before_anything_is_joined() {
    let all = devices(2);
    let Some(first) = all.first() else { return };
    let list = [all.last().expect("not empty").clone(), first.clone(), first.clone()];
    let list = if all.len() == 1 { &list[1..] } else { &list[..] };
    let error = Nccl::threads(list, &options(LONG)).expect_err("a device is named twice");
    let (one, two) = (list.len() - 2, list.len() - 1);
    let text = format!("ranks {one} and {two} are both on device 0; use the local transport");
    assert!(error.to_string().contains(&text), "{error}");
}

#[test]
fn u40_two_processes_on_a_device_are_told_rank_host_device_and_what_the_library_says() {
    let all = devices(1);
    let Some(device) = all.first() else { return };
    let id = UniqueId::new().expect("an id");
    let errors: Vec<String> = std::thread::scope(|scope| {
        let join =
            |rank| scope.spawn(move || Nccl::from_id(device, id, rank, 2, &options(SHORT * 3)));
        let threads: Vec<_> = [0, 1].map(join).into();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.map(|rank| rank.expect_err("one device").to_string()).collect()
    });
    for (rank, error) in errors.iter().enumerate() {
        let texts = [
            "ncclCommInitRankConfig",
            &format!("rank {rank} of 2"),
            "host ",
            "device 0",
            "NCCL_DEBUG=INFO",
        ];
        for text in texts {
            assert!(error.contains(text), "{error} does not say {text:?}");
        }
    }
}

#[test]
fn a_rank_that_never_joins_is_missed_within_the_timeout() {
    let all = devices(2);
    let Some(device) = all.first() else { return };
    let began = Instant::now();
    let id = UniqueId::new().expect("an id");
    let error = Nccl::from_id(device, id, 0, 2, &options(SHORT)).expect_err("rank 1 never joins");
    assert!(error.to_string().contains("not all ranks came within 1s"), "{error}");
    assert!(began.elapsed() < SHORT + SLACK, "{:?}", began.elapsed());
    let error = Nccl::from_id(device, id, 2, 2, &options(SHORT)).expect_err("there are two");
    assert!(error.to_string().contains("rank 2 does not exist"), "{error}");
}

#[test]
fn u28_reasons_reach_ranks_of_other_processes() {
    let all = devices(2);
    if all.len() < 2 {
        return;
    }
    let outcomes = world(&all, true, &options(LONG), |mut rank| {
        let mut half = rank.split(Some(0), rank.rank())?.expect("every rank has a color");
        rank.set_step(9);
        if rank.rank() == 1 {
            // Said on one set, it is told on the other when that ends.
            rank.abort("the loss is not a number");
            return Ok(());
        }
        sum(&mut half)
    });
    let error = outcomes.into_iter().next().expect("rank 0").expect("no panic");
    let error = error.expect_err("rank 1 gives up").to_string();
    assert!(error.contains("rank 1 gave up in step 9: the loss is not a number"), "{error}");
}

#[test]
fn u28_a_rank_that_gives_up_frees_those_that_wait_for_its_data() {
    let all = devices(3);
    if all.len() < 3 {
        return;
    }
    // Without a comparison of calls, the others wait inside the library.
    let unchecked = options(LONG).with_check(Check::Nothing);
    let began = Instant::now();
    let outcomes = world(&all, false, &unchecked, |mut rank| {
        rank.set_step(2);
        if rank.rank() == 1 {
            std::thread::sleep(SHORT);
            rank.abort("the disk is full");
            return Ok(());
        }
        sum(&mut rank)
    });
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    for rank in [0, 2] {
        let outcome = outcomes[rank].as_ref().expect("no panic");
        let error = outcome.as_ref().expect_err("rank 1 gives up").to_string();
        let text =
            format!("all_reduce on rank {rank} in step 2: rank 1 gave up in step 2: the disk");
        assert!(error.contains(&text), "{error}");
    }
}

#[test]
fn calls_that_were_not_compared_end_in_an_error_and_do_not_hang() {
    let all = devices(2);
    if all.len() < 2 {
        return;
    }
    for by_id in [false, true] {
        let began = Instant::now();
        let unchecked = options(SHORT).with_check(Check::Nothing);
        let outcomes = world(&all, by_id, &unchecked, |mut rank| {
            let stream = rank.space().stream().device().stream()?;
            let (send, mut recv) = (stream.zeros::<u32>(8)?, stream.zeros::<u32>(8)?);
            // Rank 1 expects an element less than rank 0 sends.
            let expected = 4 - rank.rank();
            let into = recv.view_mut(0..4 + expected);
            let counts = if rank.rank() == 0 { [4, 4] } else { [expected, 4] };
            rank.all_to_all_v(send.whole(), &[4, 4], into, &counts)
        });
        assert!(began.elapsed() < SHORT + SLACK, "{:?}", began.elapsed());
        let failed = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Err(_)))).count();
        assert_eq!(failed, 2, "{outcomes:?}");
    }
}

#[test]
fn ranks_with_other_options_do_not_join() {
    let all = devices(2);
    if all.len() < 2 {
        return;
    }
    let id = UniqueId::new().expect("an id");
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let join = |rank: usize| {
            let check = if rank == 0 { Check::Calls } else { Check::Nothing };
            let device = &all[rank];
            let options = options(LONG).with_check(check);
            scope.spawn(move || Nccl::from_id(device, id, rank, 2, &options))
        };
        let threads: Vec<_> = [0, 1].map(join).into();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.map(|rank| rank.expect_err("options differ")).collect()
    });
    for error in errors {
        assert!(error.to_string().contains("ranks with options"), "{error}");
    }
}

#[test]
fn ranks_that_are_dropped_end_quietly_whatever_has_happened() {
    let all = devices(3);
    if all.len() < 3 {
        return;
    }
    for by_id in [false, true] {
        // After work, after a failure, and with parts and copies that are dropped later.
        for fails in [false, true] {
            let outcomes = world(&all, by_id, &options(LONG), |mut rank| {
                sum(&mut rank)?;
                let part = rank.split(Some(rank.rank() % 2), 0)?;
                let mut copy = rank.duplicate()?;
                if fails {
                    copy.abort("no more");
                    sum(&mut copy).expect_err("the world has failed");
                }
                drop(rank);
                drop((part, copy));
                Ok::<_, Error>(())
            });
            for outcome in outcomes {
                let ended = outcome.expect("no panic");
                assert!(fails || ended.is_ok(), "{by_id}: {ended:?}");
            }
        }
    }
}

#[test]
fn u40_a_library_that_is_not_there_is_named_with_all_that_was_tried() {
    /// Set in the process that looks for the library and finds none.
    const CHILD: &str = "EMB_TEST_NO_LIBRARY";
    if std::env::var_os(CHILD).is_some() {
        match Nccl::library() {
            Ok((name, version)) => eprintln!("found {name} {version}"),
            Err(error) => eprintln!("{error}"),
        }
        return;
    }
    let name = "u40_a_library_that_is_not_there_is_named_with_all_that_was_tried";
    let child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("EMB_NCCL", "/nowhere/libnccl.so.2")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .output()
        .expect("this program runs");
    let said = String::from_utf8_lossy(&child.stderr);
    if said.contains("found ") {
        eprintln!("skipped: the system has a library of its own: {said}");
        return;
    }
    let texts = ["NCCL (libnccl)", "/nowhere/libnccl.so.2, libnccl.so.2, libnccl.so", "EMB_NCCL"];
    for text in texts {
        assert!(said.contains(text), "{said:?} does not say {text:?}");
    }
    assert!(child.status.success(), "{said}");
}
