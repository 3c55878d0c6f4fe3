//! Memory of CUDA devices as a [`Space`](crate::Space), and slices exchanged through it.

#[cfg(feature = "conformance")]
mod memory;
mod reduce;
mod space;
mod staged;

pub use space::DeviceSpace;
pub use staged::Staged;

impl From<emb_cuda::Error> for crate::Error {
    fn from(error: emb_cuda::Error) -> Self {
        Self::Space(error.to_string())
    }
}
