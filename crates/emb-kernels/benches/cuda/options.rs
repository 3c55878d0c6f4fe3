//! What the bench was asked for.

use crate::Result;
use std::path::PathBuf;

/// The command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// Ordinal of the device.
    pub(crate) device: usize,
    /// The smallest sizes that run everything.
    pub(crate) tiny: bool,
    /// Seconds of samples a cell.
    pub(crate) seconds: f64,
    /// Where the results go as JSON.
    pub(crate) json: Option<PathBuf>,
    /// What PyTorch took for the cell `step`.
    pub(crate) torch: Option<PathBuf>,
    /// Say what the device is, and end.
    pub(crate) describe: bool,
    /// Say rows, dim, batch and ids of the cell `step`, and end.
    pub(crate) step_shape: bool,
}

impl Options {
    pub(crate) fn parse() -> Result<Self> {
        let mut options = Self {
            device: 0,
            tiny: false,
            seconds: 0.5,
            json: None,
            torch: None,
            describe: false,
            step_shape: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--device" => options.device = value()?.parse()?,
                "--tiny" => options.tiny = true,
                "--seconds" => options.seconds = value()?.parse()?,
                "--json" => options.json = Some(value()?.into()),
                "--torch" => options.torch = Some(value()?.into()),
                "--describe" => options.describe = true,
                "--step-shape" => options.step_shape = true,
                // Cargo adds this.
                "--bench" => {}
                other => return Err(format!("{other} is no option of this bench").into()),
            }
        }
        Ok(options)
    }
}
