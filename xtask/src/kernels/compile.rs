//! From the sources to one fat binary: PTX and machine code for every architecture.

use super::ptxas::{self, Usage};
use super::sources::Sources;
use super::toolkit::Toolkit;
use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Ampere, Hopper, Blackwell.
pub(crate) const ARCHITECTURES: [u32; 3] = [80, 90, 100];

/// The PTX that is packed too: newer GPUs compile it when they load it. Kernels use nothing that
/// came after it.
const PTX: u32 = 80;

/// Products and sums stay apart, as on the CPU. Warnings are errors, but for one: a rule without
/// state compares its number of slots, 0, with a count.
pub(crate) const NVCC_FLAGS: [&str; 6] =
    ["-O3", "-std=c++17", "-fmad=false", "-diag-suppress=186", "-Werror=all-warnings", "-ptx"];
/// Spills are errors.
pub(crate) const PTXAS_FLAGS: [&str; 6] =
    ["-O3", "-v", "-warn-spills", "-Werror", "--fmad", "false"];
/// Measured over 56 kernels: 0.8 of 5.8 MB are left; 1.0 by the default mode, 1.8 by that for speed.
pub(crate) const FATBINARY_FLAGS: [&str; 2] = ["-64", "--compress-mode=size"];

/// A finished build.
#[derive(Debug)]
pub(crate) struct Build {
    /// The fat binary.
    pub(crate) image: Vec<u8>,
    /// Name and bytes of every part, before compression.
    pub(crate) parts: Vec<(String, u64)>,
    /// Every kernel on every architecture.
    pub(crate) kernels: Vec<Usage>,
}

/// Machine code and PTX of one architecture.
#[derive(Debug)]
struct Part {
    architecture: u32,
    ptx: PathBuf,
    cubin: PathBuf,
    kernels: Vec<Usage>,
}

impl Build {
    /// Compiles and packs, with what is between in `folder`.
    pub(crate) fn run(
        toolkit: &Toolkit,
        sources: &Sources,
        folder: &Path,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder)?;
        let parts = parts(toolkit, sources, folder)?;
        let image = pack(toolkit, folder, &parts)?;
        let mut sizes = Vec::new();
        for part in &parts {
            let name = format!("sm_{}", part.architecture);
            sizes.push((name, std::fs::metadata(&part.cubin)?.len()));
            if part.architecture == PTX {
                sizes.push((format!("compute_{PTX}"), std::fs::metadata(&part.ptx)?.len()));
            }
        }
        let kernels = parts.into_iter().flat_map(|part| part.kernels).collect();
        Ok(Self { image, parts: sizes, kernels })
    }
}

/// Compiles all architectures, each on a thread of its own; the first failure counts.
fn parts(toolkit: &Toolkit, sources: &Sources, folder: &Path) -> Result<Vec<Part>, Failure> {
    std::thread::scope(|scope| {
        let one = |architecture| {
            let work = move || part(toolkit, sources, folder, architecture);
            scope.spawn(move || work().map_err(|failure| failure.to_string()))
        };
        let running: Vec<_> = ARCHITECTURES.into_iter().map(one).collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, Result<Part, String>>| {
            part.join().unwrap_or_else(|_| Err("a compiling thread panicked".to_owned()))
        };
        let parts: Vec<_> = running.into_iter().map(join).collect();
        parts.into_iter().map(|part| part.map_err(Failure::from)).collect()
    })
}

/// Compiles for one architecture.
fn part(
    toolkit: &Toolkit,
    sources: &Sources,
    folder: &Path,
    architecture: u32,
) -> Result<Part, Failure> {
    let ptx = folder.join(format!("emb.compute_{architecture}.ptx"));
    let cubin = folder.join(format!("emb.sm_{architecture}.cubin"));
    let mut nvcc = toolkit.command("nvcc");
    nvcc.current_dir(sources.root()).args(NVCC_FLAGS).arg(format!("-arch=compute_{architecture}"));
    nvcc.args(sources.includes().map(|path| format!("-I{}", path.display())));
    nvcc.arg(sources.main()).arg("-o").arg(&ptx);
    let output = succeed(&mut nvcc, "nvcc needs a host compiler too: install g++")?;
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let mut ptxas = toolkit.command("ptxas");
    ptxas.args(PTXAS_FLAGS).arg(format!("-arch=sm_{architecture}"));
    let output = ptxas.arg(&ptx).arg("-o").arg(&cubin).output()?;
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let kernels = ptxas::parse(&said);
    if !output.status.success() {
        return Err(refused(architecture, &said, &kernels).into());
    }
    Ok(Part { architecture, ptx, cubin, kernels })
}

/// Why `ptxas` refused an architecture: its errors, and the kernels that spill.
fn refused(architecture: u32, said: &str, kernels: &[Usage]) -> String {
    let mut lines = vec![format!("ptxas refused sm_{architecture}:")];
    let errors = said.lines().filter(|line| line.contains("ptxas") && !line.contains("ptxas info"));
    lines.extend(errors.map(str::to_owned));
    for usage in kernels.iter().filter(|usage| usage.spill_bytes() > 0) {
        let Usage { kernel, registers, .. } = usage;
        lines.push(format!(
            "{kernel} spills {} bytes on sm_{architecture} at {registers} registers: unroll less, \
            or allow more registers by a smaller block in __launch_bounds__",
            usage.spill_bytes()
        ));
    }
    lines.join("\n  ")
}

/// Packs the parts in the order of architectures.
fn pack(toolkit: &Toolkit, folder: &Path, parts: &[Part]) -> Result<Vec<u8>, Failure> {
    let packed = folder.join("packed.fatbin");
    let mut command = toolkit.command("fatbinary");
    command.current_dir(folder).args(FATBINARY_FLAGS);
    command.arg(format!("--create={}", packed.display()));
    for part in parts {
        let sm = part.architecture;
        command.arg(format!("--image3=kind=elf,sm={sm},file=emb.sm_{sm}.cubin"));
    }
    command.arg(format!("--image3=kind=ptx,sm={PTX},file=emb.compute_{PTX}.ptx"));
    succeed(&mut command, "the parts are in the folder above")?;
    let image = std::fs::read(&packed)?;
    std::fs::remove_file(&packed)?;
    Ok(image)
}

fn succeed(command: &mut Command, remedy: &str) -> Result<Output, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{said}{command:?}: {}: {remedy}", output.status).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spill_is_told_with_its_kernel_and_architecture() {
        let said = "ptxas info    : 0 bytes gmem\nptxas error   : Registers are spilled\n";
        let spilling = Usage {
            kernel: "emb_pool".to_owned(),
            registers: 48,
            spill_store_bytes: 12,
            spill_load_bytes: 20,
            ..Usage::default()
        };
        let fine = Usage { kernel: "emb_fill".to_owned(), ..Usage::default() };
        let text = refused(90, said, &[spilling, fine]);
        assert!(text.contains("ptxas error   : Registers are spilled"), "{text}");
        assert!(text.contains("emb_pool spills 32 bytes on sm_90 at 48 registers"), "{text}");
        assert!(!text.contains("emb_fill") && !text.contains("gmem"), "{text}");
    }
}
