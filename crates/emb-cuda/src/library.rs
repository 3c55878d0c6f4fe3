//! Libraries looked for before they are called: [`open_library`].
//!
//! The bindings panic where a library is missing. So nothing of them is called before the library
//! was loaded once by one of the names that they try.

use crate::{Error, Result};
use std::sync::OnceLock;

/// A library that is loaded, and stays so.
#[derive(Debug)]
pub struct Library {
    library: libloading::Library,
    name: String,
}

impl Library {
    /// The name or path that it was found by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A function of the library.
    ///
    /// # Errors
    /// A name that it does not have.
    ///
    /// # Safety
    /// `F` is the type of the function of this name.
    pub unsafe fn get<F: Copy>(&self, symbol: &'static str) -> Result<F> {
        // SAFETY: the caller's promise.
        let found = unsafe { self.library.get::<F>(symbol.as_bytes()) };
        found.map(|found| *found).map_err(|error| Error::Call {
            call: symbol,
            name: "not found".to_owned(),
            text: format!("{} is another version: {error}", self.name),
        })
    }
}

/// Loads the first of `names` that there is. `what` names the library in errors.
///
/// # Errors
/// [`Error::NoLibrary`], with all that was tried.
pub fn open_library(what: &'static str, names: &[String]) -> Result<Library> {
    for name in names {
        // SAFETY: initialisers of the libraries looked for have no preconditions.
        if let Ok(library) = unsafe { libloading::Library::new(name) } {
            return Ok(Library { library, name: name.clone() });
        }
    }
    let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let path = if path.is_empty() {
        "of the system alone: LD_LIBRARY_PATH is empty".to_owned()
    } else {
        path
    };
    Err(Error::NoLibrary { library: what, tried: names.join(", "), path })
}

/// Makes sure that the driver can be called.
pub(crate) fn driver() -> Result<()> {
    static DRIVER: OnceLock<Result<()>> = OnceLock::new();
    DRIVER
        .get_or_init(|| open_library("the CUDA driver (libcuda)", &candidates("cuda")).map(drop))
        .clone()
}

/// Makes sure that the run-time compiler can be called.
pub(crate) fn compiler() -> Result<()> {
    static COMPILER: OnceLock<Result<()>> = OnceLock::new();
    let open = || open_library("the run-time compiler (libnvrtc)", &candidates("nvrtc")).map(drop);
    COMPILER.get_or_init(open).clone()
}

/// The names that the bindings try for a library, those of this system's kind.
fn candidates(library: &str) -> Vec<String> {
    let mut names = cudarc::get_lib_name_candidates(library);
    // Several of its patterns give one name.
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}
