//! How fast rows become bytes and come back, in bytes of `f32` a second, on one thread, and which
//! part of a copy of the same rows that is. `--json` prints one object; `--quick` measures for a
//! shorter time.

use emb_comm::Wire;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Values of a message: 1 MiB, as the sums of a thousand bags of a few tables.
const VALUES: usize = 1 << 18;

/// Columns of a row.
const DIMS: [usize; 3] = [16, 64, 128];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    let seconds = if flag("--quick") { 0.02 } else { 0.2 };
    let values: Vec<f32> = (0..VALUES).map(|k| (k as f32 * 0.37).sin().powi(3)).collect();
    let copy = copied(&values, seconds);
    let mut text = String::new();
    if flag("--json") {
        write!(text, "{{\"bench\":\"codec\",\"copy_gb_per_second\":{copy:.2}")?;
        for wire in Wire::ALL {
            for dim in DIMS {
                let Figures { encode, decode } = measure(wire, &values, dim, seconds)?;
                write!(text, ",\"{wire}_{dim}\":{{\"encode_gb_per_second\":{encode:.2},")?;
                write!(text, "\"decode_gb_per_second\":{decode:.2}}}")?;
            }
        }
        text.push_str("}\n");
    } else {
        writeln!(text, "copy: {copy:.1} GB/s")?;
        text.push_str("format    dim  encode GB/s  of copy  decode GB/s  of copy  both GB/s\n");
        for wire in Wire::ALL {
            for dim in DIMS {
                let Figures { encode, decode } = measure(wire, &values, dim, seconds)?;
                let both = 1.0 / (1.0 / encode + 1.0 / decode);
                let part = |figure: f64| 100.0 * figure / copy;
                writeln!(
                    text,
                    "{wire:<8}  {dim:>3}  {encode:>11.1}  {:>5.0} %  {decode:>11.1}  {:>5.0} %  \
                     {both:>9.1}",
                    part(encode),
                    part(decode)
                )?;
            }
        }
    }
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// GB of `f32` a second, of the fastest round.
struct Figures {
    encode: f64,
    decode: f64,
}

fn copied(values: &[f32], seconds: f64) -> f64 {
    let mut out = vec![0.0; values.len()];
    let (mut best, begin) = (f64::MAX, Instant::now());
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        std::hint::black_box(&mut out[..]).copy_from_slice(std::hint::black_box(values));
        best = best.min(start.elapsed().as_secs_f64());
    }
    assert!(out == values, "values were not copied");
    size_of_val(values) as f64 / best / 1e9
}

fn measure(wire: Wire, values: &[f32], dim: usize, seconds: f64) -> emb_comm::Result<Figures> {
    let mut bytes = vec![0; wire.bytes(values.len() / dim, dim)?];
    let mut out = vec![0.0; values.len()];
    let (mut encode, mut decode, begin) = (f64::MAX, f64::MAX, Instant::now());
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        wire.encode(values, dim, &mut bytes)?;
        encode = encode.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        wire.decode(&bytes, dim, &mut out)?;
        decode = decode.min(start.elapsed().as_secs_f64());
    }
    let bound = wire.max_error(&[-1.0, 1.0]);
    let near = values.iter().zip(&out).all(|(a, b)| f64::from((a - b).abs()) <= bound);
    assert!(near, "{wire}: values came back as others");
    let size = size_of_val(values) as f64 / 1e9;
    Ok(Figures { encode: size / encode, decode: size / decode })
}
