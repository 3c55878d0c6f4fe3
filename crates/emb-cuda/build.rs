//! Builds the kernels' image into the crate, where there is one when it is compiled.
//!
//! `EMB_FATBIN` names it; without, a checkout of the project takes what `cargo xtask kernels` left
//! in `target/kernels`. With neither the image is looked for at run time alone.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EMB_FATBIN");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return Ok(());
    }
    let constant = match image()? {
        Some(image) => {
            println!("cargo::rerun-if-changed={}", image.display());
            format!("Some(include_bytes!(r\"{}\"))", fs::canonicalize(image)?.display())
        }
        None => "None".to_owned(),
    };
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let code = format!("/// The image built in.\nconst BUILT_IN: Option<&[u8]> = {constant};\n");
    fs::write(Path::new(&out).join("image.rs"), code)
}

/// The file to build in.
fn image() -> io::Result<Option<PathBuf>> {
    if let Some(file) = env::var_os("EMB_FATBIN") {
        return Ok(Some(PathBuf::from(file)));
    }
    let Some(folder) = folder() else { return Ok(None) };
    // A folder that is there can be watched; one that is not would be new at every build.
    fs::create_dir_all(&folder)?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let image = folder.join("emb.fatbin");
    Ok(image.exists().then_some(image))
}

/// Where the project's own checkout leaves the image; nowhere in a published crate.
fn folder() -> Option<PathBuf> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).parent()?.parent()?.to_owned();
    root.join("xtask/src/kernels").is_dir().then(|| root.join("target/kernels"))
}
