//! Streams, memory and launches, on a GPU or on the fake driver of `cargo xtask test-simt`.
//! Without any driver the tests say so and pass.

use emb_cuda::{Device, Error, Stream};

/// The first device; `None`, with a printed reason, where there is none.
fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn numbers(count: usize, first: u32) -> Vec<u32> {
    (0..count as u32).map(|n| n.wrapping_mul(0x9e37_79b9) ^ first).collect()
}

fn download(stream: &Stream, buffer: &emb_cuda::Buffer<u32>) -> Vec<u32> {
    let mut back = vec![0; buffer.len()];
    stream.download(buffer.whole(), &mut back).expect("a download");
    back
}

#[test]
fn what_goes_up_comes_back_in_any_size() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    // Around the parts that long copies are made of, 16 MiB each, and none at all.
    for len in [0, 1, 3, 1000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20] {
        let sent = numbers(len, 7);
        let mut buffer = stream.zeros::<u32>(len).expect("memory");
        assert!(download(&stream, &buffer).iter().all(|&n| n == 0), "{len} zeros");
        stream.upload(&sent, buffer.whole_mut()).expect("an upload");
        assert!(download(&stream, &buffer) == sent, "{len} numbers");
    }
}

#[test]
fn a_slice_may_change_once_an_upload_returns() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let mut buffers = Vec::new();
    let mut slice = vec![0_u32; 3000];
    // More than both halves of the staging memory at first: it has to be waited for and grown.
    for round in 0..50 {
        slice.copy_from_slice(&numbers(3000, round));
        let mut buffer = stream.uninit::<u32>(3000).expect("memory");
        stream.upload(&slice, buffer.whole_mut()).expect("an upload");
        buffers.push(buffer);
    }
    for (round, buffer) in buffers.iter().enumerate() {
        assert!(download(&stream, buffer) == numbers(3000, round as u32), "round {round}");
    }
}

/// Work of one stream on memory of another comes after what that one had to do before, and before
/// what it does next, without a word from the caller.
#[test]
fn streams_order_themselves_by_the_memory_they_share() {
    let Some(device) = device() else { return };
    let home = device.stream().expect("a stream");
    let others: Vec<Stream> = (0..3).map(|_| device.stream().expect("a stream")).collect();
    for round in 0..20 {
        let sent = numbers(257, round);
        let mut a = home.uninit::<u32>(257).expect("memory");
        let mut b = others[0].uninit::<u32>(257).expect("memory");
        let mut c = others[1].zeros::<u32>(257).expect("memory");
        home.upload(&sent, a.whole_mut()).expect("an upload");
        others[2].copy(a.whole(), b.whole_mut()).expect("a copy of two foreign memories");
        home.clear(a.whole_mut()).expect("cleared after the copy");
        others[1].copy(b.whole(), c.whole_mut()).expect("a copy");
        others[0].clear(b.whole_mut()).expect("cleared after the copy");
        assert!(download(&home, &c) == sent, "round {round}");
        assert!(download(&others[2], &a).iter().all(|&n| n == 0), "round {round}");
    }
}

#[test]
fn an_event_is_a_point_of_its_stream() {
    let Some(device) = device() else { return };
    let (first, second) = (device.stream().expect("a"), device.stream().expect("b"));
    let start = first.record_timed().expect("an event");
    let mut buffer = first.zeros::<u32>(1 << 16).expect("memory");
    first.upload(&numbers(1 << 16, 1), buffer.whole_mut()).expect("an upload");
    let end = first.record_timed().expect("an event");
    second.wait(&end).expect("a wait");
    second.synchronize().expect("done");
    assert!(start.is_done().expect("no failure") && end.is_done().expect("no failure"));
    assert!(end.seconds_since(&start).expect("both are timed") >= 0.0);
}

/// A thread that has called nothing yet has no device of its own.
#[test]
fn events_and_kernels_are_there_for_any_thread() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let [start, end] = [0, 1].map(|_| stream.record_timed().expect("an event"));
    let in_a_thread =
        |work: &(dyn Fn() + Sync)| std::thread::scope(|scope| scope.spawn(work).join());
    let missing = || device.kernel("emb_no_such_kernel").expect_err("no such kernel");
    let expected = missing();
    in_a_thread(&|| assert_eq!(missing(), expected)).expect("the same refusal");
    in_a_thread(&|| end.synchronize().expect("done")).expect("a wait");
    in_a_thread(&|| assert!(end.is_done().expect("no failure"))).expect("a question");
    in_a_thread(&|| assert!(end.seconds_since(&start).expect("both are timed") >= 0.0))
        .expect("a measurement");
}

/// Memory of one device, used by its address from another.
#[test]
fn memory_of_another_device_is_reached() {
    let Some(device) = device().filter(|_| Device::count().expect("a driver") > 1) else { return };
    let other = Device::open(1).expect("a device").stream().expect("a stream");
    let (stream, sent) = (device.stream().expect("a stream"), numbers(257, 3));
    let mut memory = other.zeros::<u32>(257).expect("memory");
    stream.upload(&sent, memory.whole_mut()).expect("an upload to another device");
    assert!(download(&stream, &memory) == sent && download(&other, &memory) == sent);
    let mut near = stream.zeros::<u32>(257).expect("memory");
    let middle = other.zeros::<u32>(0).expect("nothing");
    stream.copy(middle.whole(), near.view_mut(7..7)).expect("a copy of nothing");
    other.copy(memory.whole(), near.whole_mut()).expect("a copy from one device to another");
    assert!(download(&stream, &near) == sent);
    let event = other.record().expect("an event");
    stream.wait(&event).expect("a wait for another device");
    stream.synchronize().expect("done");
}

#[test]
fn lengths_devices_kernels_and_memory_that_do_not_fit_are_named() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let mut four = stream.zeros::<u32>(4).expect("memory");
    let error = stream.upload(&[1, 2, 3], four.whole_mut()).expect_err("3 for 4");
    assert_eq!(error.to_string(), "upload: 4 elements to be made from 3");
    let devices = Device::count().expect("a driver");
    let error = Device::open(devices + 5).expect_err("no such device");
    assert_eq!(error, Error::NoDevice { ordinal: devices + 5, devices });
    let error = stream.zeros::<u64>(usize::MAX / 8).expect_err("more than there is");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    assert!(error.to_string().contains("bytes are free"), "{error}");
    let error = device.kernel("emb_no_such_kernel").expect_err("no such kernel");
    assert!(matches!(error, Error::NoKernel { .. } | Error::NoImage(_)), "{error}");
}

#[test]
#[should_panic(expected = "elements 2..9 of a device memory of 4")]
fn a_range_out_of_bounds_panics_as_that_of_a_slice() {
    let Some(device) = device() else { panic!("elements 2..9 of a device memory of 4: skipped") };
    let stream = device.stream().expect("a stream");
    let four = stream.zeros::<u32>(4).expect("memory");
    let _ = four.view(2..9);
}
