//! Devices for tests, or the reason why there are none.

use emb_cuda::Device;

/// All devices, up to `most`; without any, the reason is printed and the test is skipped.
pub(crate) fn devices(most: usize) -> Vec<Device> {
    let found = Device::count().and_then(|count| (0..count.min(most)).map(Device::open).collect());
    match found {
        Ok(devices) => {
            let devices: Vec<Device> = devices;
            if devices.len() < most {
                eprintln!("{} devices of {most}: what needs more is skipped", devices.len());
            }
            devices
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            Vec::new()
        }
    }
}
