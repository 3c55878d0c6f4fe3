//! The calls of the MPI library, each with its result.

use crate::{Error, Result};
use mpi::ffi;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::time::Duration;

/// A communicator. It lives until the library is finalized: a few a process, none is freed.
#[derive(Clone, Copy)]
pub(super) struct Comm(ffi::MPI_Comm);

// SAFETY: a handle of the library. "MPI_THREAD_MULTIPLE: Multiple threads may call MPI, with no
// restrictions" (MPI 3.1, 12.4.3); `initialize` refuses less.
unsafe impl Send for Comm {}

// SAFETY: as above.
unsafe impl Sync for Comm {}

/// A transfer in progress, or none once it has ended.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Request(ffi::MPI_Request);

// SAFETY: as for `Comm`; a request may be completed by another thread than began it.
unsafe impl Send for Request {}

// SAFETY: as above; what is shared is only compared.
unsafe impl Sync for Request {}

/// Where this process is: "rank 2 of 4, host a".
static PLACE: OnceLock<String> = OnceLock::new();

/// A code of the library as a result.
fn checked(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(failed(call, explain(code))) }
}

/// An error of a call.
pub(super) fn failed(call: &'static str, problem: String) -> Error {
    Error::Mpi { call, place: place(), problem }
}

/// The error of a process that has waited for the others this long.
pub(super) fn absent(call: &'static str, time: Duration) -> Error {
    Error::Absent { call, place: place(), time }
}

/// Where this process is, as far as it is known.
fn place() -> String {
    PLACE.get().cloned().unwrap_or_else(by_launcher)
}

/// Where this process will be, as launchers say it before the library does.
fn by_launcher() -> String {
    let known = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];
    let rank = known.iter().find_map(|name| std::env::var(name).ok());
    rank.map_or("a process that has no rank yet".to_owned(), |rank| format!("rank {rank}"))
}

fn explain(code: c_int) -> String {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: room for the longest text of the library and its end.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut len) };
    text_of(&text).unwrap_or_else(|| format!("code {code}"))
}

/// Text up to its end.
fn text_of(text: &[c_char]) -> Option<String> {
    let bytes: &[u8] = bytemuck::cast_slice(text);
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_string_lossy().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// What the library calls itself, in full. It may be asked before it is initialized.
pub(super) fn library() -> String {
    // SAFETY: a constant of the library.
    let room = unsafe { ffi::RSMPI_MAX_LIBRARY_VERSION_STRING };
    let (mut text, mut len) = (vec![0 as c_char; room as usize + 1], 0);
    // SAFETY: room for the longest text of the library and its end.
    unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &raw mut len) };
    text_of(&text).unwrap_or_else(|| "an MPI library without a name".to_owned())
}

/// Initializes the library, unless someone has, so that several threads may call it.
pub(super) fn initialize() -> Result<()> {
    let (mut is_initialized, mut level) = (0, 0);
    // SAFETY: a place for the answer.
    let code = unsafe { ffi::MPI_Initialized(&raw mut is_initialized) };
    checked("MPI_Initialized", code)?;
    // SAFETY: a constant of the library.
    let multiple = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
    if is_initialized == 0 {
        let (count, list) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: arguments may be null (MPI 2.0 on), a place for the level granted.
        let code = unsafe { ffi::MPI_Init_thread(count, list, multiple, &raw mut level) };
        checked("MPI_Init_thread", code)?;
    } else {
        // SAFETY: a place for the answer.
        let code = unsafe { ffi::MPI_Query_thread(&raw mut level) };
        checked("MPI_Query_thread", code)?;
    }
    let comm = Comm::all();
    let _ = PLACE.set(format!("rank {} of {}, host {}", comm.rank()?, comm.size()?, host()?));
    if level == multiple {
        return Ok(());
    }
    let problem = format!(
        "the library grants threads level {level} ({}) where {multiple} (MPI_THREAD_MULTIPLE) is \
         needed: use a build of it with threads",
        ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"]
            .get(level as usize)
            .unwrap_or(&"unknown")
    );
    Err(failed("MPI_Init_thread", problem))
}

/// Ends the use of the library by this process; returns once all processes have come to it.
pub(super) fn finalize() {
    let mut is_finalized = 0;
    // SAFETY: a place for the answer.
    unsafe { ffi::MPI_Finalized(&raw mut is_finalized) };
    if is_finalized == 0 {
        // SAFETY: initialized before, and not finalized yet.
        unsafe { ffi::MPI_Finalize() };
    }
}

/// Ends all processes of the job.
pub(super) fn abort(code: c_int) -> ! {
    let all = Comm::all().0;
    // SAFETY: the communicator of all.
    unsafe { ffi::MPI_Abort(all, code) };
    std::process::abort()
}

