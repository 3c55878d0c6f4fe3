//! Ranks of one process over device memory. Needs a driver: `cargo xtask test-simt` has one.
#![cfg(not(loom))]

mod devices;

use devices::devices;
use emb_comm::conformance::{self, Placed};
use emb_comm::{
    Collective, DeviceSpace, Error, FailureKind, Local, Operation, Options, Reduction, Space,
    Staged, run_over,
};
use emb_cuda::{Buffer, Device, Stream};
use std::time::Duration;

type Rank = Local<DeviceSpace>;

/// Ranks and devices that they share.
const WORLDS: [(usize, usize); 5] = [(1, 1), (2, 1), (4, 1), (4, 2), (4, 4)];

/// Streams of ranks: rank `r` on device `r % devices`.
fn streams(devices: &[Device], ranks: usize) -> Vec<Stream> {
    let devices = devices.iter().cycle().take(ranks);
    devices.map(|device| device.stream().expect("a stream")).collect()
}

fn options() -> Options {
    Options::default().with_timeout(Duration::from_mins(1))
}

fn spaces(streams: &[Stream]) -> Vec<DeviceSpace> {
    streams.iter().map(DeviceSpace::new).collect()
}

fn whole(rank: &mut Rank) -> Result<Rank, String> {
    let all = rank.split(Some(0), rank.rank()).map_err(|error| error.to_string())?;
    all.ok_or_else(|| "every rank has a color".to_owned())
}

#[test]
fn local_conforms_over_one_device_and_over_several() {
    let all = devices(4);
    for (ranks, used) in WORLDS.into_iter().filter(|&(_, used)| used <= all.len()) {
        let streams = streams(&all[..used], ranks);
        let done = run_over(spaces(&streams), &options(), |rank| {
            let space = DeviceSpace::new(&streams[rank.rank()]);
            let mut placed = Placed::new(space, whole(rank)?);
            for check in conformance::checks::<Placed<DeviceSpace, Rank>>() {
                check.run(&mut placed).map_err(|error| format!("{}: {error}", check.name()))?;
            }
            Ok::<_, String>(())
        });
        done.unwrap_or_else(|failure| panic!("{ranks} ranks on {used} devices: {failure}"));
    }
}

/// Runs each refusal in a world of its own, of ranks made into `C`.
fn refuses<C: Collective>(devices: &[Device], make: impl Fn(Rank, &Stream) -> C + Sync) {
    let make = &make;
    for check in conformance::refusals::<C>() {
        let streams = streams(devices, 3);
        let ranks = Local::over(spaces(&streams), &options());
        std::thread::scope(|scope| {
            for (rank, stream) in ranks.into_iter().zip(&streams) {
                let check = &check;
                scope.spawn(move || {
                    let outcome = check.run(&mut make(rank, stream));
                    outcome.unwrap_or_else(|error| panic!("{}: {error}", check.name()));
                });
            }
        });
    }
}

#[test]
fn local_refuses_over_devices_and_staged() {
    let all = devices(2);
    if !all.is_empty() {
        refuses(&all, |rank, stream| Placed::new(DeviceSpace::new(stream), rank));
        refuses(&all, Staged::new);
    }
}

#[test]
fn slices_are_staged_through_devices() {
    let all = devices(2);
    for ranks in [1, 3].into_iter().filter(|_| !all.is_empty()) {
        let streams = streams(&all, ranks);
        let done = run_over(spaces(&streams), &options(), |rank| {
            let mut staged = Staged::new(whole(rank)?, &streams[rank.rank()]);
            for check in conformance::checks::<Staged<Rank>>() {
                check.run(&mut staged).map_err(|error| format!("{}: {error}", check.name()))?;
            }
            let before = (staged.staged_bytes(), staged.meters()[Operation::AllReduce].bytes());
            let fail = |error: Error| error.to_string();
            staged.all_reduce(&mut [1.0f32; 9]).map_err(fail)?;
            assert_eq!(staged.staged_bytes() - before.0, 2 * 4 * 9, "to the device and back");
            let taken = staged.meters()[Operation::AllReduce].bytes() - before.1;
            assert!((taken > 0) == (ranks > 1), "{taken} bytes from {ranks} ranks");
            Ok::<_, String>(())
        });
        done.unwrap_or_else(|failure| panic!("{ranks} ranks: {failure}"));
    }
}

#[test]
fn a_rank_that_panics_is_named_by_the_others() {
    let all = devices(1);
    if all.is_empty() {
        return;
    }
    let streams = streams(&all, 3);
    let failure = run_over(spaces(&streams), &options(), |rank| {
        assert!(rank.rank() != 1, "planned");
        let mut values = streams[rank.rank()].zeros::<f32>(100).expect("memory");
        let error = rank.all_reduce(values.whole_mut()).expect_err("rank 1 panics");
        assert!(matches!(error, Error::Failed { .. }), "{error}");
        Err::<(), _>(error)
    });
    let failure = failure.expect_err("rank 1 panics");
    assert_eq!((failure.kind(), failure.ranks()), (FailureKind::Panic, &[1][..]), "{failure}");
}

#[test]
fn more_ranks_than_a_launch_takes_are_added_in_order() {
    let all = devices(2);
    let Some(device) = all.first() else { return };
    let (stream, space) = {
        let stream = device.stream().expect("a stream");
        (stream.clone(), DeviceSpace::new(&stream))
    };
    // The values that are there already are those of a rank of the second launch.
    let (ranks, here, len) = (150, 100, 37);
    let value = |rank: usize, k: usize| 1.0f32 / (1 + rank * len + k) as f32;
    let of = |rank: usize| (0..len).map(|k| value(rank, k)).collect::<Vec<f32>>();
    let far = all.last().expect("not empty").stream().expect("a stream");
    let buffers: Vec<Buffer<f32>> = (0..ranks)
        .map(|rank| {
            // Every third vector lies on another device, if there is one.
            let home = if rank % 3 == 0 { &far } else { &stream };
            let mut buffer = home.zeros(len).expect("memory");
            home.upload(&of(rank), buffer.whole_mut()).expect("a copy");
            buffer
        })
        .collect();
    for how in [Reduction::Sum, Reduction::Max] {
        let mut to = stream.zeros(len).expect("memory");
        stream.upload(&of(here), to.whole_mut()).expect("a copy");
        let source = |rank: usize| (rank != here).then(|| buffers[rank].whole());
        space.reduce(how, to.whole_mut(), ranks, source).expect("a reduction");
        let mut found = vec![0.0; len];
        stream.download(to.whole(), &mut found).expect("a copy");
        for (k, found) in found.iter().enumerate() {
            let values = (0..ranks).map(|rank| value(rank, k));
            let expected = match how {
                Reduction::Sum => values.reduce(|sum, value| sum + value),
                _ => values.reduce(f32::max),
            };
            assert_eq!(Some(found.to_bits()), expected.map(f32::to_bits), "{how:?}, element {k}");
        }
    }
}
