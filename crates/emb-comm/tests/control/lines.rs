//! Connections of ranks that are threads here, until they are controls.

use emb_comm::NcclControl;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Connections of a world, before they are made controls.
#[derive(Debug)]
pub(crate) struct Lines {
    listener: TcpListener,
    /// Where rank 0 listens.
    pub(crate) address: SocketAddr,
    /// Rank 0's ends, of the ranks from 1 on, and the others'.
    ends: Vec<[Option<TcpStream>; 2]>,
}

impl Lines {
    pub(crate) fn new(world: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connect = |_| {
            let stream = TcpStream::connect(address).expect("a connection");
            [Some(listener.accept().expect("a connection").0), Some(stream)]
        };
        let ends = (1..world).map(connect).collect();
        Self { listener, address, ends }
    }

    /// Takes out the end of a rank in a world of two, or of any other but rank 0.
    pub(crate) fn take(&mut self, rank: usize) -> TcpStream {
        let end = if rank == 0 { &mut self.ends[0][0] } else { &mut self.ends[rank - 1][1] };
        end.take().expect("taken once")
    }

    /// The end of a rank from 1 on.
    pub(crate) fn of(&self, rank: usize) -> &TcpStream {
        self.ends[rank - 1][1].as_ref().expect("still there")
    }

    /// Rank `rank` connects anew.
    pub(crate) fn accept_again(&mut self, rank: usize) {
        self.ends[rank - 1][0] = Some(self.listener.accept().expect("a connection").0);
    }

    /// The control of a rank.
    pub(crate) fn control(&mut self, rank: usize) -> NcclControl {
        if rank > 0 {
            let (world, stream) = (self.ends.len() + 1, self.take(rank));
            return NcclControl::to_first(rank, world, stream).expect("a control");
        }
        let others = self.ends.iter_mut().map(|[end, _]| end.take().expect("taken once"));
        NcclControl::of_first(others.collect()).expect("a control")
    }
}
