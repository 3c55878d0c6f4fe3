//! Sends one row in every wire format and prints what arrives.

use emb_comm::Wire;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let row: Vec<f32> = (0..8).map(|column| (column as f32 * 0.7).sin() / 3.0).collect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:>12}  {:>5}  {:>9}  row", "format", "bytes", "max error")?;
    for wire in Wire::ALL {
        let mut bytes = vec![0; wire.bytes(1, row.len())?];
        wire.encode(&row, row.len(), &mut bytes)?;
        let mut back = vec![0.0; row.len()];
        wire.decode(&bytes, row.len(), &mut back)?;
        let error = row.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        writeln!(out, "{wire:>12}  {:>5}  {error:>9.1e}  {back:.4?}", bytes.len())?;
    }
    Ok(())
}
