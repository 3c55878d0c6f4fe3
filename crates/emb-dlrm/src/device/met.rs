//! Processes that will meet by NCCL, one GPU each: [`Met`].

use crate::launch::{Name, Place, Point, environment, meet, meeting_name};
use crate::{Error, Result};
use emb_comm::{Collective, Nccl, NcclControl, NcclOptions, UniqueId};
use std::net::TcpStream;
use std::time::Duration;

/// This process among those of its launcher, before they meet by NCCL.
pub(crate) struct Met {
    pub(super) rank: usize,
    /// Its number among the ranks of this host.
    pub(super) local_rank: usize,
    /// The host of every rank.
    pub(super) hosts: Vec<String>,
    /// What they meet by.
    pub(super) id: [u8; 128],
    /// On which they tell each other of failures, if there is a way.
    pub(super) control: Option<NcclControl>,
}

impl Met {
    /// Meets the other processes of the launcher; rank 0 brings what NCCL is joined by.
    ///
    /// # Errors
    /// No library; processes that do not come within the timeout; nobody knows where to meet.
    pub(super) fn meet(place: &Place, timeout: Duration) -> Result<Self> {
        let at = Point::find(place, &environment)?;
        let Place { rank, world, .. } = *place;
        let meeting = meeting_name(place.launcher, &environment);
        let name = Name { meeting, rank, world, host: super::peers::host() };
        let id = if rank == 0 { UniqueId::new()?.to_bytes() } else { [0; 128] };
        let met = meet(&at, &name, &id, timeout)?;
        let said = format!("rank 0 brought {} bytes", met.blob.len());
        let id = met.blob.try_into().map_err(|_| crate::launch::Error::Meeting(said))?;
        let here = Self::of(rank, met.hosts, id, met.lines)?;
        Ok(Self { local_rank: place.local_rank.unwrap_or(here.local_rank), ..here })
    }

    /// One that met the others by other means. `lines` are its connections: on rank 0 to the ranks
    /// from 1 on, on others to rank 0; or none.
    pub(super) fn of(
        rank: usize,
        hosts: Vec<String>,
        id: [u8; 128],
        lines: Vec<TcpStream>,
    ) -> Result<Self> {
        if rank >= hosts.len() {
            let world = hosts.len();
            return Err(Error::Config(format!("there is no rank {rank} in a world of {world}")));
        }
        let local_rank = hosts[..rank].iter().filter(|&host| *host == hosts[rank]).count();
        let control = control(rank, hosts.len(), lines)?;
        Ok(Self { rank, local_rank, hosts, id, control })
    }

    /// Tells the others that this process gives up, if there is a way beside NCCL.
    pub(super) fn abort(&self, reason: &str) {
        if let Some(control) = &self.control {
            control.abort(reason);
        }
    }

    /// Tells the others that this one gives up. Without connections to them it joins and says so,
    /// for they wait for it to join; where it can't, they find out by waiting.
    pub(super) fn give_up(&self, reason: &str, timeout: Duration) {
        if self.control.is_some() {
            return self.abort(reason);
        }
        let Ok(count) = emb_cuda::Device::count() else { return };
        let Ok(device) = emb_cuda::Device::open(self.local_rank % count.max(1)) else { return };
        let options = NcclOptions::default().with_timeout(timeout);
        let (id, world) = (UniqueId::from_bytes(self.id), self.hosts.len());
        if let Ok(ranks) = Nccl::from_id(&device, id, self.rank, world, &options) {
            ranks.abort(reason);
        }
    }

    /// This rank.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// The host of every rank.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }
}

/// The control over the connections of a rank; none without any.
fn control(rank: usize, world: usize, lines: Vec<TcpStream>) -> Result<Option<NcclControl>> {
    let expected = if rank == 0 { world - 1 } else { 1 };
    let given = lines.len();
    let mut lines = lines.into_iter();
    match lines.next() {
        None => Ok(None),
        Some(_) if given != expected => Err(Error::Config(format!(
            "rank {rank} of {world} was given {given} connections instead of {expected}"
        ))),
        Some(first) if rank > 0 => Ok(Some(NcclControl::to_first(rank, world, first)?)),
        Some(first) => {
            Ok(Some(NcclControl::of_first(std::iter::once(first).chain(lines).collect())?))
        }
    }
}
