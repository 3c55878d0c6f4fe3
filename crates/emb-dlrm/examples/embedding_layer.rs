//! The embedding layer alone, inside some other framework's training loop: ids in, pooled rows
//! out, gradients back in. Run with `cargo run --release --example embedding_layer -p emb-dlrm`.

use emb_dlrm::{DeviceBatch, EmbeddingBags, Result};
use emb_kernels::{Cpu, CpuOptions, Feature, Jagged, Mat, Pooling, TableSpec};
use emb_optim::{Optimizer, RuleKind};
use std::io::Write;

fn main() -> Result<()> {
    let mut cpu = Cpu::new(CpuOptions { threads: 2 })?;
    let rule = Optimizer::new(RuleKind::RowWiseAdaGrad);
    let tables = vec![
        TableSpec::new("user", 1_000_000, 32, rule),
        TableSpec::new("item", 50_000, 16, Optimizer::new(RuleKind::Adam)),
    ];
    let feature = |name: &str, table, pooling| Feature { name: name.into(), table, pooling };
    let features = vec![
        feature("user", 0, Pooling::Sum),
        feature("viewed", 1, Pooling::Mean),
        feature("bought", 1, Pooling::Sum),
    ];
    let mut bags = EmbeddingBags::new(&mut cpu, &tables, features, vec![0.05, 0.001], 0, 1)?;

    // Two samples: lengths are feature-major, bags may be empty.
    let names = ["user", "viewed", "bought"];
    let ids =
        Jagged::from_lengths(&names, 2, &[1, 1, 3, 0, 1, 2], vec![7, 9, 1, 2, 3, 4, 5, 5], None)?;
    let mut batch = DeviceBatch::new(&mut cpu, 0)?;
    batch.upload(&mut cpu, &[], &[], ids.as_ref())?;

    let width = bags.map().width();
    let mut pooled = vec![0.0; 2 * width];
    let mut target_loss = Vec::new();
    for step in 1..=50 {
        bags.forward(&mut cpu, batch.sparse(), Mat::new(&mut pooled[..], 2, width))?;
        // Any loss will do: pull every pooled value towards 1.
        let gradient: Vec<f32> = pooled.iter().map(|value| value - 1.0).collect();
        target_loss.push(gradient.iter().map(|g| 0.5 * g * g).sum::<f32>());
        bags.backward(&mut cpu, batch.sparse(), Mat::new(&gradient[..], 2, width), 1.0, step)?;
    }
    let (first, last) = (target_loss[0], target_loss[target_loss.len() - 1]);
    drop(writeln!(std::io::stdout(), "loss {first:.3} -> {last:.3} in 50 steps"));
    Ok(())
}
