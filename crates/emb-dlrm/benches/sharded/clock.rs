//! Time of one thread: what a stage costs whatever else the machine does.

use std::fs::File;
use std::io::Read;
use std::time::Instant;

/// Seconds that this thread has had a processor (`/proc/thread-self/schedstat`, nanoseconds, first
/// number); 0 where the system doesn't say.
pub(crate) fn thread_seconds() -> f64 {
    // The system brings the number up to date when the thread lets others run.
    std::thread::yield_now();
    let mut text = [0; 64];
    let read = File::open("/proc/thread-self/schedstat").and_then(|mut file| file.read(&mut text));
    let text = &text[..read.unwrap_or(0)];
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0.0, |number, byte| number * 10.0 + f64::from(byte - b'0')) / 1e9
}

/// Bytes a second that one thread copies from memory to memory, the fastest of a few copies.
pub(crate) fn copy_bandwidth() -> f64 {
    const BYTES: usize = 64 << 20;
    let from = vec![1_u8; BYTES];
    let mut to = vec![0_u8; BYTES];
    let mut copy = |_| {
        let begun = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        BYTES as f64 / begun.elapsed().as_secs_f64()
    };
    (0..12).map(&mut copy).fold(0.0, f64::max)
}