/// The name of this machine.
pub(super) fn host() -> Result<String> {
    // SAFETY: a constant of the library.
    let room = unsafe { ffi::RSMPI_MAX_PROCESSOR_NAME };
    let (mut name, mut len) = (vec![0 as c_char; room as usize + 1], 0);
    // SAFETY: room for the longest name and its end.
    let code = unsafe { ffi::MPI_Get_processor_name(name.as_mut_ptr(), &raw mut len) };
    checked("MPI_Get_processor_name", code)?;
    Ok(text_of(&name).unwrap_or_else(|| "unnamed".to_owned()))
}

impl Comm {
    /// All processes of the job.
    pub(super) fn all() -> Self {
        // SAFETY: a constant of the library.
        Self(unsafe { ffi::RSMPI_COMM_WORLD })
    }

    pub(super) fn rank(self) -> Result<usize> {
        let mut rank = 0;
        // SAFETY: a communicator that lives, a place for the answer.
        let code = unsafe { ffi::MPI_Comm_rank(self.0, &raw mut rank) };
        checked("MPI_Comm_rank", code)?;
        Ok(rank as usize)
    }

    pub(super) fn size(self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: a communicator that lives, a place for the answer.
        let code = unsafe { ffi::MPI_Comm_size(self.0, &raw mut size) };
        checked("MPI_Comm_size", code)?;
        Ok(size as usize)
    }

    /// Has errors returned instead of ending the process.
    pub(super) fn return_errors(self) -> Result<()> {
        // SAFETY: a constant of the library.
        let handler = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: a communicator that lives, a handler of the library.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(self.0, handler) };
        checked("MPI_Comm_set_errhandler", code)
    }

    /// The largest tag of a message.
    pub(super) fn largest_tag(self) -> Result<u64> {
        // 32767 is what every library grants (MPI 3.1, 8.1.2).
        let (mut value, mut found) = (std::ptr::null_mut::<c_int>(), 0);
        let (place, key) = ((&raw mut value).cast::<c_void>(), ffi::MPI_TAG_UB as c_int);
        // SAFETY: a communicator that lives, places for a pointer and a flag.
        let code = unsafe { ffi::MPI_Comm_get_attr(self.0, key, place, &raw mut found) };
        checked("MPI_Comm_get_attr", code)?;
        if found == 0 || value.is_null() {
            return Ok(32767);
        }
        // SAFETY: where the attribute is found, it is a pointer to an integer.
        Ok(unsafe { *value } as u64)
    }

    /// Begins to copy this communicator; the copy is there once the request has ended.
    pub(super) fn copy(self) -> Result<Copy> {
        // SAFETY: a constant of the library.
        let mut request = Request(unsafe { ffi::RSMPI_REQUEST_NULL });
        // SAFETY: a constant of the library.
        let place = Box::leak(Box::new(unsafe { ffi::RSMPI_COMM_NULL }));
        // SAFETY: a communicator that lives, a place that is never freed.
        let code = unsafe { ffi::MPI_Comm_idup(self.0, &raw mut *place, &raw mut request.0) };
        checked("MPI_Comm_idup", code)?;
        Ok(Copy { place, request })
    }

    /// Begins to send bytes.
    ///
    /// # Safety
    /// The bytes stay as they are until the request has ended.
    pub(super) unsafe fn send(self, bytes: &[u8], peer: usize, tag: c_int) -> Result<Request> {
        // SAFETY: a constant of the library.
        let mut request = Request(unsafe { ffi::RSMPI_REQUEST_NULL });
        // SAFETY: a constant of the library.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        let (from, count) = (bytes.as_ptr().cast::<c_void>(), length(bytes.len()));
        // SAFETY: a communicator that lives, borrowed memory, which the caller leaves alone.
        let code = unsafe {
            ffi::MPI_Isend(from, count, kind, peer as c_int, tag, self.0, &raw mut request.0)
        };
        checked("MPI_Isend", code)?;
        Ok(request)
    }

    /// Begins to receive bytes.
    ///
    /// # Safety
    /// Nobody reads or writes the memory until the request has ended.
    pub(super) unsafe fn recv(self, bytes: &mut [u8], peer: usize, tag: c_int) -> Result<Request> {
        // SAFETY: a constant of the library.
        let mut request = Request(unsafe { ffi::RSMPI_REQUEST_NULL });
        // SAFETY: a constant of the library.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        let (to, count) = (bytes.as_mut_ptr().cast::<c_void>(), length(bytes.len()));
        // SAFETY: a communicator that lives, borrowed memory, which the caller leaves alone.
        let code = unsafe {
            ffi::MPI_Irecv(to, count, kind, peer as c_int, tag, self.0, &raw mut request.0)
        };
        checked("MPI_Irecv", code)?;
        Ok(request)
    }

    /// Who has sent a message that nobody has received yet.
    pub(super) fn waiting(self) -> Result<Option<usize>> {
        // SAFETY: a constant of the library.
        let any = unsafe { ffi::RSMPI_ANY_SOURCE };
        // SAFETY: a constant of the library.
        let tag = unsafe { ffi::RSMPI_ANY_TAG };
        let (mut flag, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: a communicator that lives, places for a flag and a status.
        let code = unsafe { ffi::MPI_Iprobe(any, tag, self.0, &raw mut flag, status.as_mut_ptr()) };
        checked("MPI_Iprobe", code)?;
        // SAFETY: plain numbers, zeroed or written by the library.
        let status = unsafe { status.assume_init() };
        Ok((flag != 0).then_some(status.MPI_SOURCE as usize))
    }

    /// Receives a short message that is [`waiting`](Self::waiting).
    pub(super) fn take(self, words: &mut [u64], peer: usize) -> Result<()> {
        // SAFETY: a constant of the library.
        let kind = unsafe { ffi::RSMPI_UINT8_T };
        // SAFETY: a constant of the library.
        let tag = unsafe { ffi::RSMPI_ANY_TAG };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
        let (to, count) = (bytes.as_mut_ptr().cast::<c_void>(), length(bytes.len()));
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let place = status.as_mut_ptr();
        // SAFETY: a communicator that lives, borrowed memory that is not used any more afterwards.
        let code = unsafe { ffi::MPI_Recv(to, count, kind, peer as c_int, tag, self.0, place) };
        checked("MPI_Recv", code)
    }
}

