//! What a build made, for people and for machines.

use super::compile::{ARCHITECTURES, Build, FATBINARY_FLAGS, NVCC_FLAGS, PTXAS_FLAGS};
use super::ptxas::Usage;
use super::toolkit::Toolkit;
use crate::columns::{Align::Left, Align::Right, lines};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What the manifest beside the fat binary says.
pub(crate) fn manifest(toolkit: &Toolkit, build: &Build) -> Value {
    let parts: Vec<Value> =
        build.parts.iter().map(|(name, bytes)| json!({"name": name, "bytes": bytes})).collect();
    let architectures: Vec<String> = ARCHITECTURES.iter().map(|a| format!("sm_{a}")).collect();
    json!({
        "image": "emb.fatbin",
        "bytes": build.image.len(),
        "sha256": sha256(&build.image),
        "compiler": toolkit.version,
        "flags": {"nvcc": NVCC_FLAGS, "ptxas": PTXAS_FLAGS, "fatbinary": FATBINARY_FLAGS},
        "architectures": architectures,
        "parts": parts,
        "kernels": build.kernels,
    })
}

fn sha256(bytes: &[u8]) -> String {
    let hex: Vec<String> = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.concat()
}

/// A line a kernel, a column an architecture, then the sizes of the parts.
pub(crate) fn table(build: &Build, path: &str) -> String {
    let mut by_kernel: BTreeMap<&str, Vec<&Usage>> = BTreeMap::new();
    for usage in &build.kernels {
        by_kernel.entry(&usage.kernel).or_default().push(usage);
    }
    let architectures = ARCHITECTURES.map(|a| format!("sm_{a}"));
    let mut rows = vec![vec!["registers".to_owned()]];
    rows[0].extend(architectures.iter().cloned());
    rows[0].extend(["shared bytes".to_owned(), "spilled bytes".to_owned()]);
    for (kernel, usages) in by_kernel {
        let mut row = vec![kernel.to_owned()];
        for architecture in &architectures {
            let of = usages.iter().find(|usage| usage.architecture == *architecture);
            row.push(of.map_or_else(|| "-".to_owned(), |usage| usage.registers.to_string()));
        }
        let most = |figure: fn(&Usage) -> u32| usages.iter().map(|usage| figure(usage)).max();
        row.push(most(|usage| usage.shared_bytes).unwrap_or(0).to_string());
        row.push(most(Usage::spill_bytes).unwrap_or(0).to_string());
        rows.push(row);
    }
    let kernels = lines(&[Left, Right, Right, Right, Right, Right], &rows);
    let mut rows = vec![vec!["part".to_owned(), "bytes".to_owned()]];
    rows.extend(build.parts.iter().map(|(name, bytes)| vec![name.clone(), bytes.to_string()]));
    let digest = format!("{path}, sha256 {}", sha256(&build.image));
    rows.push(vec!["packed".to_owned(), build.image.len().to_string(), digest]);
    format!("{kernels}\n{}", lines(&[Left, Right, Left], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_a_line_with_a_column_for_every_architecture() {
        let usage = |kernel: &str, architecture: &str, registers| Usage {
            kernel: kernel.to_owned(),
            architecture: architecture.to_owned(),
            registers,
            shared_bytes: 128,
            ..Usage::default()
        };
        let build = Build {
            image: vec![0; 7],
            parts: vec![("sm_80".to_owned(), 100)],
            kernels: vec![
                usage("emb_b", "sm_80", 1),
                usage("emb_a", "sm_80", 40),
                usage("emb_a", "sm_90", 48),
            ],
        };
        let text = table(&build, "x.fatbin");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "registers  sm_80  sm_90  sm_100  shared bytes  spilled bytes");
        assert_eq!(lines[1], "emb_a         40     48       -           128              0");
        assert_eq!(lines[2], "emb_b          1      -       -           128              0");
        assert_eq!(lines[5], "sm_80     100");
        assert!(lines[6].starts_with("packed      7  x.fatbin, sha256 "), "{}", lines[6]);
    }

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), digest);
    }
}
