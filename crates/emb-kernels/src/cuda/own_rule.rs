//! A rule of a user's own on a GPU: [`CudaRule`], compiled while the program runs.

use super::rules::{CudaRules, Kind};
use super::{Cuda, CudaTables, update};
use crate::rules::{Own, Rules};
use crate::{Dtype, Error, FeatureMap, Gradients, JaggedView, Result};
use bytemuck::Pod;
use emb_cuda::{Device, Header, Kernel, Module, compile};
use emb_optim::{RULES_CUH, RowRule, RuleVisitor};
use std::marker::PhantomData;

/// A rule that is written twice: in Rust, and as a CUDA structure that gives the same bits.
///
/// What the structure must have is at the head of [`emb_optim::RULES_CUH`]. Its fields are those
/// of [`Parameters`](Self::Parameters), in their order. The crate's own kernels are compiled around
/// it, so a rule needs no kernel, and sums, rounding and tables work as with the built-in rules.
pub trait CudaRule: RowRule {
    /// The fields of the structure, at most 72 bytes: the options of one step.
    type Parameters: Pod;

    /// Name of the structure, an identifier; errors and kernels are named by it.
    const NAME: &'static str;

    /// CUDA C++ that defines the structure.
    const SOURCE: &'static str;

    /// The options of this rule.
    fn parameters(&self) -> Self::Parameters;
}

/// The kernels of a [`CudaRule`] in one device.
#[derive(Clone, Debug)]
pub struct CompiledRule<R> {
    kernels: Kernels,
    device: Device,
    /// Keeps the kernels.
    _module: Module,
    rule: PhantomData<fn() -> R>,
}

/// The kernel of each type of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernels {
    f32: Kernel,
    f16: Kernel,
    bf16: Kernel,
}

impl Kernels {
    pub(super) fn of(self, dtype: Dtype) -> Kernel {
        match dtype {
            Dtype::F32 => self.f32,
            Dtype::F16 => self.f16,
            Dtype::Bf16 => self.bf16,
        }
    }
}

/// A header of `cuda/` by its name.
macro_rules! header {
    ($name:literal) => {
        Header { name: $name, text: include_str!(concat!("../../cuda/", $name)) }
    };
}

/// All that an update includes.
const HEADERS: [Header<'static>; 12] = [
    header!("rtc.cuh"),
    header!("portable.cuh"),
    header!("tables.cuh"),
    header!("vector.cuh"),
    header!("keys.cuh"),
    header!("scan.cuh"),
    header!("runs.cuh"),
    header!("contributions.cuh"),
    header!("philox.cuh"),
    header!("row_step.cuh"),
    header!("update.cuh"),
    Header { name: "rules.cuh", text: RULES_CUH },
];

/// Whether a structure, and with it a file and kernels, can have this name.
const fn is_identifier(name: &str) -> bool {
    let (bytes, mut at) = (name.as_bytes(), 0);
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && !bytes[0].is_ascii_digit()
}

impl Cuda {
    /// Compiles the kernels of a rule for this backend's device: a second or two, once a program.
    ///
    /// # Errors
    /// [`Error::Device`]: the run-time compiler is missing; the source does not compile, or its
    /// structure has another size than [`CudaRule::Parameters`]. Then the compiler's words follow,
    /// in which lines of the source are those of `NAME.cuh`.
    pub fn compile_rule<R: CudaRule>(&self) -> Result<CompiledRule<R>> {
        const { assert!(is_identifier(R::NAME), "a rule's name is an identifier") };
        const { assert!(size_of::<R::Parameters>() <= 72, "a rule has at most 72 bytes") };
        let (name, device) = (R::NAME, self.stream.device());
        // A structure without fields has a byte in C++.
        let bytes =
            const { if size_of::<R::Parameters>() == 0 { 1 } else { size_of::<R::Parameters>() } };
        let source = format!(
            "#include \"update.cuh\"\n\
             #include \"{name}.cuh\"\n\
             static_assert(sizeof({name}) == {bytes}, \"{name}: parameters of {bytes} bytes in Rust\");\n\
             EMB_RULE({name}, {name})\n"
        );
        let own = format!("{name}.cuh");
        let mut headers = HEADERS.to_vec();
        headers.push(Header { name: &own, text: R::SOURCE });
        let (major, minor) = device.compute_capability()?;
        let architecture = format!("--gpu-architecture=sm_{major}{minor}");
        let options = [&architecture, "--std=c++17", "--fmad=false"];
        let image = compile(&format!("{name}.cu"), &source, &headers, &options);
        let image = image.map_err(|error| match error {
            emb_cuda::Error::Compile { log, .. } => {
                Error::Device(format!("rule {name} does not compile:\n{log}"))
            }
            other => other.into(),
        })?;
        let module = device.load(&image)?;
        let kernel = |dtype| module.kernel(&format!("emb_update_{name}_{dtype}"));
        let kernels = Kernels { f32: kernel("f32")?, f16: kernel("f16")?, bf16: kernel("bf16")? };
        Ok(CompiledRule { kernels, device: device.clone(), _module: module, rule: PhantomData })
    }

    /// As [`Backend::scatter_update`](crate::Backend::scatter_update) with a rule of one's own: one
    /// a table, with the state that the table's optimizer keeps. It has the bits of
    /// [`Cpu::scatter_update_with`](crate::Cpu::scatter_update_with) if its two forms compute the
    /// same.
    ///
    /// # Errors
    /// As there. A rule with other state than the table's is refused by the table's name; a rule
    /// that was compiled for another device is refused.
    pub fn scatter_update_with<R: CudaRule>(
        &mut self,
        compiled: &CompiledRule<R>,
        tables: &mut CudaTables,
        map: &FeatureMap,
        batch: JaggedView<'_, Self>,
        gradients: &Gradients<'_, '_, Self>,
        rules: &[R],
        step: u64,
    ) -> Result<()> {
        let device = self.stream.device();
        if compiled.device != *device {
            let (name, there, here) = (R::NAME, compiled.device.ordinal(), device.ordinal());
            let what = format!("rule {name} was compiled for device {there}, this is {here}");
            return Err(Error::Device(what));
        }
        let rules = Compiled { rules: Own(rules), kernels: compiled.kernels };
        update::scatter_update(self, tables, map, batch, gradients, &rules, step)
    }
}

/// Rules with their kernels.
struct Compiled<'a, R> {
    rules: Own<'a, R>,
    kernels: Kernels,
}

impl<R: CudaRule> Rules for Compiled<'_, R> {
    fn count(&self) -> usize {
        self.rules.count()
    }

    fn visit<V: RuleVisitor>(&self, table: usize, visitor: V) -> V::Output {
        self.rules.visit(table, visitor)
    }
}

impl<R: CudaRule> CudaRules for Compiled<'_, R> {
    fn kind(&self, _table: usize) -> Kind {
        Kind::Own(self.kernels)
    }

    fn bytes(&self, table: usize) -> [u64; 9] {
        let mut bytes = [0; 9];
        let parameters = self.rules.0[table].parameters();
        let from = bytemuck::bytes_of(&parameters);
        bytemuck::cast_slice_mut::<u64, u8>(&mut bytes)[..from.len()].copy_from_slice(from);
        bytes
    }
}
