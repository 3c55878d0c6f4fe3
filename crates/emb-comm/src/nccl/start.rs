//! How ranks come together: [`UniqueId`], and the ways to make an [`Nccl`].

use super::comm::{Comm, place};
use super::header::Headers;
use super::library::{RawId, SUCCESS, library};
use super::link::{Link, until};
use super::{Nccl, NcclControl, NcclOptions, Terms};
use crate::local::Turn;
use crate::{Collective, Error, Local, Operation, Result};
use emb_cuda::Device;
use std::time::Instant;

/// What the ranks of a world must all know to find each other: made by one, brought to the others
/// by the caller's means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId([u8; 128]);

impl UniqueId {
    /// A new one. It names a place of this process, which must live until all ranks have joined.
    ///
    /// # Errors
    /// No NCCL library: names and paths tried. No network interface that the library could use.
    pub fn new() -> Result<Self> {
        let library = library()?;
        let mut id = RawId([0; 128]);
        // SAFETY: a place for an id.
        let code = unsafe { (library.get_unique_id)(&raw mut id) };
        if code == SUCCESS {
            return Ok(Self(id.0));
        }
        let problem = library.explain(code, std::ptr::null_mut());
        let call = "ncclGetUniqueId";
        Err(Error::Nccl { call, rank: 0, world: 0, place: "any device".to_owned(), problem })
    }

    /// What was read by [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: [u8; 128]) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be brought to other processes.
    pub fn to_bytes(self) -> [u8; 128] {
        self.0
    }
}

impl std::fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UniqueId").finish_non_exhaustive()
    }
}

impl Nccl {
    /// The library found: its name or path, and its version.
    ///
    /// # Errors
    /// [`Error::Space`], with the names and paths tried.
    pub fn library() -> Result<(String, String)> {
        let library = library()?;
        Ok((library.name.clone(), library.version_text()))
    }

    /// The ranks of a new world in this process, in order, one for each of `devices`, for one
    /// thread each.
    ///
    /// # Errors
    /// [`Error::SharedDevice`] where a device is named twice; no library; what the first rank to
    /// fail says.
    pub fn threads(devices: &[Device], options: &NcclOptions) -> Result<Vec<Self>> {
        for (second, device) in devices.iter().enumerate() {
            if let Some(first) = devices[..second].iter().position(|other| other == device) {
                return Err(Error::SharedDevice { first, second, device: device.ordinal() });
            }
        }
        if devices.is_empty() {
            return Ok(Vec::new());
        }
        let id = UniqueId::new()?;
        for (device, other) in devices.iter().flat_map(|a| devices.iter().map(move |b| (a, b))) {
            // Within a process, ranks may read each other's memory. Devices without a link cannot,
            // and exchange through the host.
            let _ = device.reach(other);
        }
        let controls = Local::world(devices.len(), &options.base);
        std::thread::scope(|scope| {
            let join = |(control, device): (Local, &Device)| {
                let device = device.clone();
                scope.spawn(move || Self::join_thread(control, &device, id, *options))
            };
            let threads: Vec<_> = controls.into_iter().zip(devices).map(join).collect();
            let joined = threads.into_iter().map(|thread| {
                let panicked = |_| Error::Space("a thread that joined panicked".to_owned());
                thread.join().map_err(panicked).flatten()
            });
            let joined: Vec<Result<Self>> = joined.collect();
            // The first to fail says why; the others say that it failed.
            let cause = joined.iter().filter_map(|rank| rank.as_ref().err());
            let cause = cause.min_by_key(|error| matches!(error, Error::Failed { .. }));
            match cause {
                Some(error) => Err(error.clone()),
                None => joined.into_iter().collect(),
            }
        })
    }

    /// The rank that `threads` is of, on `device`: for ranks that are threads already, as those of
    /// [`run`](crate::run). All call it together; a rank that fails fails `threads` as well. Devices
    /// that can read each other's memory are told so before, by [`Device::reach`].
    ///
    /// # Errors
    /// No library; ranks that do not come within the timeout, or that share a device.
    pub fn over(mut threads: Local, device: &Device, options: &NcclOptions) -> Result<Self> {
        let mut id = [0; 128];
        if threads.rank() == 0 {
            id = UniqueId::new()?.to_bytes();
        }
        threads.broadcast(&mut id[..], 0)?;
        Self::join_thread(threads, device, UniqueId::from_bytes(id), *options)
    }

    fn join_thread(
        control: Local,
        device: &Device,
        id: UniqueId,
        options: NcclOptions,
    ) -> Result<Self> {
        let guard = control.guard();
        let (rank, world) = (control.rank(), control.world());
        let failed = || match control.failure() {
            Some(failure) => Err(Error::Failed {
                operation: Operation::Barrier,
                rank,
                step: 0,
                failure: Box::new(failure),
            }),
            None => Ok(()),
        };
        let link = open(device, id, rank, world, &options, failed, |error| error)?;
        guard.done();
        Ok(Self { control, link, headers: None, options })
    }

