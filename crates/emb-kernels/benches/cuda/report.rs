//! What was measured, for people and for machines.

use crate::Result;
use crate::options::Options;
use crate::sizes::Shape;
use emb_cuda::Device;

/// One measurement.
#[derive(Debug)]
struct Cell {
    name: String,
    seconds: f64,
    /// A second: bytes, or multiplications and additions, or steps.
    rate: f64,
    unit: Unit,
    /// Of the copy's rate, or of PyTorch's.
    share: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Bytes,
    Flops,
    Steps,
}

/// All measurements of one device.
#[derive(Debug)]
pub(crate) struct Report {
    device: String,
    capability: (u32, u32),
    multiprocessors: u32,
    memory: u64,
    tiny: bool,
    copy: f64,
    torch: Option<f64>,
    cells: Vec<Cell>,
}

impl Report {
    pub(crate) fn new(device: &Device, options: &Options) -> Result<Self> {
        let torch = options.torch.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        Ok(Self {
            device: device.name().to_owned(),
            capability: device.compute_capability()?,
            multiprocessors: device.multiprocessors()?,
            memory: device.memory()?.1,
            tiny: options.tiny,
            copy: f64::NAN,
            torch: torch.as_deref().and_then(seconds),
            cells: Vec::new(),
        })
    }

    /// The device in one line.
    pub(crate) fn describe(&self) -> String {
        let Self { device, capability: (major, minor), multiprocessors, memory, .. } = self;
        let memory = *memory as f64 / (1_u64 << 30) as f64;
        format!(
            "{device}: compute capability {major}.{minor}, {multiprocessors} multiprocessors, \
            {memory:.1} GiB\n"
        )
    }

    /// The copy that memory rates are compared with.
    pub(crate) fn copy(&mut self, seconds: f64, bytes: u64) {
        self.copy = bytes as f64 / seconds;
        self.memory("copy inside the memory".to_owned(), seconds, bytes);
    }

    pub(crate) fn memory(&mut self, name: String, seconds: f64, bytes: u64) {
        let rate = bytes as f64 / seconds;
        let share = Some(rate / self.copy);
        self.cells.push(Cell { name, seconds, rate, unit: Unit::Bytes, share });
    }

    pub(crate) fn product(&mut self, name: String, seconds: f64, operations: u64) {
        let rate = operations as f64 / seconds;
        self.cells.push(Cell { name, seconds, rate, unit: Unit::Flops, share: None });
    }

    /// The step that PyTorch's is compared with.
    pub(crate) fn step(&mut self, shape: Shape, seconds: f64) {
        let Shape { rows, dim, batch, ids, .. } = shape;
        let name = format!("step of sgd, {rows} rows of {dim}, {batch} bags of {ids}");
        let share = self.torch.map(|torch| torch / seconds);
        self.cells.push(Cell { name, seconds, rate: 1.0 / seconds, unit: Unit::Steps, share });
    }

    /// A line a cell.
    pub(crate) fn table(&self) -> String {
        let mut text = self.describe();
        if self.tiny {
            text += "tiny sizes, to see that everything runs: no figure means anything\n";
        }
        let width = self.cells.iter().map(|cell| cell.name.len()).max().unwrap_or(0);
        for cell in &self.cells {
            let (rate, share) = match cell.unit {
                Unit::Bytes => (format!("{:.1} GB/s", cell.rate / 1e9), "of the copy"),
                Unit::Flops => (format!("{:.1} TFLOP/s", cell.rate / 1e12), ""),
                Unit::Steps => (format!("{:.1} steps/s", cell.rate), "times PyTorch's rate"),
            };
            let share = match (cell.unit, cell.share) {
                (_, None) => String::new(),
                (Unit::Bytes, Some(value)) => format!("{:.0} % {share}", 100.0 * value),
                (_, Some(value)) => format!("{value:.2} {share}"),
            };
            let (name, ms) = (&cell.name, cell.seconds * 1e3);
            let line = format!("{name:width$}  {ms:>10.4} ms  {rate:>16}  {share}");
            text += line.trim_end();
            text += "\n";
        }
        text
    }

    /// One object.
    pub(crate) fn json(&self) -> String {
        let cell = |cell: &Cell| {
            let unit = match cell.unit {
                Unit::Bytes => "bytes",
                Unit::Flops => "flops",
                Unit::Steps => "steps",
            };
            let share = cell.share.map_or_else(|| "null".to_owned(), |share| format!("{share:.4}"));
            let Cell { name, seconds, rate, .. } = cell;
            format!(
                "{{\"name\": {name:?}, \"seconds\": {seconds:e}, \"{unit}_per_second\": {rate:e}, \
                \"share\": {share}}}"
            )
        };
        let cells: Vec<String> = self.cells.iter().map(cell).collect();
        let Self { device, capability: (major, minor), multiprocessors, memory, tiny, .. } = self;
        format!(
            "{{\"device\": {device:?}, \"compute_capability\": \"{major}.{minor}\", \
            \"multiprocessors\": {multiprocessors}, \"memory_bytes\": {memory}, \"tiny\": {tiny}, \
            \"cells\": [\n  {}\n]}}\n",
            cells.join(",\n  ")
        )
    }
}

/// The number behind `"seconds":` in what the PyTorch script prints.
fn seconds(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("\"seconds\":")?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}
