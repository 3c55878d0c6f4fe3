//! What several test files share: golden vectors and real data, skipped with a reason when absent.

use std::path::PathBuf;

/// A golden safetensors file in memory.
#[derive(Debug)]
pub(crate) struct Golden {
    bytes: Vec<u8>,
}

impl Golden {
    /// Reads `<EMB_VECTORS>/<name>.safetensors`; prints why and returns `None` when absent.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let file = folder("EMB_VECTORS", "vectors").join(format!("{name}.safetensors"));
        match std::fs::read(&file) {
            Ok(bytes) => Some(Self { bytes }),
            Err(error) => {
                eprintln!("skipped: {}: {error} (set EMB_VECTORS)", file.display());
                None
            }
        }
    }

    fn tensors(&self) -> safetensors::SafeTensors<'_> {
        safetensors::SafeTensors::deserialize(&self.bytes).expect("a safetensors file")
    }

    /// One value of the file's metadata.
    pub(crate) fn meta(&self, key: &str) -> String {
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&self.bytes).expect("a header");
        let about = metadata.metadata().as_ref().expect("metadata");
        about.get(key).unwrap_or_else(|| panic!("metadata has no {key:?}")).clone()
    }

    /// Names of all tensors.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tensors().names().into_iter().map(ToOwned::to_owned).collect()
    }

    /// Shape of a tensor.
    pub(crate) fn shape(&self, name: &str) -> Vec<usize> {
        self.tensors().tensor(name).unwrap_or_else(|_| panic!("no tensor {name}")).shape().to_vec()
    }

    /// An `f32` tensor.
    pub(crate) fn f32(&self, name: &str) -> Vec<f32> {
        let tensors = self.tensors();
        let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("no tensor {name}"));
        assert_eq!(tensor.dtype(), safetensors::Dtype::F32, "{name}");
        tensor.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    }

    /// An `i64` tensor.
    pub(crate) fn i64(&self, name: &str) -> Vec<i64> {
        let tensors = self.tensors();
        let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("no tensor {name}"));
        assert_eq!(tensor.dtype(), safetensors::Dtype::I64, "{name}");
        tensor.data().as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect()
    }
}

/// The folder that an environment variable names, else `shared/<default>` beside the repository.
pub(crate) fn folder(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(default),
        PathBuf::from,
    )
}
