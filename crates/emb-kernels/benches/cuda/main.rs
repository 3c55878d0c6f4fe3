//! Speed of the `Cuda` backend, beside what the same GPU reaches in the same run.
//!
//! ```text
//! cargo bench -p emb-kernels --features cuda --bench cuda -- [--tiny] [--device N] [--seconds S]
//!     [--json FILE] [--torch FILE] [--describe] [--step-shape]
//! ```
//!
//! Rates are of these bytes; ids, rows and outputs are counted as the GPU must move them once:
//!
//! | cell | bytes |
//! | --- | --- |
//! | `copy` | `2 * length` |
//! | `lookup` | `lookups * (row + 8) + output` |
//! | `power law` | `lookups * row + output`, as cuEmbed counts its own |
//! | `update` | `output gradients + lookups * 8 + distinct rows * 2 * (row + state)` |
//!
//! Rows of a power law come from the L2 cache more often than not, so its rate may pass that of the
//! memory. Between two samples the cache is emptied by writing over it. Times are the GPU's own.
//!
//! `--torch` names what `torch_bag.py` printed for the cell `step`: PyTorch's time stands beside it.
//! `--describe` names the device and ends; `--step-shape` names what `torch_bag.py` must be given. `--tiny` is to see that everything runs; its figures
//! mean nothing.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

mod clock;
mod ids;
mod machine;
mod options;
mod report;
mod sizes;
mod tables;

use clock::Clock;
use emb_cuda::Device;
use emb_kernels::Dtype;
use emb_optim::RuleKind;
use options::Options;
use report::Report;
use sizes::{Shape, Sizes};
use tables::{Pass, Tables};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let options = Options::parse()?;
    let device = Device::open(options.device)?;
    let mut report = Report::new(&device, &options)?;
    if options.describe {
        print!("{}", report.describe());
        return Ok(());
    }
    let (free, _) = device.memory()?;
    let sizes = Sizes::of(options.tiny, free);
    if options.step_shape {
        let Shape { rows, dim, batch, ids, .. } = sizes.step;
        println!("{rows} {dim} {batch} {ids}");
        return Ok(());
    }
    let mut clock = Clock::new(&device, &sizes, &options)?;
    machine::copies(&device, &sizes, &mut clock, &mut report)?;
    machine::products(&device, &sizes, &mut clock, &mut report)?;
    for dtype in [Dtype::F32, Dtype::F16] {
        for &dim in &sizes.dims {
            let shape = Shape { dim, dtype, ..sizes.uniform };
            uniform(&device, shape, &mut clock, &mut report)?;
        }
    }
    power_law(&device, sizes.power_law, &mut clock, &mut report)?;
    step(&device, sizes.step, &mut clock, &mut report)?;
    print!("{}", report.table());
    if let Some(file) = &options.json {
        std::fs::write(file, report.json())?;
    }
    Ok(())
}

/// Lookup and update of uniform ids, with the rule that most tables are trained with.
fn uniform(device: &Device, shape: Shape, clock: &mut Clock, report: &mut Report) -> Result<()> {
    let rule = RuleKind::RowWiseAdaGrad;
    let mut tables = Tables::new(device, shape, rule, ids::uniform)?;
    let (dim, dtype) = (shape.dim, shape.dtype);
    let bytes = shape.lookups() * (shape.row_bytes() + 8) + shape.output_bytes();
    let seconds = clock.median(tables.stream(), || tables.run(Pass::Lookup))?;
    report.memory(format!("lookup uniform, dim {dim} {dtype:?}"), seconds, bytes);
    let row = shape.row_bytes() + tables.state_bytes();
    let bytes = shape.output_bytes() + shape.lookups() * 8 + tables.distinct() * 2 * row;
    let seconds = clock.median(tables.stream(), || tables.run(Pass::Update))?;
    report.memory(format!("update {}, dim {dim} {dtype:?}", rule.name()), seconds, bytes);
    Ok(())
}

/// The case of cuEmbed's README: 10 M rows of 256 f16, 65,536 bags of 64, exponent 1.15.
fn power_law(device: &Device, shape: Shape, clock: &mut Clock, report: &mut Report) -> Result<()> {
    let mut tables = Tables::new(device, shape, RuleKind::Sgd, ids::power_law)?;
    let bytes = shape.lookups() * shape.row_bytes() + shape.output_bytes();
    let seconds = clock.median(tables.stream(), || tables.run(Pass::Lookup))?;
    let Shape { dim, dtype, .. } = shape;
    report.memory(format!("lookup power law {}, dim {dim} {dtype:?}", ids::ALPHA), seconds, bytes);
    Ok(())
}

/// Lookup, gradient and descent of one table: what PyTorch's bag does in three calls.
fn step(device: &Device, shape: Shape, clock: &mut Clock, report: &mut Report) -> Result<()> {
    let mut tables = Tables::new(device, shape, RuleKind::Sgd, ids::uniform)?;
    let seconds = clock.median(tables.stream(), || tables.run(Pass::Step))?;
    report.step(shape, seconds);
    Ok(())
}
