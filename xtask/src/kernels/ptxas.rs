//! What `ptxas -v` says about every kernel: registers, shared memory, spills.

use serde::Serialize;

/// One kernel on one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) kernel: String,
    /// Such as `sm_90`.
    pub(crate) architecture: String,
    /// Registers a thread.
    pub(crate) registers: u32,
    /// Shared memory a block, in bytes, without what a launch adds.
    pub(crate) shared_bytes: u32,
    /// Local memory a thread, in bytes.
    pub(crate) stack_bytes: u32,
    /// Bytes a thread stores to local memory because registers ran out, and loads again.
    pub(crate) spill_store_bytes: u32,
    pub(crate) spill_load_bytes: u32,
}

impl Usage {
    pub(crate) fn spill_bytes(&self) -> u32 {
        self.spill_store_bytes + self.spill_load_bytes
    }
}

/// Reads the report of one architecture, sorted by kernel.
pub(crate) fn parse(text: &str) -> Vec<Usage> {
    let mut kernels: Vec<Usage> = Vec::new();
    for line in text.lines() {
        if let Some((kernel, architecture)) = entry(line) {
            let (kernel, architecture) = (kernel.to_owned(), architecture.to_owned());
            kernels.push(Usage { kernel, architecture, ..Usage::default() });
        } else if let Some(last) = kernels.last_mut() {
            read(line, last);
        }
    }
    kernels.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    kernels
}

/// `ptxas info    : Compiling entry function 'emb_pool' for 'sm_90'`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("Compiling entry function '")?;
    let (kernel, rest) = rest.split_once("' for '")?;
    Some((kernel, rest.strip_suffix('\'')?))
}

/// The two lines of figures below: `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill
/// loads`, and `Used 40 registers, used 1 barriers, 8212 bytes smem`.
fn read(line: &str, usage: &mut Usage) {
    let figures = line.rsplit(": ").next().unwrap_or(line);
    for part in figures.split(", ") {
        let part = part.trim().trim_start_matches("Used ");
        let Some((number, what)) = part.split_once(' ') else { continue };
        let Ok(number) = number.parse() else { continue };
        match what {
            "registers" => usage.registers = number,
            "bytes smem" => usage.shared_bytes = number,
            "bytes stack frame" => usage.stack_bytes = number,
            "bytes spill stores" => usage.spill_store_bytes = number,
            "bytes spill loads" => usage.spill_load_bytes = number,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
ptxas error   : Registers are spilled to local memory in function 'emb_b', 12 bytes spill stores
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'emb_b' for 'sm_90'
ptxas info    : Function properties for emb_b
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 48 registers, used 0 barriers, 16 bytes cumulative stack size
ptxas info    : Compile time = 24.649 ms
ptxas info    : Compiling entry function 'emb_a' for 'sm_90'
ptxas info    : Function properties for emb_a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8212 bytes smem, 424 bytes cmem[0]
";

    #[test]
    fn figures_of_every_kernel_are_read() {
        let usage = parse(REPORT);
        let a = Usage {
            kernel: "emb_a".to_owned(),
            architecture: "sm_90".to_owned(),
            registers: 40,
            shared_bytes: 8212,
            ..Usage::default()
        };
        let b = Usage {
            kernel: "emb_b".to_owned(),
            registers: 48,
            shared_bytes: 0,
            stack_bytes: 16,
            spill_store_bytes: 12,
            spill_load_bytes: 20,
            ..a.clone()
        };
        assert_eq!(usage, [a, b]);
        assert_eq!(usage[1].spill_bytes(), 32);
    }

    #[test]
    fn other_lines_are_no_kernels() {
        assert_eq!(parse("ptxas info    : 0 bytes gmem\nUsed 40 registers\n"), []);
    }
}