    /// Rank `rank` of `world`, of which each may be in a process of its own. Called by all ranks,
    /// with the same `id` and the same options; returns once all have.
    ///
    /// ```no_run
    /// use emb_comm::{Collective, Nccl, NcclOptions, UniqueId};
    /// use emb_cuda::Device;
    ///
    /// // Started once for each GPU, as `program RANK WORLD FILE`, with a file that all can read.
    /// let arguments: Vec<String> = std::env::args().collect();
    /// let (rank, world) = (arguments[1].parse()?, arguments[2].parse()?);
    /// let id = if rank == 0 {
    ///     let id = UniqueId::new()?;
    ///     std::fs::write(&arguments[3], id.to_bytes())?;
    ///     id
    /// } else {
    ///     let bytes: Vec<u8> = std::fs::read(&arguments[3])?; // once it is there
    ///     UniqueId::from_bytes(bytes.try_into().map_err(|_| "128 bytes")?)
    /// };
    /// let device = Device::open(rank % Device::count()?)?;
    /// let mut ranks = Nccl::from_id(&device, id, rank, world, &NcclOptions::default())?;
    /// let mut gradient = device.stream()?.zeros::<f32>(1000)?;
    /// ranks.all_reduce(gradient.whole_mut())?;
    /// ranks.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No library; a rank outside the world; ranks that do not come within the timeout, that have
    /// other options, or that share a device.
    pub fn from_id(
        device: &Device,
        id: UniqueId,
        rank: usize,
        world: usize,
        options: &NcclOptions,
    ) -> Result<Self> {
        if rank >= world {
            return Err(Error::NoSuchRank { operation: "from_id", rank, world });
        }
        let link = open(device, id, rank, world, options, || Ok(()), |error| error)?;
        Self::meet_first(Local::remote(rank, world, &options.base), link, options)
    }

    /// [`from_id`](Self::from_id) of the ranks of `control`, on which they tell each other of
    /// failures from now on: every error names the rank that failed first, with its operation and
    /// its step, also with subgroups and duplicates at work.
    ///
    /// ```no_run
    /// # use emb_comm::{Nccl, NcclControl, NcclOptions, UniqueId};
    /// # use emb_cuda::Device;
    /// # let (rank, world, listener) = (0, 2, std::net::TcpListener::bind("127.0.0.1:0")?);
    /// # let id = UniqueId::new()?;
    /// let control = if rank == 0 {
    ///     // The others connect in the order of their ranks, or say which they are.
    ///     let others = (1..world).map(|_| Ok(listener.accept()?.0));
    ///     NcclControl::of_first(others.collect::<std::io::Result<_>>()?)?
    /// } else {
    ///     NcclControl::to_first(rank, world, std::net::TcpStream::connect("node1:29501")?)?
    /// };
    /// let device = Device::open(rank)?;
    /// let ranks = Nccl::from_id_with(&device, id, &control, &NcclOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_id`](Self::from_id); a rank that failed, ended or was killed before it came; a
    /// control that a world was made with already.
    pub fn from_id_with(
        device: &Device,
        id: UniqueId,
        control: &NcclControl,
        options: &NcclOptions,
    ) -> Result<Self> {
        let (rank, world) = (control.rank(), control.world());
        let (mut local, member) = control.join(&options.base)?;
        member.begins();
        let turn = Turn::begin(&mut local, Terms::new(Operation::Barrier))?;
        let tell = |error: Error| {
            member.wait_for_reason(&turn, &error);
            let of_peer = turn.failure().filter(|failure| failure.ranks() != [rank]);
            let error = match (error, of_peer.and_then(|_| turn.still_well().err())) {
                (error @ Error::Failed { .. }, _) | (_, Some(error)) => error,
                (own, None) => turn.refuse(own),
            };
            member.tell();
            error
        };
        let watch = || member.watch(&turn);
        let opened = open(device, id, rank, world, options, watch, tell);
        let mut link = opened.map_err(tell)?;
        drop(turn);
        link.member = Some(member);
        Self::meet_first(local, link, options)
    }

    /// Connects each rank to each, so that later only ranks that stop are missed.
    fn meet_first(control: Local, link: Link, options: &NcclOptions) -> Result<Self> {
        let headers = Some(Headers::new(&link.stream, control.rank(), control.world())?);
        let mut joined = Self { control, link, headers, options: *options };
        let met = joined.meet(Terms::new(Operation::Barrier).tag(options.tag()));
        joined.tells(met)?;
        Ok(joined)
    }
}

/// Joins the ranks that know `id`. `tell` is told of an error before the communicator ends.
fn open(
    device: &Device,
    id: UniqueId,
    rank: usize,
    world: usize,
    options: &NcclOptions,
    mut failed: impl FnMut() -> Result<()>,
    tell: impl Fn(Error) -> Error,
) -> Result<Link> {
    let (began, timeout) = (Instant::now(), options.base.timeout);
    let stream = device.stream()?;
    let comm = Comm::init(library()?, device, RawId(id.0), rank, world)?;
    let mut link = Link::new(comm, stream, timeout, None);
    link.space.load();
    let watch = || {
        failed()?;
        if began.elapsed() <= timeout {
            return Ok(());
        }
        let problem = format!("not all ranks came within {timeout:?}");
        let call = "ncclCommInitRankConfig";
        Err(Error::Nccl { call, rank, world, place: place(device), problem })
    };
    let joined = until(|| link.comm()?.is_ready(), watch);
    match joined {
        Ok(()) => {
            link.settle();
            Ok(link)
        }
        Err(error) => {
            let error = tell(error);
            link.give_up();
            Err(error)
        }
    }
}