/// A communicator that comes to be.
pub(super) struct Copy {
    place: &'static mut ffi::MPI_Comm,
    request: Request,
}

impl Copy {
    /// The communicator, once it is there.
    pub(super) fn done(&mut self) -> Result<Option<Comm>> {
        Ok(self.request.has_ended()?.then_some(Comm(*self.place)))
    }
}

impl Request {
    /// Whether it has ended. Asked, the library also moves other messages on.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        let (mut flag, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: a request of the library, or none; places for a flag and a status.
        let code = unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut flag, status.as_mut_ptr()) };
        checked("MPI_Test", code)?;
        Ok(flag != 0)
    }

    /// Whether there is nothing to wait for any more.
    pub(super) fn is_none(self) -> bool {
        // SAFETY: a constant of the library.
        self.0 == unsafe { ffi::RSMPI_REQUEST_NULL }
    }

    /// Asks the library to end it early. It still has to be waited for.
    pub(super) fn cancel(&mut self) {
        if !self.is_none() {
            // SAFETY: a request that has not ended.
            unsafe { ffi::MPI_Cancel(&raw mut self.0) };
        }
    }
}

/// How each of several requests has ended: room that calls need.
#[derive(Default)]
pub(super) struct Ends(Vec<MaybeUninit<ffi::MPI_Status>>);

/// Whether all of them have ended.
pub(super) fn all_ended(requests: &mut [Request], ends: &mut Ends) -> Result<bool> {
    let (mut flag, len) = (0, requests.len());
    ends.0.resize_with(len, MaybeUninit::zeroed);
    // Newtypes around the handle and the status, without more.
    let raw = requests.as_mut_ptr().cast::<ffi::MPI_Request>();
    let statuses = ends.0.as_mut_ptr().cast::<ffi::MPI_Status>();
    // SAFETY: as many requests and statuses as said, a place for a flag.
    let code = unsafe { ffi::MPI_Testall(len as c_int, raw, &raw mut flag, statuses) };
    if code == ffi::MPI_ERR_IN_STATUS as c_int {
        // SAFETY: plain numbers, zeroed or written by the library.
        let codes = ends.0.iter().map(|end| unsafe { end.assume_init_ref() }.MPI_ERROR);
        let unended = [ffi::MPI_SUCCESS as c_int, ffi::MPI_ERR_PENDING as c_int];
        let first = codes.into_iter().find(|code| !unended.contains(code));
        checked("MPI_Testall", first.unwrap_or(code))?;
    }
    checked("MPI_Testall", code)?;
    Ok(flag != 0)
}

/// Lengths of messages fit: they are cut before.
fn length(bytes: usize) -> c_int {
    c_int::try_from(bytes).expect("invariant: messages are cut into chunks of at most 2^30 bytes")
}

unsafe extern "C" {
    /// Of the C library: `work` is done when the process exits.
    safe fn atexit(work: extern "C" fn()) -> c_int;
}

/// Has `work` done when the process exits, also by [`std::process::exit`].
pub(super) fn when_exiting(work: extern "C" fn()) {
    // Where there is no room for it, the launcher complains of a missing end, and no more.
    let _ = atexit(work);
}
