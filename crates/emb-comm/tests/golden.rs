//! The wire formats against vectors of `PyTorch` and FBGEMM, bit for bit.

use emb_comm::Wire;
use safetensors::SafeTensors;
use std::path::PathBuf;

/// The bytes of a vector file, or `None` with a printed reason where there is none.
fn vectors(name: &str) -> Option<Vec<u8>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors");
    let folder = std::env::var_os("EMB_VECTORS").map_or(PathBuf::from(default), PathBuf::from);
    let path = folder.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("skipped: no golden vectors at {}: {error}", path.display());
            None
        }
    }
}

struct Tensor {
    columns: usize,
    bytes: Vec<u8>,
}

fn tensor(file: &[u8], name: &str) -> Tensor {
    let file = SafeTensors::deserialize(file).expect("a safetensors file");
    let view = file.tensor(name).expect("a tensor of this name");
    let &[_, columns] = view.shape() else { panic!("{name} is not a matrix") };
    Tensor { columns, bytes: view.data().to_vec() }
}

impl Tensor {
    fn floats(&self) -> Vec<f32> {
        self.bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn golden_wire_half() {
    let Some(file) = vectors("wire_half.safetensors") else { return };
    let x = tensor(&file, "x");
    for (wire, name) in [(Wire::F16, "fp16"), (Wire::Bf16, "bf16")] {
        let expected = tensor(&file, name);
        let mut bytes = vec![0; expected.bytes.len()];
        wire.encode(&x.floats(), x.columns, &mut bytes).expect("fits");
        assert_eq!(bytes, expected.bytes, "{name}");
    }
}

#[test]
fn golden_wire_int8_rowwise() {
    let Some(file) = vectors("wire_int8_rowwise.safetensors") else { return };
    let x = tensor(&file, "x");
    let fused = tensor(&file, "fused");
    let mut bytes = vec![0; fused.bytes.len()];
    Wire::Int8Rowwise.encode(&x.floats(), x.columns, &mut bytes).expect("finite rows");
    assert_eq!(bytes, fused.bytes);

    let expected = tensor(&file, "back").floats();
    let mut back = vec![0.0; expected.len()];
    Wire::Int8Rowwise.decode(&fused.bytes, x.columns, &mut back).expect("whole rows");
    assert_eq!(bits(&back), bits(&expected));
}
