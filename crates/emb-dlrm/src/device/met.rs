//! Processes that will meet by NCCL, one GPU each: [`Met`].

use crate::launch::{Name, Place, Point, environment, meet, meeting_name};
use crate::{Error, Result};
use emb_comm::{Collective, Nccl, NcclOptions, UniqueId};
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
        let here = Self::of(rank, met.hosts, id)?;
        Ok(Self { local_rank: place.local_rank.unwrap_or(here.local_rank), ..here })
    }

    /// One that met the others by other means.
    pub(super) fn of(rank: usize, hosts: Vec<String>, id: [u8; 128]) -> Result<Self> {
        if rank >= hosts.len() {
            let world = hosts.len();
            return Err(Error::Config(format!("there is no rank {rank} in a world of {world}")));
        }
        let local_rank = hosts[..rank].iter().filter(|&host| *host == hosts[rank]).count();
        Ok(Self { rank, local_rank, hosts, id })
    }

    /// Tells the others that this one gives up: they wait for it to join, so it joins and says so.
    /// Where it can't, they find out by waiting.
    pub(super) fn give_up(&self, reason: &str, timeout: Duration) {
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
