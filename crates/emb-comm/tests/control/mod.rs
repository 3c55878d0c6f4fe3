//! Controls of ranks that are threads here, connected as processes are.

use emb_comm::NcclControl;
use std::net::{TcpListener, TcpStream};

/// The control of every rank of a world, by rank.
pub(crate) fn controls(world: usize) -> Vec<NcclControl> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut accepted = Vec::new();
    let connect = |rank| {
        let stream = TcpStream::connect(address).expect("a connection");
        accepted.push(listener.accept().expect("a connection").0);
        NcclControl::to_first(rank, world, stream).expect("a control")
    };
    let others: Vec<NcclControl> = (1..world).map(connect).collect();
    let first = NcclControl::of_first(accepted).expect("a control");
    std::iter::once(first).chain(others).collect()
}
