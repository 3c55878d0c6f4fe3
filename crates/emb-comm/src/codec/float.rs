//! 32-bit and 16-bit floats on the wire.

use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

/// Values converted at a time: conversions of a whole block use the machine's instructions, and
/// the block stays on the stack.
const BLOCK: usize = 128;

pub(super) fn encode_f32(values: &[f32], out: &mut [u8]) {
    for (value, bytes) in values.iter().zip(out.as_chunks_mut::<4>().0) {
        *bytes = value.to_le_bytes();
    }
}

pub(super) fn decode_f32(bytes: &[u8], out: &mut [f32]) {
    for (bytes, value) in bytes.as_chunks::<4>().0.iter().zip(out) {
        *value = f32::from_le_bytes(*bytes);
    }
}

macro_rules! sixteen_bits {
    ($type:ident, $encode:ident, $decode:ident) => {
        pub(super) fn $encode(values: &[f32], out: &mut [u8]) {
            let mut block = [$type::ZERO; BLOCK];
            for (values, out) in values.chunks(BLOCK).zip(out.chunks_mut(2 * BLOCK)) {
                let block = &mut block[..values.len()];
                block.convert_from_f32_slice(values);
                for (half, bytes) in block.iter().zip(out.as_chunks_mut::<2>().0) {
                    *bytes = half.to_le_bytes();
                }
            }
        }

        pub(super) fn $decode(bytes: &[u8], out: &mut [f32]) {
            let mut block = [$type::ZERO; BLOCK];
            for (bytes, out) in bytes.chunks(2 * BLOCK).zip(out.chunks_mut(BLOCK)) {
                let block = &mut block[..out.len()];
                for (bytes, half) in bytes.as_chunks::<2>().0.iter().zip(block.iter_mut()) {
                    *half = $type::from_le_bytes(*bytes);
                }
                block.convert_to_f32_slice(out);
            }
        }
    };
}

sixteen_bits!(f16, encode_f16, decode_f16);
sixteen_bits!(bf16, encode_bf16, decode_bf16);
