//! The NCCL library: where it is looked for, and its functions.
//!
//! It is loaded by this module alone, when it is first asked for. The names that packages give it
//! differ (`libnccl.so.2` of the distributions and of the wheels, `libnccl.so` of developer
//! packages), so all are tried, and an error lists them. Result codes are taken as numbers: a
//! newer library may return ones that no list of today has.

use crate::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A communicator of the library.
pub(super) type Handle = *mut c_void;

/// A stream of the driver.
pub(super) type RawStream = *mut c_void;

/// `ncclUniqueId`: passed by value, as the library has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawId(pub(super) [u8; 128]);

/// `ncclConfig_t` of version 2.18. The library fills in what newer versions have added, told from
/// `size`.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

impl Config {
    /// No call blocks: each is watched until it is through, so that it can be given up.
    pub(super) fn watched() -> Self {
        /// `NCCL_CONFIG_UNDEF_INT`: the library chooses.
        const UNDEFINED: c_int = c_int::MIN;
        Self {
            size: size_of::<Self>(),
            // `NCCL_API_MAGIC`.
            magic: 0xcafe_beef,
            version: OLDEST as u32,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: std::ptr::null(),
            split_share: UNDEFINED,
        }
    }
}

/// `ncclSuccess`.
pub(super) const SUCCESS: c_int = 0;
/// `ncclInProgress`: queued, to be asked about again.
pub(super) const IN_PROGRESS: c_int = 7;
/// `NCCL_SPLIT_NOCOLOR`: a rank that joins no part.
pub(super) const NO_COLOR: c_int = -1;

/// `NCCL_VERSION(2, 18, 1)`, the first with `ncclCommSplit`.
const OLDEST: c_int = 21801;

/// The functions used, by their names in the library, and how the library was found.
macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        pub(super) struct Library {
            _file: emb_cuda::Library,
            pub(super) name: String,
            pub(super) version: c_int,
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            fn load() -> Result<Self> {
                let file = emb_cuda::open_library("NCCL (libnccl)", &names())
                    .map_err(|error| Error::Space(format!("{error}; EMB_NCCL can name it")))?;
                $(
                    // SAFETY: the type is that of the function in `nccl.h`, the same since the
                    // version that introduced it; enumerations are passed as `int`.
                    let $field = unsafe { file.get($symbol) }?;
                )*
                Ok(Self { name: file.name().to_owned(), version: 0, $($field,)* _file: file })
            }
        }
    };
}

functions! {
    get_version = "ncclGetVersion": fn(*mut c_int) -> c_int;
    get_unique_id = "ncclGetUniqueId": fn(*mut RawId) -> c_int;
    error_string = "ncclGetErrorString": fn(c_int) -> *const c_char;
    last_error = "ncclGetLastError": fn(Handle) -> *const c_char;
    init = "ncclCommInitRankConfig": fn(*mut Handle, c_int, RawId, c_int, *mut Config) -> c_int;
    split = "ncclCommSplit": fn(Handle, c_int, c_int, *mut Handle, *mut Config) -> c_int;
    async_error = "ncclCommGetAsyncError": fn(Handle, *mut c_int) -> c_int;
    finalize = "ncclCommFinalize": fn(Handle) -> c_int;
    destroy = "ncclCommDestroy": fn(Handle) -> c_int;
    abort = "ncclCommAbort": fn(Handle) -> c_int;
    group_start = "ncclGroupStart": fn() -> c_int;
    group_end = "ncclGroupEnd": fn() -> c_int;
    send = "ncclSend": fn(*const c_void, usize, c_int, c_int, Handle, RawStream) -> c_int;
    recv = "ncclRecv": fn(*mut c_void, usize, c_int, c_int, Handle, RawStream) -> c_int;
    all_gather = "ncclAllGather":
        fn(*const c_void, *mut c_void, usize, c_int, Handle, RawStream) -> c_int;
    all_reduce = "ncclAllReduce":
        fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, RawStream) -> c_int;
    reduce_scatter = "ncclReduceScatter":
        fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, RawStream) -> c_int;
    broadcast = "ncclBroadcast":
        fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, RawStream) -> c_int;
}

/// The library, loaded at the first call.
pub(super) fn library() -> Result<&'static Library> {
    static LIBRARY: OnceLock<Result<Library>> = OnceLock::new();
    LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Library> {
    let mut library = Library::load()?;
    // SAFETY: a place for a number.
    unsafe { (library.get_version)(&raw mut library.version) };
    if library.version < OLDEST {
        return Err(Error::Space(format!(
            "{} is NCCL {}, older than 2.18.1: it cannot divide communicators",
            library.name,
            library.version_text()
        )));
    }
    Ok(library)
}

impl Library {
    /// "2.28.9".
    pub(super) fn version_text(&self) -> String {
        let version = self.version;
        format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
    }

    /// What a code means, and what the library noted last.
    pub(super) fn explain(&self, code: c_int, handle: Handle) -> String {
        // SAFETY: any number is taken.
        let meaning = text(unsafe { (self.error_string)(code) });
        // SAFETY: a communicator that lives, or null.
        let noted = text(unsafe { (self.last_error)(handle) });
        match (meaning.is_empty(), noted.is_empty()) {
            (true, _) => format!("code {code}"),
            (false, true) => meaning,
            (false, false) => format!("{meaning}: {noted}"),
        }
    }
}

/// A string of the library.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the library's strings end in a zero and are read at once.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().trim().to_owned()
}

/// Names and paths tried, in order: the one that `EMB_NCCL` names; by the loader's search; where
/// the wheels and the toolkit put it.
fn names() -> Vec<String> {
    let mut names: Vec<String> = std::env::var("EMB_NCCL").into_iter().collect();
    names.extend(["libnccl.so.2", "libnccl.so"].map(str::to_owned));
    let mut folders = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(root) = std::env::var_os(variable).map(PathBuf::from) else { continue };
        let lib = root.join("lib");
        let pythons = std::fs::read_dir(&lib).into_iter().flatten().flatten();
        let pythons = pythons.map(|entry| entry.path().join("site-packages/nvidia/nccl/lib"));
        folders.extend(pythons.filter(|folder| folder.is_dir()));
        folders.push(lib);
    }
    folders.extend(["/usr/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64"].map(PathBuf::from));
    names.extend(folders.iter().map(|folder| folder.join("libnccl.so.2").display().to_string()));
    names
}
