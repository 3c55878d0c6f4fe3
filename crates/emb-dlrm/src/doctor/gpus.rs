//! The CUDA driver, GPUs, and the image of the kernels.

use super::system::bytes;
use super::{Check, System};
use emb_cuda::Device;

const AREA: &str = "CUDA";

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let mut checks = vec![driver(system)];
    match Device::count() {
        Err(error) => checks.push(
            Check::ok(AREA, "devices", error.to_string())
                .warn("--device cuda will not start: install NVIDIA's driver (docker --gpus all)"),
        ),
        Ok(0) => checks.push(
            Check::ok(AREA, "devices", "a driver, and no device")
                .warn("CUDA_VISIBLE_DEVICES may hide them; a container needs --gpus all"),
        ),
        Ok(count) => checks.extend((0..count).map(device)),
    }
    checks.push(match emb_cuda::image_bytes() {
        Ok(size) => Check::ok(AREA, "kernels", bytes(size)),
        Err(error) => Check::ok(AREA, "kernels", error.to_string())
            .warn("--device cuda will not start: cargo xtask kernels builds them"),
    });
    checks
}

fn driver(system: &System<'_>) -> Check {
    let name = "driver";
    let text = system.read("proc/driver/nvidia/version");
    Check::of(AREA, name, text, |text| {
        Check::ok(AREA, name, text.lines().next().unwrap_or_default())
    })
}

fn device(ordinal: usize) -> Check {
    let name = format!("device {ordinal}");
    let described = Device::open(ordinal).and_then(|device| {
        let ((free, total), (major, minor)) = (device.memory()?, device.compute_capability()?);
        Ok(format!(
            "{}, compute capability {major}.{minor}, {} free of {}",
            device.name(),
            bytes(free),
            bytes(total)
        ))
    });
    match described {
        Ok(found) => Check::ok(AREA, &name, found),
        Err(error) => Check::ok(AREA, &name, error.to_string())
            .problem("the driver does not open it: nvidia-smi says more"),
    }
}
